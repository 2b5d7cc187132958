"""An assistant asks the owner: the tool `ask`, and waiting with `get_notification`."""

from unittest.mock import ANY

from tests.support.assistants import call, described
from tests.support.rows import each


def test_a_question_is_a_notification_with_buttons_that_expires(owner, moved_clock):
    result = call(owner, "ask", {"question": "Deploy?", "answers": ["Yes", "No"]})
    (sent,) = owner.listed()
    assert result["structuredContent"] == {"ok": True, "notification": sent}
    assert sent == {
        "id": ANY,
        "title": "MCP - Question",
        "body": "Deploy?",
        "status": "delivered",
        "createdAt": moved_clock.ms,
        "expiresAt": moved_clock.ms + 3_600_000,
        "actions": [{"label": "Yes", "answer": "Yes"}, {"label": "No", "answer": "No"}],
    }


GOOD = {"question": "Deploy?", "answers": ["Yes", "No"]}
WRONG_QUESTIONS = [
    *(("question", wrong) for wrong in (None, 7, "", " ", "q" * 10_001)),
    *(("answers", wrong) for wrong in (None, "Yes", [], ["Yes"], ["a"] * 4, {})),
    *(("answers[1]", ["Yes", wrong]) for wrong in (None, 7, "", "\n", "a" * 41)),
    *(("timeoutS", wrong) for wrong in (9, 604_801, 60.5, "60", True, -1)),
]


@each("part, wrong", WRONG_QUESTIONS)
def test_a_question_that_is_wrong_is_refused_with_the_name_of_the_argument(owner, part, wrong):
    result = call(owner, "ask", {**GOOD, part.partition("[")[0]: wrong})
    assert result["isError"] and result["content"][0]["text"].startswith(f"{part} ")
    assert owner.listed() == []


def test_a_timeout_that_is_null_is_absent(owner, moved_clock):
    sent = call(owner, "ask", {**GOOD, "timeoutS": None})["structuredContent"]["notification"]
    assert sent["expiresAt"] == moved_clock.ms + 3_600_000


@each("timeout_s", [10, 604_800])
def test_ask_enforces_the_limits_of_its_schema(owner, moved_clock, timeout_s):
    longest = {"question": "q" * 10_000, "answers": ["😀" * 40, "b", "c"], "timeoutS": timeout_s}
    sent = call(owner, "ask", longest)["structuredContent"]["notification"]
    assert sent["expiresAt"] == moved_clock.ms + timeout_s * 1000
    schema = described(owner)["ask"]["inputSchema"]["properties"]
    assert (schema["timeoutS"]["minimum"], schema["timeoutS"]["maximum"]) == (10, 604_800)
    assert schema["answers"] == {
        **{"type": "array", "description": ANY, "minItems": 2, "maxItems": 3},
        "items": {"type": "string", "minLength": 1, "maxLength": 40},
    }


def test_the_tool_says_that_silence_is_no_answer(owner):
    said = described(owner)["ask"]["description"]
    assert "get_notification" in said and "silence is never a yes" in said


def test_a_wait_that_is_wrong_is_refused(owner):
    sent = call(owner, "ask", GOOD)["structuredContent"]["notification"]
    for wrong in (0, 26, -1, 1.5, True, "x"):
        result = call(owner, "get_notification", {"id": sent["id"], "wait": wrong})
        assert result["isError"] and result["content"][0]["text"].startswith("wait must be")
