"""How buttons reach a phone: at the three providers' stand-ins, within each one's limit."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from providers import apns, fcm, webpush
from providers.base import MAX_PUSHED_URL_BYTES, Message, PushedButton
from tests.support.buttons import ANSWERS
from tests.support.phones import ORIGIN
from tests.support.rows import each
from wire.json_text import json_bytes
from wire.notification import Content

URL = "https://example.org/" + "u" * 1_980
OPENS = {"label": "Log", "url": "https://example.org/log?a=“b”"}


def test_each_provider_gets_the_buttons_with_their_addresses(phones):
    sent = phones.send(actions=[ANSWERS[0], OPENS, ANSWERS[1]])
    (yes, log, no) = phones.to_browser[0]["actions"]
    assert [one["title"] for one in (yes, log, no)] == ["Yes", "Log", "No"]
    assert len({one["action"] for one in (yes, log, no)}) == 3
    assert log["navigate"] == OPENS["url"] and yes["navigate"].startswith(f"{ORIGIN}/a/")
    assert all(one.keys() == {"action", "title", "navigate"} for one in (yes, log, no))
    for told in (phones.to_apple[0]["actions"], json.loads(phones.to_android["data"]["actions"])):
        assert [one["label"] for one in told] == ["Yes", "Log", "No"]
        assert [one.get("method") for one in told] == ["POST", None, "POST"]
        assert told[1] == OPENS
        assert len(told[0]["url"]) == len(told[2]["url"]) == len(f"{ORIGIN}/a/") + 22
    assert sent["actions"] == [ANSWERS[0], OPENS, ANSWERS[1]]


def test_an_alarm_has_the_button_acknowledge_first(phones):
    phones.send(actions=ANSWERS, acknowledge=True)
    assert [one["title"] for one in phones.to_browser[0]["actions"]] == ["Acknowledge", "Yes", "No"]
    assert phones.to_browser[0]["actions"][0]["action"] == "acknowledge"
    told = phones.to_apple[0]["actions"]
    assert [one["label"] for one in told] == ["Acknowledge", "Yes", "No"]
    assert {one["method"] for one in told} == {"POST"}
    assert phones.to_browser[0]["requireInteraction"] is True


def test_a_browser_gets_the_addresses_of_the_origin_at_which_it_has_the_web_app():
    message = Message("n", Content("t", "b"), "/app/n", buttons=(PushedButton("0", "Yes", token="T" * 22),))
    shown = json.loads(webpush._payload(message, "https://bell.example.org"))["notification"]
    assert shown["actions"] == [{"action": "0", "title": "Yes", "navigate": f"https://bell.example.org/a/{'T' * 22}"}]


def test_a_label_is_one_line_without_control_characters(phones):
    phones.send(actions=[{"label": "a\nb\x07\t c", "answer": "y"}])
    assert phones.to_browser[0]["actions"][0]["title"] == "a b c"
    assert phones.to_apple[0]["actions"][0]["label"] == "a b c"


LONG_URLS = ["https://example.org/" + '"' * 1_980, "https://漢.example/" + "😀" * 1_980]


@each("text", ["a", "é", "漢", "😀", '"', "\\", "\n"])
@each("kind, url", [*(("url", url) for url in (None, URL, *LONG_URLS)), ("answer", LONG_URLS[0])])
def test_three_full_buttons_fit_beside_texts_urls_and_tags(phones, text, url, kind):
    label = (text * 40) if text.strip() else "l" * 40
    opened = {"url": url or URL} if kind == "url" else {"token": "T" * 22}
    acknowledge = PushedButton("acknowledge", "Acknowledge", token="T" * 22)
    content = Content("MCP - " + "t" * 1_000, "." + text * 9_999, url=url, tag="\x01" * 64)
    apple, android, shown = phones.built(content, (acknowledge, *[PushedButton("0", label, **opened)] * 3))
    assert [one["title"] for one in shown["actions"]] == ["Acknowledge", *[label] * 3]
    for told in (apple["actions"], json.loads(android["data"]["actions"])):
        assert [one["label"] for one in told] == ["Acknowledge", *[label] * 3]
    for one in (apple["aps"]["alert"], android["notification"], shown):
        assert one["title"].startswith("MCP - t") and one["body"].endswith("…") and len(one["body"]) > 20


def test_a_button_whose_url_leaves_no_room_leads_to_the_notifications_page(phones):
    short = {"label": "Short", "url": "https://example.org/"}
    sent = phones.send(actions=[{"label": "First", "url": URL}, {"label": "Second", "url": URL}, short])
    page = f"{ORIGIN}/app/notifications/{sent['id']}"
    first, second, third = (one["navigate"] for one in phones.to_browser[0]["actions"])
    assert (first, second, third) == (URL, page, short["url"])
    assert phones.to_apple[0]["actions"][1] == {"label": "Second", "url": page}


def test_a_text_of_3_kb_is_shortened_before_a_url_is_left_out(phones):
    phones.send(body="b" * 3_000, actions=[{"label": "Log", "url": URL}])
    assert phones.to_browser[0]["actions"][0]["navigate"] == URL
    assert phones.to_browser[0]["body"].endswith("…") and len(phones.to_browser[0]["body"]) > 1_000


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
PARTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), max_size=40)
URLS = st.builds(str.__mul__, PARTS, st.sampled_from([1, 49])).map("https://a.example/".__add__)
BUTTONS = st.lists(
    st.builds(PushedButton, st.sampled_from("012"), LABELS, st.none(), st.just("T" * 22))
    | st.builds(PushedButton, st.sampled_from("012"), LABELS, URLS),
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(
    buttons=BUTTONS, url=st.none() | URLS, body=st.text(st.characters(exclude_categories=["Cs"])), long=st.booleans()
)
def test_whatever_the_buttons_are_a_push_fits(buttons, url, body, long):
    origin = "https://" + "o" * 63 + ".example.org:8443"
    content = Content("MCP - " + body[:1_000], body * (200 if long else 1), url=url, tag="\x01" * 64)
    acknowledge = PushedButton("acknowledge", "Acknowledge", token="T" * 22)
    message = Message("a" * 32, content, "/app/notifications/" + "a" * 32, "s" * 32, (acknowledge, *buttons))
    assert len(webpush._payload(message, origin)) <= webpush.MAX_BYTES
    assert len(message.addressed_buttons(origin)) == len(message.buttons)
    told = message.for_apps(origin)
    told["actions"] = json.dumps(told["actions"], ensure_ascii=False)
    assert len(json_bytes(told)) < min(apns.MAX_BYTES, fcm.MAX_BYTES) - 290
    kept = [url for _, url in message.addressed_buttons(origin) if url.startswith("https://a.example/")]
    assert sum(len(json_bytes(one)) for one in kept) <= MAX_PUSHED_URL_BYTES


def test_an_alerts_button_that_mutes_it_is_on_each_kind_of_device(phones):
    hook = phones.caller.service.alert("--mute-button")
    hook.post({"message": "a"})
    (shown,) = phones.to_browser[0]["actions"]
    assert shown["title"] == "Mute 1 h" and "/a/" in shown["navigate"]
    for told in (phones.to_apple[0]["actions"], json.loads(phones.to_android["data"]["actions"])):
        assert [(one["label"], one["method"], "/a/" in one["url"]) for one in told] == [("Mute 1 h", "POST", True)]
