"""Buttons, repeats and "Acknowledged" on a device that fetches."""

from urllib.parse import urlsplit

import pytest

from core import streams
from core.streams import Store, Subscription
from core.subscriptions import known
from tests.support.alarms import rung
from tests.support.ntfy_app import add_phone
from wire.ntfy import Publication
from wire.ntfy_stream import wanted

YES_NO = [{"label": "Yes", "answer": "yes"}, {"label": "Log", "url": "https://example.org/log"}]


class Stream:
    """A stream as the hub serves it, a look after the other."""

    def __init__(self, android, since="none", **more):
        asked = wanted(Publication({}, {"since": since, **more}), 0)
        topics = known([android.topic])
        self.store, self.subscription = Store(), Subscription(topics, android.topic, asked, lambda message: message)
        assert self.next()["event"] == "open"

    def next(self):
        message = self.subscription.next()
        self.subscription.taken()
        return message

    def new(self):
        """The messages that came since the last look."""
        assert self.store.look([self.subscription], True) == []
        found = [message for message in iter(self.next, None) if message]  # b"": it passed over one
        self.store.settle([self.subscription])
        return found


@pytest.fixture
def alarm(owner, android):
    """Sends a notification that repeats each minute, and returns its id."""

    def send(**more):
        sent = {"title": "Fire", "body": "in the attic", "acknowledge": True} | more
        return owner.post("/notifications/send", sent).json["notification"]["id"]

    return send


def repeat(owner, moved_clock):
    moved_clock.advance(61)
    owner.service.work()


def press(android, action):
    return android.service.client.post(urlsplit(action["url"]).path)


def test_a_button_opens_its_address_or_sends_the_answer_to_us(owner, android):
    sent = owner.post("/notifications/send", {"title": "t", "body": "Deploy?", "actions": YES_NO}).json
    (message,) = android.messages()
    answer, link = message["actions"]
    assert (answer["action"], answer["method"], answer["clear"], answer["label"]) == ("http", "POST", True, "Yes")
    assert (link["action"], link["url"]) == ("view", "https://example.org/log")
    assert len({action["id"] for action in message["actions"]}) == 2
    assert press(android, answer).status_code == 200
    told = owner.get(f"/notifications/{sent['notification']['id']}").json["notification"]["answer"]
    assert (told["answer"], told["device"]) == ("yes", android.id)


def test_a_message_stored_while_a_stream_opens_arrives_on_it(owner, android, alarm, moved_clock, monkeypatch):
    look = streams.stored

    def look_just_before_it_is_stored(*found):
        before = look(*found)
        alarm(title="Smoke")
        owner.send(title="t", body="plain")
        return before

    alarm()
    with monkeypatch.context() as patch:
        patch.setattr(streams, "stored", look_just_before_it_is_stored)
        stream = Stream(android)
    assert [message["title"] for message in stream.new()] == ["MCP - Smoke", "MCP - t"]
    repeat(owner, moved_clock)
    assert sorted(message["title"] for message in stream.new()) == ["MCP - Fire", "MCP - Smoke"]


def test_a_stream_of_new_messages_has_no_scheduled_one_that_came_just_before(owner, android, moved_clock):
    for minutes, messages in ((1, []), (2, ["later"])):
        at = moved_clock.ms + 60_000 * minutes
        owner.post("/notifications/send", {"title": "t", "body": "later", "deliverAt": at})
        repeat(owner, moved_clock)
        stream = Stream(android)
        repeat(owner, moved_clock)
        assert [message["message"] for message in stream.new()] == messages


def test_a_stream_with_an_id_gives_that_message_alone(owner, android):
    stream = Stream(android, id="0" * 32)
    owner.send(title="t", body="another")
    assert stream.new() == []


def test_each_repeat_is_a_message_of_its_own_in_the_same_place(owner, android, alarm, moved_clock):
    id_, stream = alarm(), Stream(android, since="all")
    messages = stream.new()
    for _ in range(2):
        assert stream.new() == []
        repeat(owner, moved_clock)
        messages += stream.new()
    assert [message["id"] for message in messages] == [id_, f"{id_}-1", f"{id_}-2"]
    assert {message["sequence_id"] for message in messages} == {id_}
    assert {message["priority"] for message in messages} == {5}
    assert owner.get(f"/notifications/{id_}").json["notification"]["repeats"] == 2


def test_the_last_repeat_is_on_a_stream_that_opened_before_and_looks_after_the_end(
    owner, android, alarm, moved_clock
):
    id_ = alarm(acknowledge={"everyS": 60, "forS": 60})
    stream = Stream(android)
    repeat(owner, moved_clock)
    repeat(owner, moved_clock)
    assert (rung(owner, id_), [message["id"] for message in stream.new()]) == (("expired", 1), [f"{id_}-1"])


def test_a_polling_phone_gets_a_repeat_of_a_notification_older_than_its_last_message(
    owner, android, alarm, moved_clock
):
    id_ = alarm(acknowledge={"everyS": 60, "forS": 100})
    moved_clock.advance(1)
    owner.send(title="t", body="newer")
    assert len(android.poll()) == 2
    asked = f"since={android.last_id}"
    assert android.messages(asked) == []
    repeat(owner, moved_clock)
    assert [message["id"] for message in android.messages(asked)] == [f"{id_}-1"]
    repeat(owner, moved_clock)
    assert (rung(owner, id_), android.messages(asked)) == (("expired", 1), [])


def test_a_phone_woken_with_an_id_fetches_the_newest_repeat(owner, android, alarm, moved_clock):
    id_ = alarm()
    repeat(owner, moved_clock)
    assert android.fetch(id_)["id"] == android.fetch(f"{id_}-1")["id"] == f"{id_}-1"


