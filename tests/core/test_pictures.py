"""Pictures are kept for 30 days, up to 200 MB an account, and go with their notification; devices get them."""

import sqlite3
import threading
from contextlib import closing
from io import BytesIO

import pytest

from core import pictures, pruning
from process import clock
from process.clock import DAY_MS
from store import database, engine, notification_days
from tests.support import picture_files as files
from tests.support.picture_files import ELSEWHERE

PNG = files.png()


def send(caller, picture=PNG, **fields):
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(picture), "cam.png"), **fields}
    answer = caller.request("POST", "/api/v1/notifications/send", data=parts)
    assert answer.status_code == 200, answer.data
    return answer.json["notification"]


def status(caller, notification):
    return caller.service.client.get(notification["image"]).status_code


def counted():
    """The bytes of the account's pictures, and of all that it has stored, as they are counted."""
    row = database.run("SELECT picture_bytes, stored_bytes FROM notification_day WHERE account_seq = 1 AND day = ''")
    return row.fetchone()


def real():
    """The same, as they are."""
    (in_pictures,) = database.run("SELECT coalesce(sum(size), 0) FROM picture WHERE account_seq = 1").fetchone()
    texts = database.run("SELECT title, body, picture FROM notification WHERE account_seq = 1").fetchall()
    return in_pictures, in_pictures + sum(len("".join(filter(None, row)).encode()) for row in texts)


@pytest.fixture
def browser(pro, push_service):
    browser = push_service.browser()
    pro.post("/devices", {"kind": "webpush", "subscription": browser.subscription})
    return browser


# --- how long -----------------------------------------------------------------------------------------------


def test_a_picture_is_there_for_30_days_to_the_millisecond(pro, moved_clock):
    made = send(pro)
    moved_clock.set_wall(moved_clock.ms + 30 * DAY_MS - 1)
    assert status(pro, made) == 200
    moved_clock.set_wall(moved_clock.ms + 1)
    assert status(pro, made) == 404


def test_a_picture_for_later_is_kept_for_30_days_from_then(pro, moved_clock):
    made = send(pro, deliverAt=str(moved_clock.ms + 60 * DAY_MS))
    moved_clock.set_wall(moved_clock.ms + 89 * DAY_MS)
    assert status(pro, made) == 200


def test_the_background_removes_an_old_picture_and_its_notification_stays(pro, moved_clock):
    made, kept = send(pro), pro.send().json["notification"]
    for _ in range(31):
        moved_clock.advance(DAY_MS / 1_000)
        pruning.prune(clock.now_ms())
    assert not pictures.remove_expired(clock.now_ms())
    assert [one["id"] for one in pro.listed()] == [kept["id"], made["id"]]
    assert "image" not in pro.listed()[1]
    assert database.run("SELECT count(*) FROM picture").fetchone()[0] == 0
    assert counted() == real() == (0, counted()[1])


# --- how much -----------------------------------------------------------------------------------------------


def test_what_an_account_has_stored_counts_its_pictures(pro):
    send(pro)
    send(pro, files.jpeg())
    assert counted() == real() and counted()[0] == len(PNG) + len(files.jpeg())
    pro.delete(f"/notifications/{pro.listed()[0]['id']}")
    assert counted() == real() and counted()[0] == len(PNG)


