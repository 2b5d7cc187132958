"""A caller's own keys: generating, listing, revoking, `lastUsedAt`."""

import hashlib
import re
from unittest.mock import ANY

import models
from core import accounts
from store import database, sqlite
from tests.support.answers import error
from tests.support.postgresql import sqlite_only
from tests.support.rows import each


def generate(caller, name="ci"):
    answer = caller.post("/api-keys/generate", {"name": name})
    assert answer.status_code == 201, answer.json
    return answer.json["apiKey"]


def key_list(caller):
    answer = caller.get("/api-keys")
    assert answer.status_code == 200 and set(answer.json) == {"ok", "apiKeys"}
    return answer.json["apiKeys"]


def listed(caller, key_id):
    (found,) = [key for key in key_list(caller) if key["id"] == key_id]
    return found


def using(caller, key):
    """The same client with another key."""
    return type(caller)(caller.service, key["fullKey"])


# Generating


def test_a_generated_key_is_answered_once_in_full(owner, moved_clock):
    answer = owner.post("/api-keys/generate", {"name": "ci"})
    assert answer.status_code == 201
    assert answer.json == {
        "ok": True,
        "apiKey": {"id": ANY, "name": "ci", "keyPreview": ANY, "fullKey": ANY, "createdAt": moved_clock.ms},
    }
    key = answer.json["apiKey"]
    assert re.fullmatch(r"sk_test_[0-9a-f]{48}", key["fullKey"])
    assert key["keyPreview"] == key["fullKey"][:16]
    assert type(key["id"]) is str


@each(
    "name, kept",
    [
        ("x", "x"),
        ("  ci  ", "ci"),
        ("\t\nci\u00a0\u3000", "ci"),
        ("two words", "two words"),
        ("n" * 100, "n" * 100),
        (" " * 50 + "n" * 100 + " " * 50, "n" * 100),
        ("😀" * 100, "😀" * 100),
        ("<b>&\"'", "<b>&\"'"),
    ],
)
def test_a_name_of_1_to_100_characters_is_kept_trimmed(owner, name, kept):
    key = generate(owner, name)
    assert (key["name"], listed(owner, key["id"])["name"]) == (kept, kept)


@each("name", ["", " ", "\t\n", "\u00a0\u3000", "n" * 101, "😀" * 101, " " + "n" * 101 + " "])
def test_a_name_that_is_blank_or_above_100_characters_is_refused(owner, name):
    answer = owner.post("/api-keys/generate", {"name": name})
    assert (answer.status_code, answer.json) == (400, error(400))
    assert len(key_list(owner)) == 1


# At most 1,000 live keys an account


def test_an_account_has_at_most_1000_live_keys(service, pro, monkeypatch):
    assert accounts.MAX_LIVE_KEYS == 1_000
    monkeypatch.setattr(accounts, "MAX_LIVE_KEYS", 3)
    first = generate(pro, "by request")
    assert service.flask("key", "create", "pro@example.org", "the last").exit_code == 0
    refused = pro.post("/api-keys/generate", {"name": "one too many"})
    assert (refused.status_code, refused.json) == (400, error(400))
    by_command = service.flask("key", "create", "pro@example.org", "one too many")
    assert by_command.exit_code == 1 and "sk_test_" not in by_command.output
    pro.delete(f"/api-keys/{first['id']}")
    generate(pro, "in its place")
    assert pro.post("/api-keys/generate", {"name": "again"}).status_code == 400
    assert len(key_list(pro)) == 4  # the revoked one is still listed


# Listing


def test_the_list_has_every_key_newest_first_and_none_in_full(owner, moved_clock):
    moved_clock.advance(1)
    first = generate(owner, "first")
    second = generate(owner, "second")
    moved_clock.advance(1)
    third = generate(owner, "third")
    answer = owner.get("/api-keys")
    assert answer.status_code == 200
    assert answer.json == {
        "ok": True,
        "apiKeys": [
            *(
                {name: key[name] for name in ("id", "name", "keyPreview", "createdAt")} | {"revokedAt": None}
                for key in (third, second, first)
            ),
            {
                "id": ANY,
                "name": "test",
                "keyPreview": owner.key[:16],
                "createdAt": moved_clock.ms - 2_000,
                "lastUsedAt": moved_clock.ms,
                "revokedAt": None,
            },
        ],
    }


# Revoking


def test_a_revoked_key_stops_at_once_and_stays_in_the_list_as_it_was_when_first_revoked(owner, moved_clock):
    key = generate(owner)
    other = using(owner, key)
    assert other.get("/stats").status_code == 200
    used_at = moved_clock.ms
    moved_clock.advance(5)
    revoked_at = moved_clock.ms
    for _ in range(2):
        answer = owner.delete(f"/api-keys/{key['id']}")
        assert (answer.status_code, answer.json) == (200, {"ok": True})
        refused = other.get("/stats")
        assert (refused.status_code, refused.json) == (401, error(401, "UNAUTHORIZED"))
        shown = listed(owner, key["id"])
        assert (shown["revokedAt"], shown["lastUsedAt"]) == (revoked_at, used_at)
        moved_clock.advance(100)


def test_neither_the_key_nor_its_preview_serves_as_its_id(owner):
    key = generate(owner)
    for other in (key["fullKey"], key["keyPreview"], key["name"], key["id"].upper() + "x"):
        assert owner.delete(f"/api-keys/{other}").status_code == 404
    assert using(owner, key).get("/stats").status_code == 200


# lastUsedAt


def test_last_used_is_true_to_within_a_second(owner, moved_clock):
    key = generate(owner)
    for step in (3, 0.3, 0.9, 1.5, 0.999, 3_600):
        moved_clock.advance(step)
        using(owner, key).get("/stats")
        used_at = moved_clock.ms
        moved_clock.advance(30)
        assert abs(listed(owner, key["id"])["lastUsedAt"] - used_at) <= 1_000


# Only the hash is kept


@sqlite_only
def test_only_a_keys_sha_256_is_on_the_disk(owner, service):
    keys = [owner.key, generate(owner)["fullKey"]]
    for key in keys:
        owner.service.client.get("/api/v1/stats", headers={"Authorization": f"Bearer {key}"})
    stored = b"".join(file.read_bytes() for file in service.data_dir.rglob("*") if file.is_file())
    for key in keys:
        assert key.encode() not in stored and key[16:].encode() not in stored
        assert bytes.fromhex(key[8:]) not in stored
        assert hashlib.sha256(key.encode()).digest() in stored


@sqlite_only
def test_of_very_many_revoked_keys_the_newest_1000_are_listed_and_every_live_one(owner, monkeypatch):
    assert models.MAX_LISTED_REVOKED == 1_000
    monkeypatch.setattr(models, "MAX_LISTED_REVOKED", 10)
    (mine,) = owner.get("/api-keys").json["apiKeys"]
    columns = "id, account_seq, name, preview, key_hash, created_at, revoked_at"
    add = f"INSERT INTO api_key ({columns}) VALUES (?, 1, ?, ?, ?, 1, 2)"
    with database.transaction(database.EVERYBODY):
        sqlite.connection().executemany(add, [(f"id{n}", f"name {n}", "sk_test_", n.to_bytes(32)) for n in range(12)])
    listed = [key["name"] for key in owner.get("/api-keys").json["apiKeys"]]
    assert listed == [f"name {n}" for n in range(11, 1, -1)] + [mine["name"]]
