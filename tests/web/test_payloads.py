"""Real senders' requests, replayed over HTTP.

The requests are in a folder beside the project; without it these tests are skipped.
"""

import csv
from unittest.mock import ANY

import pytest

from tests.support.payloads import EXPECTED, FOLDER
from tests.support.rows import each
from tests.support.service import Hook

if not FOLDER.is_dir():
    pytest.skip(f"no payloads in {FOLDER}", allow_module_level=True)

ALERT = "Name of the alert"


def table(path):
    """The rows of a manifest whose files are there."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if (path.parent / row["file"]).is_file()]


def request_head(body):
    """The method, the target and the content type that the sender used; a plain POST where its head was not kept."""
    head = body.with_suffix(".hdr")
    if not head.is_file():
        return "POST", "", {}
    first, *lines = head.read_text(encoding="utf-8").splitlines()
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    method, target, _ = first.split(" ")
    return method, target, {name: value for name, value in headers.items() if name.lower() == "content-type"}


def alert_of(owner, **fields):
    """An alert of an owner who has no other."""
    made = owner.post("/alerts", {"name": ALERT, **fields})
    return Hook(owner.service, None, made.json["alert"]["url"])


def assert_rendered(owner, answer, title, body):
    assert (answer.status_code, answer.json) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
    assert owner.listed() == [
        {
            "id": answer.json["notificationId"],
            "title": f"MCP - {title}".replace("{alert name}", ALERT),
            "body": body,
            "status": "delivered",
            "createdAt": ANY,
        }
    ]


@each("name", EXPECTED)
def test_a_senders_json_fills_the_templates_a_user_would_write(new_owner, name):
    expected, (_, owner) = EXPECTED[name], new_owner()
    data = (FOLDER / "json" / f"{name}.json").read_bytes()
    hook = alert_of(owner, title=expected["title_template"], body=expected["body_template"])
    answer = hook.post(data=data, headers={"Content-Type": "application/json"})
    assert_rendered(owner, answer, expected["expected_title"], expected["expected_body"])


@each("row", table(FOLDER / "form-payload" / "manifest.tsv"))
def test_a_senders_form_with_the_field_payload_fills_the_templates(new_owner, row):
    body, (_, owner) = FOLDER / "form-payload" / row["file"], new_owner()
    hook = alert_of(owner, title=row["title_template"], body=row["body_template"])
    answer = hook.post(data=body.read_bytes(), headers=request_head(body)[2])
    expected_body = row["expected_body"].replace("\\r", "\r").replace("\\n", "\n")
    assert_rendered(owner, answer, row["expected_title"], expected_body)


@each("row", table(FOLDER / "other-bodies" / "manifest.tsv"))
def test_other_bodies_of_real_senders_become_events_or_are_refused(service, new_owner, row):
    body, status = FOLDER / "other-bodies" / row["file"], int(row["expected_status"].split()[0])
    (_, owner), (method, target, headers) = new_owner(), request_head(body)
    query = target.partition("?")[2] if "query" in row["why"] else ""  # another one belongs to the user's own address
    answer = service.client.open(
        f"/p/{alert_of(owner).code}?{query}", method=method, data=body.read_bytes() or None, headers=headers
    )
    assert answer.status_code == status
    if status == 200:
        (notification,) = owner.listed()
        shown = notification["title"] + notification["body"]
        assert notification["body"].strip() and '{"' not in shown and "[{" not in shown
    else:
        assert answer.json == {"ok": False, "error": ANY, "code": "VALIDATION_ERROR", "statusCode": status}
        assert owner.listed() == []