def test_beyond_the_room_of_an_account_its_oldest_pictures_go(pro, owner, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_ACCOUNT_BYTES", 3 * len(PNG))
    others = send(owner)
    made = [send(pro) for _ in range(4)]
    assert [status(pro, one) for one in made] == [404, 200, 200, 200]
    larger = send(pro, files.png(pixels=files.PIXELS * 3))
    assert [status(pro, one) for one in (*made, larger)] == [404, 404, 404, 200, 200]
    assert status(owner, others) == 200
    assert len(pro.listed()) == 5 and counted() == real()


@pytest.mark.parametrize("surplus", [1, 2, 3, 5])
def test_as_many_pictures_go_as_must(pro, monkeypatch, surplus):
    monkeypatch.setattr(pictures, "REMOVED_AT_ONCE", 2)
    for _ in range(7):
        send(pro)
    monkeypatch.setattr(pictures, "MAX_ACCOUNT_BYTES", (8 - surplus) * len(PNG))
    send(pro)
    assert database.run("SELECT count(*) FROM picture").fetchone()[0] == 8 - surplus


# --- whole or not at all ------------------------------------------------------------------------------------


def test_others_go_on_while_a_picture_waits_until_another_is_stored(service, monkeypatch):
    made_way, order = threading.Event(), []
    monkeypatch.setattr(engine, "make_way", made_way.set)

    def second():
        with pictures.storing(database.EVERYBODY):
            order.append("second")

    with pictures.storing(database.EVERYBODY):
        made_way.clear()
        thread = threading.Thread(target=second)
        thread.start()
        assert made_way.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_picture_that_cannot_be_stored_leaves_no_notification(pro, monkeypatch):
    def fails(**_):
        raise database.WriteFailed("disk full")

    monkeypatch.setattr(notification_days, "add_picture_bytes", fails)
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(PNG), "cam.png")}
    answer = pro.request("POST", "/api/v1/notifications/send", data=parts)
    assert (answer.status_code, pro.listed()) == (503, [])
    assert database.run("SELECT count(*) FROM picture").fetchone()[0] == 0


# --- on devices ---------------------------------------------------------------------------------------------


def test_a_push_has_the_picture_at_the_same_address_again_and_again(service, pro, browser, moved_clock):
    made = send(pro, acknowledge="true")
    moved_clock.advance(61)
    service.work()
    first, repeat = (message["notification"]["image"] for message in browser.messages)
    assert first == repeat and first.rpartition("/")[2] == made["image"].rpartition("/")[2]


def test_a_digest_has_no_picture_and_its_rows_keep_theirs(service, pro, browser, moved_clock):
    options = ("--title", "{{ t }}", "--image", "{{ image }}", "--frequency", "15m")
    hook = service.alert(*options, email="pro@example.org")
    for title in ("one", "two"):
        assert hook.post({"t": title, "image": ELSEWHERE}).json["status"] == "held"
    moved_clock.advance(901)
    service.work()
    (digest,) = browser.messages
    assert "image" not in digest["notification"]
    assert [one["image"] for one in pro.listed()] == [ELSEWHERE, ELSEWHERE]


# --- a backup -----------------------------------------------------------------------------------------------


def rows(file, statement):
    with closing(sqlite3.connect(file)) as copy:
        return copy.execute(statement).fetchall()


def test_a_backup_has_the_pictures(service, pro, tmp_path):
    send(pro)
    service.flask("backup", str(tmp_path / "copy.db"))
    assert rows(tmp_path / "copy.db", "SELECT data FROM picture") == [(PNG,)]


def test_a_backup_without_images_is_as_if_there_had_been_none(service, pro, tmp_path):
    send(pro, files.jpeg(scan=b"\x11" * 1_000_000))
    made = service.flask("backup", str(tmp_path / "copy.db"), "--without-images")
    assert made.exit_code == 0, made.output
    file = tmp_path / "copy.db"
    assert file.stat().st_size < 1_000_000 and file.stat().st_mode & 0o777 == 0o600
    assert rows(file, "SELECT count(*), (SELECT count(*) FROM picture) FROM notification") == [(1, 0)]
    assert rows(file, "SELECT picture FROM notification") == [(None,)]
    assert rows(file, "SELECT picture_bytes, stored_bytes FROM notification_day WHERE day = ''") == [
        (0, len("MCP - Doormotion"))
    ]


def test_an_event_template_shows_a_picture_only_from_an_https_address(service, pro):
    hook = service.alert("--image", "{{ image | default: '' }}", email="pro@example.org")
    for sent, kept in ((ELSEWHERE, ELSEWHERE), ("http://x.example/a.jpg", None), ("javascript:1", None), ("", None)):
        hook.post({"title": "t", "message": "m", "image": sent})
        assert pro.listed()[0].get("image") == kept
