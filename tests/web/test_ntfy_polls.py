"""What the ntfy app fetches with `poll=1`, and whom it may ask for."""

import json

import pytest

from core import subscriptions
from tests.support.ntfy_app import TOPIC, add_phone
from tests.support.rows import each

FORBIDDEN = {"code": 40301, "http": 403, "error": "forbidden"}


def sent(owner, *bodies, **more):
    """Send a notification with each body, a second apart; returns their ids."""
    ids = []
    for body in bodies:
        answer = owner.post("/notifications/send", {"title": "Backup", "body": body, **more})
        assert answer.status_code == 200, answer.json
        ids.append(answer.json["notification"]["id"])
    return ids


# --- the topic ----------------------------------------------------------------------------------------------


def test_each_device_is_answered_once_with_a_topic_of_its_own(owner):
    answer = owner.post("/devices", {"kind": "ntfy", "name": "Pixel", "minPriority": "high"})
    assert answer.status_code == 201
    device = answer.json["device"]
    assert TOPIC.fullmatch(device.pop("topic"))
    assert device == owner.get("/devices").json["devices"][0]
    assert (device["kind"], device["name"], device["minPriority"]) == ("ntfy", "Pixel", 4)
    assert len({add_phone(owner).topic for _ in range(3)}) == 3
    assert {device["name"] for device in owner.get("/devices").json["devices"]} == {"Pixel", "ntfy app"}


def test_the_topic_itself_is_not_kept(owner, android, service):
    files = b"".join(path.read_bytes() for path in service.data_dir.iterdir() if path.is_file())
    assert android.topic.encode() not in files


def test_auth_knows_the_topic_until_the_device_is_removed(owner, android):
    answer = android.get("auth")
    assert (answer.status_code, answer.json) == (200, {"success": True})
    assert answer.headers["Cache-Control"] == "no-store"
    sent(owner, "one")
    assert owner.delete(f"/devices/{android.id}").status_code == 200
    assert android.get("auth").json == android.get("json?poll=1").json == FORBIDDEN


@each("path", ["auth", "json?poll=1", "json", "sse?poll=1", "raw?poll=1"])
def test_an_unknown_topic_is_forbidden(owner, android, path):
    for topic in ("pb" + "x" * 40, "backups", android.topic.lower(), android.topic + "x"):
        answer = android.get(path, topics=topic)
        assert (answer.status_code, answer.json) == (403, FORBIDDEN)


def test_with_a_key_any_topic_is_one_to_which_nobody_publishes(owner, android):
    owner.request("POST", "/backups", data="finished")
    for path in ("json?poll=1&since=all", "sse?poll=1", "raw?poll=1", f"json?poll=1&id={owner.listed()[0]['id']}"):
        answer = owner.request("GET", f"/backups,other/{path}")
        assert (answer.status_code, answer.data) == (200, b"")
        assert answer.headers["X-RateLimit-Limit"] == "100"
    assert owner.request("GET", "/backups/auth").json == {"success": True}
    assert owner.request("GET", f"/{android.topic}/json?poll=1").text.count("\n") == 1


def test_a_wrong_key_is_a_401_and_counts_as_a_guess(service, few):
    wrong = {"Authorization": f"Bearer sk_test_{'0' * 48}"}
    answers = [service.client.get("/backups/auth", headers=wrong) for _ in range(7)]
    assert answers[0].json == {"code": 40101, "http": 401, "error": "unauthorized"}
    assert [answer.status_code for answer in answers] == [401] * 6 + [429]


def test_unknown_topics_are_counted_against_their_sender(android, moved_clock):
    for _ in range(60):
        assert android.get("auth", topics="guess").status_code == 403
    refused = android.get("auth", topics="guess")
    assert (refused.status_code, refused.json["http"]) == (429, 429)
    assert refused.headers["Retry-After"] == "60"
    assert android.get("auth").status_code == 200  # the owner's phone behind the same address
    assert android.get("auth", topics="guess", address="203.0.113.10").status_code == 403
    moved_clock.advance(61)
    assert android.get("auth", topics="guess").status_code == 403


# --- messages -----------------------------------------------------------------------------------------------


