"""`flask key`: create, list, revoke."""

import re

import pytest

from tests.support.accounts import OWNER
from tests.support.commands import FULL_KEY, UNRULY, key_columns, printed, said

TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_key_create_prints_the_full_key_alone(owned):
    assert FULL_KEY.fullmatch(printed(owned("key", "create", OWNER, "backup script")))


def test_a_second_live_key_with_the_same_name_is_refused(owned):
    printed(owned("key", "create", OWNER, "backup"))
    assert said(owned("key", "create", OWNER, "backup")).startswith("Error: There is already an API key “backup”.")


def test_a_created_key_works_at_once(service, owned):
    full_key = printed(owned("key", "create", OWNER, "backup script"))
    answer = service.client.get("/api/v1/stats", headers={"Authorization": f"Bearer {full_key}"})
    assert answer.status_code == 200


def test_key_list_prints_id_preview_name_created_last_used_revoked(service, owned, moved_clock):
    caller = service.caller(OWNER, "backup script")
    (made,) = caller.get("/api-keys").json["apiKeys"]
    ((key_id, preview, name, created, last_used, revoked),) = key_columns(owned)
    assert (key_id, preview, name) == (made["id"], caller.key[:16], "backup script")
    assert (created, last_used, revoked) == ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", "-")


def test_a_key_that_was_never_used_has_a_dash_for_last_used(owned):
    owned("key", "create", OWNER, "unused")
    ((*_, created, last_used, revoked),) = key_columns(owned)
    assert TIME.fullmatch(created) and (last_used, revoked) == ("-", "-")


def test_key_list_keeps_revoked_keys_with_the_time(owned, moved_clock):
    owned("key", "create", OWNER, "old")
    ((key_id, *_),) = key_columns(owned)
    moved_clock.advance(60)
    owned("key", "revoke", OWNER, key_id)
    ((*_, revoked),) = key_columns(owned)
    assert revoked == "2026-11-21T10:01:00Z"


def test_key_list_is_newest_first_a_line_each(owned):
    for name in ("first", "second", "third"):
        owned("key", "create", OWNER, name)
    assert [columns[2] for columns in key_columns(owned)] == ["third", "second", "first"]


def test_key_list_never_shows_a_full_key(owned):
    full_key = printed(owned("key", "create", OWNER, "secret"))
    assert full_key[16:] not in owned("key", "list", OWNER).stdout


def test_key_list_shows_no_other_accounts_keys(service, owned):
    service.account("other@example.org")
    owned("key", "create", "other@example.org", "theirs")
    assert key_columns(owned) == []


def test_key_revoke_prints_one_line_and_the_key_stops_working_at_once(service, owned):
    caller = service.caller(OWNER)
    ((key_id, *_),) = key_columns(owned)
    printed(owned("key", "revoke", OWNER, key_id))
    assert caller.get("/stats").status_code == 401


def test_a_second_revoke_keeps_the_first_time(owned, moved_clock):
    owned("key", "create", OWNER, "old")
    ((key_id, *_),) = key_columns(owned)
    owned("key", "revoke", OWNER, key_id)
    before = key_columns(owned)
    moved_clock.advance(60)
    printed(owned("key", "revoke", OWNER, key_id))
    assert key_columns(owned) == before


def test_another_accounts_key_cannot_be_revoked(service, owned):
    service.account("other@example.org")
    theirs = service.caller("other@example.org")
    ((key_id, *_),) = key_columns(owned, "other@example.org")
    said(owned("key", "revoke", OWNER, key_id))
    assert theirs.get("/stats").status_code == 200


@pytest.mark.parametrize("name", ["", "   ", "\n", "x" * 101])
def test_a_key_name_has_1_to_100_characters_after_trimming(owned, name):
    assert "name" in said(owned("key", "create", OWNER, name))
    assert key_columns(owned) == []


@pytest.mark.parametrize("name, kept", [("  trimmed ", "trimmed"), ("x" * 100, "x" * 100), ("漢字 😀", "漢字 😀")])
def test_a_key_name_is_kept_trimmed(owned, name, kept):
    printed(owned("key", "create", OWNER, name))
    assert key_columns(owned)[0][2] == kept


@pytest.mark.parametrize("name", UNRULY)
def test_a_key_name_with_control_characters_cannot_break_a_line(owned, name):
    printed(owned("key", "create", OWNER, name))
    (columns,) = key_columns(owned)
    assert len(columns) == 6 and columns[2].isprintable()
