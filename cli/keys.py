"""The commands for API keys: `key …`."""

import click

from cli.base import Group, Row, line, moment, of_account, print_list, with_json
from core import accounts, api_keys
from core.api_keys import MAX_LIFE_MS, MIN_LIFE_MS
from core.durations import seconds_of
from models import Account, ApiKey
from process import clock
from store.key_limits import FULL
from web import shapes

key = Group("key", help="Manage API keys.")


@key.command("create")
@of_account
@click.argument("name")
@click.option("--scope", default=FULL, help="What it may do: full (the default), send or read.")
@click.option("--expires", metavar="DURATION", help="When it stops working, such as 90d; without it, never.")
def create_key(owner: Account, name: str, scope: str, expires: str | None) -> None:
    """Create an API key and print it. It is shown only this once.

    A script needs no more than --scope send: with that it cannot read the history.
    """
    now = clock.now_ms()
    life_s = expires and seconds_of(expires, "expires", MIN_LIFE_MS // 1000, MAX_LIFE_MS // 1000)
    limits = api_keys.limits(scope, now + life_s * 1000 if life_s else None, now, "expires")
    _, full_key = accounts.create_key(owner.seq, name, now, limits=limits)
    click.echo(full_key)


@key.command("list")
@of_account
@with_json
def list_keys(owner: Account, as_json: bool) -> None:
    """List the API keys, revoked ones too.

    A line is: id, preview, name, created, last used, revoked. Scope and expiry follow if any key has them.
    """
    keys = ApiKey.of_account(owner.seq)
    limits = any(one.scope != FULL or one.expires_at is not None for one in keys)
    more = ("scope", "expires") if limits else ()
    headings = ("id", "preview", "name", "created", "last used", "revoked", *more)
    print_list("keys", headings, [_row(one, limits) for one in keys], as_json)


def _row(one: ApiKey, has_limits: bool) -> Row:
    times = map(moment, (one.created_at, one.last_used_at, one.revoked_at))
    limits = (one.scope, moment(one.expires_at)) if has_limits else ()
    return Row(shapes.listed_key(one), (one.id, one.preview, one.name, *times, *limits))


@key.command("revoke")
@of_account
@click.argument("key_id")
def revoke_key(owner: Account, key_id: str) -> None:
    """Revoke a key. This cannot be undone."""
    accounts.revoke_key(owner.seq, key_id, clock.now_ms())
    click.echo(f"Revoked the key {line(key_id)}.")
