"""What the commands print."""

import re

from tests.support.accounts import OWNER


def printed(result):
    """The only line on stdout of a command that succeeded."""
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    (line,) = result.stdout.splitlines()
    assert result.stdout == line + "\n"
    return line


def said(result):
    """The only line on stderr of a command that was refused."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


def lines_of(service, *command):
    """The lines that a command prints, each split at its tabs."""
    result = service.flask(*command)
    assert result.exit_code == 0, result.output
    return [line.split("\t") for line in result.output.splitlines()]


FULL_KEY = re.compile(r"sk_test_[0-9a-f]{48}")


def key_columns(flask, email=OWNER):
    """The lines of `key list`, as columns."""
    listed = flask("key", "list", email)
    assert (listed.exit_code, listed.stderr) == (0, "")
    return [line.split("\t") for line in listed.stdout.splitlines()]


UNRULY = ["a\nb", "a\r\nb", "a\tb", "a\x1b[31mb", "a\u2028b", "a\x85b", "a\x0bb", "a\u202eb"]
