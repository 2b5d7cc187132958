"""Pictures on pages: small in lists, whole on their notification's page, from nowhere but where they are."""

from io import BytesIO

from tests.support.hostile import POLICY
from tests.support.pages import HISTORY, Page
from tests.support.picture_files import png
from tests.support.rows import each

ELSEWHERE = "https://x.example:8443/cam.jpg"


def send(caller, **fields):
    answer = caller.post("/notifications/send", {"title": "Door", "body": "motion"} | fields)
    assert answer.status_code == 200, answer.data
    return answer.json["notification"]


def upload(caller):
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(png()), "cam.png")}
    return caller.request("POST", "/api/v1/notifications/send", data=parts).json["notification"]


def pictures(page, kind):
    return [image for image in page.all("img") if image.get("class") == kind]


def policy(owner, path):
    return owner.get(path).headers["Content-Security-Policy"]


def test_a_picture_that_came_with_a_notification_is_small_in_history_and_whole_on_its_page(owner, caller):
    sent = upload(caller)
    path = "/i/" + sent["image"].rpartition("/")[2]
    (small,) = pictures(owner.page(HISTORY), "thumb")
    assert (small["src"], small["alt"], small["loading"]) == (path, "", "lazy")  # the row's text says it already
    (whole,) = pictures(owner.page(f"{HISTORY}/{sent['id']}"), "whole")
    assert (whole["src"], whole["alt"]) == (path, "motion")
    assert policy(owner, HISTORY) == policy(owner, f"{HISTORY}/{sent['id']}") == POLICY


def test_only_the_page_that_shows_a_picture_from_elsewhere_may_load_it(owner, caller):
    sent = send(caller, image=ELSEWHERE)
    wider = POLICY.replace("img-src 'self'", "img-src 'self' https://x.example:8443")
    for path in (HISTORY, f"{HISTORY}/{sent['id']}", "/app/"):
        assert policy(owner, path) == wider
        assert [image["src"] for image in owner.page(path).all("img") if image.get("referrerpolicy")] != []
    assert policy(owner, "/app/keys") == POLICY


@each(
    "image",
    [
        *("https://x.example;script-src", "https://user:pw@x.example/a.jpg", "https://x.example,evil/a.jpg"),
        *("https://*/a.jpg", "https://é.example/a.jpg", "https://[::1]/a.jpg"),
    ],
)
def test_an_address_that_no_policy_can_name_is_a_link(owner, caller, image):
    sent = send(caller, image=image)
    answer = owner.get(f"{HISTORY}/{sent['id']}")
    page = Page(answer.text)
    assert pictures(page, "whole") == [] and image in [link["href"] for link in page.all("a")]
    assert answer.headers["Content-Security-Policy"] == POLICY  # the list stands beside it


def test_a_page_shows_pictures_from_20_places_elsewhere(owner, caller):
    for number in range(22):
        send(caller, title=f"Door {number}", image=f"https://x{number}.example/a.jpg")
    assert policy(owner, HISTORY).count("https://") == len(pictures(owner.page(HISTORY), "thumb")) == 20


def test_a_picture_that_is_gone_leaves_no_trace_on_pages(owner, caller, moved_clock):
    from core import pictures as kept
    from process.clock import DAY_MS

    sent = upload(caller)
    kept.remove_expired(moved_clock.ms + 30 * DAY_MS)
    assert pictures(owner.page(HISTORY), "thumb") == pictures(owner.page(f"{HISTORY}/{sent['id']}"), "whole") == []
