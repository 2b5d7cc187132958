"""`flask key`: create, list, revoke."""

from tests.support.accounts import OWNER
from tests.support.commands import key_columns


def test_key_list_prints_id_preview_name_created_last_used_revoked(service, owned, moved_clock):
    caller = service.caller(OWNER, "backup script")
    (made,) = caller.get("/api-keys").json["apiKeys"]
    ((key_id, preview, name, created, last_used, revoked),) = key_columns(owned)
    assert (key_id, preview, name) == (made["id"], caller.key[:16], "backup script")
    assert (created, last_used, revoked) == ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", "-")


def test_key_list_keeps_revoked_keys_with_the_time(owned, moved_clock):
    owned("key", "create", OWNER, "old")
    ((key_id, *_),) = key_columns(owned)
    moved_clock.advance(60)
    owned("key", "revoke", OWNER, key_id)
    ((*_, revoked),) = key_columns(owned)
    assert revoked == "2026-11-21T10:01:00Z"


def test_a_key_is_made_with_its_scope_and_expiry_which_the_list_then_shows(owned, moved_clock):
    owned("key", "create", OWNER, "script", "--scope", "send", "--expires", "90d")
    ((*_, scope, expires),) = key_columns(owned)
    assert (scope, expires) == ("send", "2027-02-19T10:00:00Z")


def test_a_script_that_runs_twice_makes_two_keys_of_one_name(owned):
    assert len({owned("key", "create", OWNER, "script").stdout for _ in range(2)}) == 2
    assert [name for _, _, name, *_ in key_columns(owned)] == ["script", "script"]
