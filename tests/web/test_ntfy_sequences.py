"""DELETE /TOPIC/ID and PUT /TOPIC/ID/clear: what was sent with an ID is deleted, or acknowledged."""

from unittest.mock import ANY

from tests.support.alarms import detail, ring
from tests.support.ntfy_publishing import NOW, publish
from tests.support.rows import each


def event(name, sequence_id):
    return {"id": ANY, "time": NOW // 1_000, "event": name, "topic": "backups", "sequence_id": sequence_id}


def ids(caller):
    return [one["id"] for one in caller.listed()]


def test_the_newest_message_with_the_id_is_deleted(pro):
    first, newest = (publish(pro, "/backups/job-7").json["id"] for _ in range(2))
    other = publish(pro, "/backups/job-8").json["id"]
    answer = pro.request("DELETE", "/backups/job-7")
    assert (answer.status_code, answer.json) == (200, event("message_delete", "job-7"))
    assert ids(pro) == [other, first] and newest not in ids(pro)
    assert pro.request("DELETE", "/backups/job-7").status_code == 200
    assert ids(pro) == [other, first]


@each(
    "id_, tag",
    [
        *((name, name) for name in ("a", "docs", "app", "metrics", "json", "my.id", "größe")),
        ("x" * 65, "x" * 64),
        ("a%00%20", "a\ufffd"),
    ],
)
def test_an_id_may_be_any_text_and_is_cut(pro, id_, tag):
    sent = publish(pro, f"/backups/{id_}")
    assert (sent.status_code, sent.json["sequence_id"]) == (200, tag)
    assert pro.request("PUT", f"/backups/{id_}/clear").json == event("message_clear", tag)
    assert detail(pro, sent.json["id"])["acknowledgedAt"] == NOW
    assert pro.request("DELETE", f"/backups/{id_}").json == event("message_delete", tag) and ids(pro) == []


def test_a_message_without_an_id_has_its_own(pro):
    sent = publish(pro).json["id"]
    assert pro.request("DELETE", f"/backups/{sent}").json == event("message_delete", sent)
    assert ids(pro) == []


def test_a_delayed_message_that_is_deleted_is_never_sent(pro):
    publish(pro, "/backups/job-7", headers={"In": "1h"})
    pro.request("DELETE", "/backups/job-7")
    assert ids(pro) == []


@each("path", ["clear", "read"])
def test_the_newest_message_with_the_id_is_acknowledged(owner, browser, path):
    sent = ring(owner, tag=path)
    for _ in range(2):
        answer = owner.request("PUT", f"/backups/{path}/{path}")
        assert (answer.status_code, answer.json) == (200, event("message_clear", path))
        assert detail(owner, sent)["acknowledge"]["state"] == "acknowledged"


def test_a_message_that_does_not_repeat_is_acknowledged_too(pro):
    sent = publish(pro, "/backups/job-7").json["id"]
    assert pro.request("PUT", "/backups/job-7/clear").json == event("message_clear", "job-7")
    assert detail(pro, sent)["acknowledgedAt"] == NOW


def test_an_unknown_id_is_a_200_and_one_of_another_account_is_unknown(pro, owner, browser):
    sent = ring(owner, tag="job-7")
    for method, path in [
        ("DELETE", "/backups/job-7"),
        ("PUT", "/backups/job-7/clear"),
        ("DELETE", f"/backups/{sent}"),
    ]:
        assert pro.request(method, path).status_code == 200
    assert detail(owner, sent)["acknowledge"]["state"] == "waiting"