def test_acknowledging_on_one_phone_ends_an_alarm_and_updates_the_others_silently(owner, android, alarm, moved_clock):
    other = add_phone(owner, name="Tablet")
    id_ = alarm()
    streams = Stream(android), Stream(other)
    repeat(owner, moved_clock)
    (message,), _ = (stream.new() for stream in streams)
    acknowledge = message["actions"][0]
    assert acknowledge["label"] == "Acknowledge" and press(android, acknowledge).status_code == 200
    assert streams[0].new() == []
    (told,) = streams[1].new()
    assert (told["id"], told["sequence_id"], told["priority"]) == (f"{id_}-a", id_, 2)
    assert told["message"] == "in the attic\n\nAcknowledged on ntfy app." and "actions" not in told
    repeat(owner, moved_clock)
    assert [stream.new() for stream in streams] == [[], []]


def test_a_phone_that_has_an_acknowledged_alarm_does_not_get_it_again(owner, android, alarm, moved_clock):
    other, id_ = add_phone(owner), alarm()
    assert [message["id"] for message in other.poll()] == [id_]
    moved_clock.advance(1)
    owner.send("t", "in between")
    moved_clock.advance(1)
    press(android, android.messages()[0]["actions"][0])
    assert [message["id"] for message in other.poll()][1:] == [f"{id_}-a"]
    assert other.messages(f"since={id_}-a") == []
    assert other.bodies(f"since={id_}")[0] == "in between"


def test_a_repeat_reaches_a_phone_that_was_added_later(owner, alarm, moved_clock):
    id_ = alarm()
    later = add_phone(owner)
    assert later.messages() == []
    repeat(owner, moved_clock)
    assert [message["id"] for message in later.messages()] == [f"{id_}-1"]


def test_a_stream_to_a_slow_client_is_closed_and_resumes_with_the_waiting_messages(owner, android, monkeypatch):
    monkeypatch.setattr(streams, "MAX_REMEMBERED", 2)
    for number in range(4):
        owner.send("t", str(number))
    stream = Stream(android, since="all")
    for number in (4, 5):
        owner.send("t", str(number))
    assert stream.store.look([stream.subscription], True) == []
    owner.send("t", "6")
    stream.store.look([stream.subscription], True)
    assert stream.store.look([stream.subscription], True) == [stream.subscription]
    assert len(Stream(android, since="all").new()) == 7


def test_at_the_end_of_a_snooze_a_stream_and_a_poll_have_another_message(owner, android, moved_clock):
    stream = Stream(android)
    sent = owner.post("/notifications/send", {"title": "Fire", "body": "out"}).json["notification"]["id"]
    assert [one["id"] for one in stream.new()] == [sent]
    assert owner.post(f"/notifications/{sent}/snooze", {"forS": 3600}).status_code == 200
    moved_clock.advance(3599)
    owner.service.work()
    assert stream.new() == [] and android.messages(f"since={sent}") == []
    moved_clock.advance(1)
    owner.service.work()
    assert [one["id"] for one in stream.new()] == [f"{sent}-1"]
    assert [one["id"] for one in android.messages(f"since={sent}")] == [f"{sent}-1"]
    assert android.messages(f"since={sent}-1") == []


@pytest.mark.parametrize("more", [{}, {"acknowledge": True}])
def test_a_mute_holds_what_was_snoozed_back_from_a_stream_and_a_poll(owner, android, moved_clock, more):
    stream = Stream(android)
    sent = owner.post("/notifications/send", {"title": "Fire", "body": "out", **more}).json["notification"]["id"]
    assert [one["id"] for one in stream.new()] == [sent]
    assert owner.post(f"/notifications/{sent}/snooze", {"forS": 60}).status_code == 200
    owner.post("/mutes", {"what": "all", "forS": 600, "urgentPasses": False})
    moved_clock.advance(60)
    owner.service.work()
    assert stream.new() == [] and android.messages(f"since={sent}") == []
    moved_clock.advance(540)
    owner.service.work()
    assert [one["id"] for one in stream.new()] == [f"{sent}-1"]
    assert [one["id"] for one in android.messages(f"since={sent}")] == [f"{sent}-1"]


@pytest.mark.parametrize("more", [{}, {"acknowledge": {"everyS": 60, "forS": 60}}])
def test_what_does_not_or_no_longer_repeat_is_acknowledged_on_a_stream_and_in_a_poll_too(
    owner, android, moved_clock, more
):
    stream = Stream(android)
    sent = owner.post("/notifications/send", {"title": "Fire", "body": "out", **more}).json["notification"]["id"]
    assert [one["id"] for one in (*stream.new(), *android.poll())] == [sent, sent]
    moved_clock.advance(3600)
    owner.service.work()
    assert (stream.new(), android.poll()) == ([], [])
    owner.post(f"/notifications/{sent}/acknowledge")
    assert [one["id"] for one in (*stream.new(), *android.poll())] == [f"{sent}-a", f"{sent}-a"]


def test_what_is_replaced_while_it_is_held_after_its_snooze_comes_no_more(owner, android, moved_clock):
    stream = Stream(android)
    sent = owner.post("/notifications/send", {"title": "Fire", "body": "out", "tag": "a"}).json["notification"]["id"]
    assert [one["id"] for one in (*stream.new(), *android.poll())] == [sent, sent]
    owner.post(f"/notifications/{sent}/snooze", {"forS": 60})
    owner.post("/mutes", {"what": "all", "forS": 600})
    moved_clock.advance(60)
    owner.service.work()
    owner.post("/notifications/send", {"title": "Fire", "body": "again", "tag": "a"})
    owner.service.work()
    assert (stream.new(), android.poll()) == ([], [])
