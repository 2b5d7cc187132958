"""The commands for API keys: `key …`."""

import click

from cli.base import Group, Row, line, moment, print_list, with_json
from core import accounts
from models import ApiKey
from process import clock
from web import shapes

key = Group("key", help="Manage API keys.")


@key.command("create")
@click.argument("email")
@click.argument("name")
def create_key(email: str, name: str) -> None:
    """Create an API key and print it. It is shown only this once."""
    _, full_key = accounts.create_key(accounts.find_account(email).seq, name, clock.now_ms(), is_distinct=True)
    click.echo(full_key)


@key.command("list")
@click.argument("email")
@with_json
def list_keys(email: str, as_json: bool) -> None:
    """List the API keys, revoked ones too.

    A line is: id, preview, name, created, last used, revoked.
    """
    rows = (
        Row(
            shapes.listed_key(one),
            (one.id, one.preview, one.name, *map(moment, (one.created_at, one.last_used_at, one.revoked_at))),
        )
        for one in ApiKey.of_account(accounts.find_account(email).seq)
    )
    print_list("keys", ("id", "preview", "name", "created", "last used", "revoked"), rows, as_json)


@key.command("revoke")
@click.argument("email")
@click.argument("key_id")
def revoke_key(email: str, key_id: str) -> None:
    """Revoke a key. This cannot be undone."""
    accounts.revoke_key(accounts.find_account(email).seq, key_id, clock.now_ms())
    click.echo(f"Revoked the key {line(key_id)}.")
