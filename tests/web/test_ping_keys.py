"""Pings by ping key and slug, as Healthchecks takes them: docs/watches.md."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import heartbeats
from tests.support.commands import lines_of
from tests.support.heartbeats import EMAIL, Pinged, told
from tests.support.rows import each


@pytest.fixture
def key(service, owner):
    return service.flask("heartbeat", "key", EMAIL).output.strip()


def test_the_ping_key_is_shown_and_replaced_by_the_command(service, owner, beat, key):
    assert re.fullmatch(r"[0-9A-Za-z]{22}", key)
    assert service.flask("heartbeat", "key", EMAIL).output == f"{key}\n"
    new = service.flask("heartbeat", "key", EMAIL, "--rotate").output.strip()
    assert service.flask("heartbeat", "key", EMAIL).output == f"{new}\n" != f"{key}\n"
    assert [service.client.get(f"/ping/{one}/backup").status_code for one in (key, new)] == [404, 200]


SIGNALS = {"": "up", "/start": "new", "/log": "new", "/fail": "down", "/0": "up", "/3": "down"}


@each("method, signal", itertools.product(["GET", "HEAD", "POST"], SIGNALS))
def test_a_slug_finds_the_heartbeat_by_its_name(service, owner, key, method, signal):
    name = f"{method} {signal[1:]}".strip()
    owner.post("/heartbeats", {"name": name, "periodS": 3_600})
    answer = service.client.open(f"/ping/{key}/{heartbeats.slug(name)}{signal}", method=method)
    assert (answer.status_code, answer.text) == (200, "" if method == "HEAD" else "OK")
    states = {watch["name"]: watch["state"] for watch in owner.get("/watches").json["watches"]}
    assert states[name] == SIGNALS[signal]


@each(
    "name, slug",
    [
        ("Nightly backup", "nightly-backup"),
        ("  A -- b__c. ", "a-b__c"),
        ("_x-", "x"),
        ("Größe №5", "groe-no5"),
        ("ﬁle²", "file2"),
        ("备份", ""),
    ],
)
def test_a_slug_is_made_as_healthchecks_makes_it(name, slug):
    assert heartbeats.slug(name) == slug


def test_create_makes_a_heartbeat_of_a_day_with_an_hours_grace(service, owner, key):
    assert service.client.post(f"/ping/{key}/db_dump").status_code == 404
    answers = [service.client.post(f"/ping/{key}/db_dump/fail?create=1", data=b"no space") for _ in range(2)]
    assert [(answer.status_code, answer.text) for answer in answers] == [(201, "Created"), (200, "OK")]
    (watch,) = owner.get("/watches").json["watches"]
    assert [watch[name] for name in ("name", "periodS", "graceS", "state")] == ["db_dump", 86_400, 3_600, "down"]
    assert told(owner) == [("db_dump is down", "It reported a failure.")]


@each(
    "path, status, said",
    [
        ("Backup?create=1", 400, "A slug has lower-case letters"),
        ("-x?create=1", 400, "A slug has lower-case letters"),
        ("%E5%A4%87?create=1", 400, "A slug has lower-case letters"),
        ("x" * 101 + "?create=1", 400, "100"),
        ("new/nonsense?create=1", 404, ""),
        ("new/start/x?create=1", 404, ""),
        ("new?create=0", 404, ""),
        ("new", 404, ""),
        ("", 404, ""),
    ],
)
def test_an_invalid_slug_creates_nothing(service, owner, key, path, status, said):
    answer = service.client.post(f"/ping/{key}/{path}")
    assert (answer.status_code, said in answer.json["error"]) == (status, True), answer.text
    assert lines_of(service, "heartbeat", "list", EMAIL) == []


def test_a_slug_of_several_is_refused(service, owner, key):
    for name in ("Back up", "back-up"):
        Pinged(service, owner, "--period", "1h", name=name)
    for path in (f"/ping/{key}/back-up", f"/ping/{key}/back-up?create=1"):
        answer = service.client.get(path)
        assert (answer.status_code, answer.json["error"][:14]) == (409, "Ambiguous slug")


def test_create_makes_one_heartbeat_of_requests_at_the_same_time(service, owner, key):
    def ping(_):
        return service.app.test_client().get(f"/ping/{key}/twice?create=1").status_code

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(ping, range(4))) == [200, 200, 200, 201]
    assert len(lines_of(service, "heartbeat", "list", EMAIL)) == 1


def test_beyond_a_hundred_heartbeats_create_is_refused(service, owner, key, monkeypatch):
    monkeypatch.setattr(heartbeats, "MAX_HEARTBEATS", 1)
    answers = [service.client.get(f"/ping/{key}/{name}?create=1") for name in ("one", "two")]
    assert answers[1].status_code == 400
    assert answers[1].json["error"] == "You already have 1 heartbeats. Delete one first."


def test_a_ping_key_reaches_only_its_own_account(service, owner, beat, key):
    service.account("other@example.org")
    theirs = service.flask("heartbeat", "key", "other@example.org").output.strip()
    assert service.client.get(f"/ping/{theirs}/backup").status_code == 404
    assert beat.state == "new"


def test_unknown_ping_keys_count_against_their_sender_as_unknown_uuids(service, beat, key, few):
    assert [service.client.get(f"/ping/{'A' * 22}/backup").status_code for _ in range(7)] == [404] * 6 + [429]
    assert service.client.get("/ping/00000000-0000-4000-8000-000000000000").status_code == 429
    assert service.client.get(f"/ping/{key}/backup").status_code == 200


def test_a_heartbeat_takes_60_pings_a_minute_by_slug_and_uuid_together(service, beat, key, few):
    statuses = [service.client.get(path).status_code for path in (beat.path, f"/ping/{key}/backup") for _ in range(4)]
    assert statuses == [200] * 6 + [429] * 2
    refused = [service.client.get(f"/ping/{key}/Q?create=1").status_code for _ in range(7)]
    assert refused == [400] * 6 + [429]


def test_the_ping_key_limits_with_its_account_and_is_in_no_log(service, beat, key, caplog):
    service.client.get(f"/ping/{key}/backup")
    service.flask("account", "delete", EMAIL, "--yes")
    assert service.client.get(f"/ping/{key}/backup").status_code == 404
    assert key not in caplog.text
