"""The command line: each file parses the arguments of a noun's commands, calls the core and prints the result.

It must not know requests or SQL. Every command but `import` can run while the service is running. An error is one
line on stderr with exit status 1.
"""

from collections.abc import Callable

import click
from flask import Flask

from cli.accounts import account
from cli.alerts import alert
from cli.backup import backup, import_file
from cli.base import OPEN_DATA, Group
from cli.definitions import apply_file, export_file
from cli.devices import device
from cli.follow import follow
from cli.heartbeats import heartbeat
from cli.keys import key
from cli.man_page import print_man_page
from cli.metrics import metric, rule
from cli.moving_in import import_gotify, import_healthchecks, import_ntfy
from cli.mutes import list_mutes, mute, unmute
from cli.notifications import history, send
from cli.service import examine, serve
from config import VERSION

pocketbell = Group("pocketbell", help="Manage Pocketbell and send. All but import works while the service runs.")
click.version_option(VERSION, message="Pocketbell %(version)s")(pocketbell)
_nouns = (account, key, alert, heartbeat, rule, device, follow, history, metric)
_of_files = (apply_file, export_file, backup, import_file, import_ntfy, import_gotify, import_healthchecks)
for _command in (*_nouns, mute, unmute, list_mutes, send, *_of_files, serve, examine, print_man_page):
    pocketbell.add_command(_command)


def add_commands(app: Flask, open_data: Callable[[], None]) -> None:
    """Register the commands with `flask`, too; each calls `open_data` before it runs."""
    app.extensions[OPEN_DATA] = open_data
    for command in pocketbell.commands.values():
        app.cli.add_command(command)
