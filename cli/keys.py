"""The commands for API keys: `key …`."""

import click

from cli.base import Group, Row, line, moment, print_list, with_json
from core import accounts, api_keys
from core.api_keys import MAX_LIFE_MS, MIN_LIFE_MS
from core.durations import seconds_of
from models import ApiKey
from process import clock
from store.key_limits import FULL
from web import shapes

key = Group("key", help="Manage API keys.")


@key.command("create")
@click.argument("email")
@click.argument("name")
@click.option("--scope", default=FULL, help="What it may do: full (the default), send or read.")
@click.option("--expires", metavar="DURATION", help="When it stops working, such as 90d; without it, never.")
def create_key(email: str, name: str, scope: str, expires: str | None) -> None:
    """Create an API key and print it. It is shown only this once.

    A script needs no more than --scope send: with that it cannot read the history.
    """
    account, now = accounts.find_account(email), clock.now_ms()
    life_s = expires and seconds_of(expires, "expires", MIN_LIFE_MS // 1000, MAX_LIFE_MS // 1000)
    limits = api_keys.limits(scope, now + life_s * 1000 if life_s else None, now, "expires")
    _, full_key = accounts.create_key(account.seq, name, now, is_distinct=True, limits=limits)
    click.echo(full_key)


@key.command("list")
@click.argument("email")
@with_json
def list_keys(email: str, as_json: bool) -> None:
    """List the API keys, revoked ones too.

    A line is: id, preview, name, created, last used, revoked. Scope and expiry follow if any key has them.
    """
    keys = ApiKey.of_account(accounts.find_account(email).seq)
    limits = any(one.scope != FULL or one.expires_at is not None for one in keys)
    rows = (
        Row(
            shapes.listed_key(one),
            (
                *(one.id, one.preview, one.name),
                *map(moment, (one.created_at, one.last_used_at, one.revoked_at)),
                *((one.scope, moment(one.expires_at)) if limits else ()),
            ),
        )
        for one in keys
    )
    more = ("scope", "expires") if limits else ()
    print_list("keys", ("id", "preview", "name", "created", "last used", "revoked", *more), rows, as_json)


@key.command("revoke")
@click.argument("email")
@click.argument("key_id")
def revoke_key(email: str, key_id: str) -> None:
    """Revoke a key. This cannot be undone."""
    accounts.revoke_key(accounts.find_account(email).seq, key_id, clock.now_ms())
    click.echo(f"Revoked the key {line(key_id)}.")