def test_a_message_has_the_fields_that_the_app_reads(owner, android, moved_clock):
    (one,) = sent(owner, "finished")
    assert android.messages() == [
        {
            "id": one,
            "time": moved_clock.ms // 1000,
            "event": "message",
            "topic": android.topic,
            "title": "MCP - Backup",
            "message": "finished",
            "priority": 3,
            "sequence_id": one,
        }
    ]


def test_every_field_that_was_set_is_in_the_message(owner, android):
    actions = [{"label": "Log", "url": "https://example.org/log"}]
    sent(owner, "failed", priority=5, url="https://example.org", tag="backup", actions=actions)
    (message,) = android.messages()
    assert (message["priority"], message["click"], message["sequence_id"]) == (5, "https://example.org", "backup")
    (action,) = message["actions"]
    assert action.pop("id")
    assert action == {"action": "view", "label": "Log", "url": "https://example.org/log", "clear": False}


def test_messages_come_oldest_first_each_on_a_line(owner, android):
    sent(owner, "one", "two\nlines", "three")
    answer = android.get("json?poll=1")
    assert [json.loads(line)["message"] for line in answer.text.splitlines()] == ["one", "two\nlines", "three"]
    assert answer.headers["X-Accel-Buffering"] == "no"


def test_no_character_ends_the_line_for_the_iphone(owner, android):
    """Its app splits an answer at every character of Unicode that ends a line, also within a message."""
    body = "one\u2028two\u2029three\u0085"
    sent(owner, body, actions=[{"label": "a\u2028b", "answer": "yes"}], tag="a\u2028b")
    (line,) = android.get("json?poll=1").text.splitlines()
    assert json.loads(line)["message"] == "one\u2028two\u2029three"


def test_sse_and_raw_say_the_same(owner, android):
    sent(owner, "one", "two\nlines")
    events = android.get("sse?poll=1")
    assert events.content_type == "text/event-stream; charset=utf-8"
    assert [json.loads(part.removeprefix("data: "))["message"] for part in events.text.strip().split("\n\n")] == [
        *("one", "two\nlines")
    ]
    texts = android.get("raw?poll=1")
    assert (texts.text, texts.content_type) == ("one\ntwo lines\n", "text/plain; charset=utf-8")


def test_head_gives_nothing_and_takes_nothing(owner, android, service):
    sent(owner, "one")
    answer = service.client.head(f"/{android.topic}/json?poll=1")
    assert (answer.status_code, answer.data) == (200, b"")
    assert owner.listed()[0]["status"] == "pending"


# --- since --------------------------------------------------------------------------------------------------


@pytest.fixture
def five(owner, android, moved_clock):
    """The ids of five notifications, an hour apart, the last an hour ago."""
    ids = []
    for number in range(5):
        ids += sent(owner, str(number))
        moved_clock.advance(3600)
    return ids


def test_since_takes_an_id_a_time_a_duration_and_words(android, five, moved_clock):
    wanted = {
        "": "01234",
        "since=all": "01234",
        "since=none": "",
        "since=latest": "4",
        f"since={five[2]}": "34",
        f"since={five[4]}": "",
        f"since={moved_clock.ms // 1000 - 2 * 3600}": "34",
        "since=2h": "34",
        "since=2h30m": "34",
        "since=181m": "234",
        "since=abcDEF123456": "01234",
        f"si={five[3]}": "4",
    }
    android.messages()  # what waits would come with any id
    assert {query: "".join(android.bodies(query)) for query in wanted} == wanted
    assert android.bodies("", headers={"X-Since": five[3]}) == ["4"]


def test_a_since_that_means_nothing_is_refused(android):
    for query in ("since=a%20day", "since=%00", f"since={'x' * 65}"):
        answer = android.get(f"json?poll=1&{query}")
        assert answer.json == {"code": 40008, "http": 400, "error": "invalid since parameter"}


def test_all_is_the_newest_50_of_12_hours(pro, moved_clock, monkeypatch):
    assert subscriptions.NEWEST_OF_ALL == 50
    monkeypatch.setattr(subscriptions, "NEWEST_OF_ALL", 5)
    android = add_phone(pro)
    sent(pro, "too old")
    moved_clock.advance(1)
    sent(pro, "old")
    moved_clock.advance(12 * 3600)
    assert android.bodies() == ["old"]
    sent(pro, *map(str, range(7)))
    assert android.bodies() == [str(number) for number in range(2, 7)]


