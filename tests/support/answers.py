"""Answers to refused requests, and how answers may differ."""

import re
from unittest.mock import ANY

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
AT = re.compile(r"\bline (\d+),? column (\d+)")


def error(status, code="VALIDATION_ERROR", sentence=ANY):
    """The whole body of an error."""
    return {"ok": False, "error": sentence, "code": code, "statusCode": status}


def refusal(answer, status=400):
    """The sentence of a refused request."""
    assert (answer.status_code, answer.json) == (status, error(status))
    assert type(answer.json["error"]) is str and answer.json["error"]
    return answer.json["error"]


def unlike(answer):
    """An answer without what each has its own: two unknown ids must be answered alike in all else."""
    own = ("X-RateLimit-Remaining", "X-Request-Id")
    headers = {name: value for name, value in answer.headers if name not in own}
    return answer.status_code, answer.data, headers
