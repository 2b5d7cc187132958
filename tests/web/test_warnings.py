"""Warnings of fields that look mistyped, in the answers to sends and events; times in seconds."""

from tests.support.rows import each
from tests.support.service import last
from tests.support.times import at_little_cost
from wire.notification import FIELD_NAMES
from wire.unknown_fields import MAX_WARNINGS, warnings


@each(
    "sent, field",
    [
        ("prioritiy", "priority"), ("Priority", "priority"), ("priorty", "priority"), ("piroirty", "priority"),
        ("deliver_at", "deliverAt"), ("expiresat", "expiresAt"), ("acknowledged", "acknowledge"), ("titel", "title"),
        ("titels", "title"), ("tga", "tag"), ("tags", "tag"), ("uri", "url"), ("boddy", "body"), ("bdoy", "body"),
        ("prrioritty", "priority"), ("prio", None), ("ttle1s", None), ("tagss", None), ("ody2", None), ("u", None),
        ("ur", None), ("message", None), ("", None), ("x" * 1_000, None),
    ],
)  # fmt: skip
def test_a_field_one_or_two_letters_from_a_known_one_is_told_of(sent, field):
    # One letter where either word has three or four: "time" would otherwise be taken for "title".
    expected = [f"{sent} is not known; did you mean {field}?"] if field else []
    assert warnings([sent, "title"], FIELD_NAMES) == expected


def test_a_send_is_answered_with_warnings_and_without_them_where_all_is_known(owner):
    sent = owner.post("/notifications/send", {"title": "t", "body": "b", "prioritiy": 5, "custom": 1})
    assert sent.json["warnings"] == ["prioritiy is not known; did you mean priority?"]
    assert set(sent.json) == {"ok", "notification", "warnings"} and "priority" not in sent.json["notification"]
    for more in ({}, {"priority": 5}, {"custom": 1}):
        sent = owner.post("/notifications/send", {"title": "t", "body": "b", **more})
        assert set(sent.json) == {"ok", "notification"}


def test_an_event_is_answered_with_warnings_unless_a_template_makes_its_title(service, owner, hook):
    event = {"titel": "t", "Mesage": "m", "level": 1, "TEXT": "x"}
    expected = ["titel is not known; did you mean title?", "Mesage is not known; did you mean message?"]
    assert hook.post(event).json["warnings"] == expected
    assert last(owner) == ("Backups", "x")
    assert "warnings" not in service.alert("--title", "{{ titel }}", name="Own").post(event).json
    assert service.alert("--body", "{{ titel }}", name="Body").post(event).json["warnings"] == expected
    assert "warnings" not in hook.post({"title": "t", "Message": "m", "attachments": [], "level": 1}).json
    hook.set("--inactive")
    assert "warnings" not in hook.post(event).json


@each(
    "fields",
    [{f"titl{number}": 1 for number in range(10_000)}, {f"{'x' * 20}{number}": 1 for number in range(30_000)}],
)
def test_many_unknown_fields_cost_little_and_give_few_warnings(fields):
    with at_little_cost(1.0):
        assert len(warnings(fields, FIELD_NAMES)) <= MAX_WARNINGS


@each("field", ["deliverAt", "expiresAt"])
def test_a_time_in_seconds_is_refused_as_such(owner, moved_clock, field):
    for time_, sentence in [
        (moved_clock.ms // 1_000 + 3_600, f"{field} looks like seconds: it takes milliseconds."),
        (5, f"{field} must be in the future."),
    ]:
        answer = owner.post("/notifications/send", {"title": "t", "body": "b", field: time_})
        assert (answer.status_code, answer.json["error"]) == (400, sentence)