def test_since_an_id_includes_older_pending_messages(owner, android, hook, moved_clock):
    hook.set("--frequency", "1h")
    hook.post({"message": "held"})
    (later,) = sent(owner, "later")
    assert android.bodies() == ["later"]
    moved_clock.advance(3601)
    owner.service.work()
    assert android.bodies(f"since={later}") == ["held"]
    assert android.bodies(f"since={later}") == ["held"]  # it began after the other one, though it is older


def test_an_id_gives_itself_again_to_a_device_that_did_not_have_it_yet(owner, android):
    other = add_phone(owner)
    (one,) = sent(owner, "one")
    assert android.bodies() == ["one"]
    both = [message["topic"] for message in android.messages(f"since={one}", topics=f"{android.topic},{other.topic}")]
    assert both == [other.topic]
    assert android.bodies(f"since={one}", topics=f"{android.topic},{other.topic}") == []


def test_an_app_that_polls_gets_everything_once(owner, android, moved_clock):
    sent(owner, "one", "two")
    assert [one["message"] for one in android.poll()] == ["one", "two"]
    assert android.poll() == []
    moved_clock.advance(20 * 3600)
    sent(owner, "three")
    assert [one["message"] for one in android.poll()] == ["three"]


def test_a_poll_ends_at_256_kb_and_the_app_asks_for_the_rest(pro, monkeypatch):
    assert subscriptions.MAX_POLLED_BYTES == 256_000
    monkeypatch.setattr(subscriptions, "MAX_POLLED_BYTES", 25_600)
    phone = add_phone(pro)
    sent(pro, *(f"{'🔔' * 998}{number:02}" for number in range(14)))
    assert len(phone.get("json?poll=1&since=1").data) <= 25_600
    assert [[one["message"][-2:] for one in phone.poll()] for _ in range(4)] == [
        ["00", "01", "02", "03", "04", "05"],
        ["06", "07", "08", "09", "10", "11"],
        ["12", "13"],
        [],
    ]


def test_one_message_is_fetched_by_its_id(android, five):
    assert android.fetch(five[1])["message"] == "1"
    assert android.messages("id=0123") == []


def test_a_message_must_pass_every_filter(owner, android):
    for priority, body in ((1, "low"), (4, "high"), (5, "high")):
        sent(owner, body, priority=priority)
    wanted = {
        "priority=4,5": 2,
        "priority=high,urgent,min": 3,
        "message=high": 2,
        "m=high&p=max": 1,
        "title=MCP%20-%20Backup": 3,
        "title=Backup": 0,
        "tags=warning": 0,
    }
    assert {query: len(android.messages(query)) for query in wanted} == wanted
    assert len(android.messages("", headers={"Priority": "u=1, i"})) == 3
    assert android.get("json?poll=1&priority=9").json["code"] == 40007


# --- several topics, several owners -------------------------------------------------------------------------


def test_topics_are_joined_and_unknown_ones_passed_over(owner, moved_clock):
    all_of_them, urgent = add_phone(owner), add_phone(owner, minPriority=5)
    for priority in (3, 5):
        moved_clock.advance(1)
        sent(owner, str(priority), priority=priority)
    joined = f"{all_of_them.topic},unknown,{urgent.topic}"
    got = [(one["topic"], one["message"]) for one in all_of_them.messages(topics=joined)]
    assert got == [(all_of_them.topic, "3"), (all_of_them.topic, "5"), (urgent.topic, "5")]


def test_a_request_names_at_most_twenty_topics(android):
    guesses = [f"guess{number}" for number in range(20)]
    refused = android.get("auth", topics=",".join([android.topic, *guesses]))
    error = "invalid request: more than 20 topics"
    assert (refused.status_code, refused.json) == (400, {"code": 40009, "http": 400, "error": error})
    assert android.get("auth", topics=",".join([android.topic, *guesses[1:]])).status_code == 200


def test_a_topic_shows_only_its_owners_messages(service, owner, android):
    service.account("other@example.org")
    other = service.caller("other@example.org")
    others_phone = add_phone(other)
    (one,) = sent(owner, "mine")
    assert others_phone.messages() == [] and others_phone.messages(f"id={one}") == []
    assert android.bodies() == ["mine"]
