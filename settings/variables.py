"""Environment variables: how one is declared, how common kinds of value are parsed, and how a wrong one is refused.

Whoever has settings declares them here: the service in `config`, each push provider in its module. Must not know any
single setting, and does not read the environment: `config.load` passes it in.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

HTTP_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+")
# A password may precede an @, and a key may have been pasted where the path of its file belongs.
MAY_BE_SECRET = re.compile(r"[@{\n]|PRIVATE KEY")


class SettingError(SystemExit):
    """Settings that cannot be understood. Uncaught, it ends the process with a line for each and status 1."""


@dataclass(frozen=True)
class Variable:
    """One environment variable. `parse` raises `ValueError` or `KeyError` for a value it does not understand.

    `takes` completes the sentence "<NAME> is …: it takes …".
    """

    name: str
    default: str | None
    parse: Callable[[str], Any]
    takes: str
    secret: bool = False

    def read(self, environ: Mapping[str, str]) -> Any:
        """The parsed value, or None when there is neither a value nor a default; raises `SettingError`."""
        value = environ.get(self.name) or self.default  # set but empty counts as not set
        if value is None:
            return None
        try:
            return self.parse(value)
        except (ValueError, KeyError):
            held = "not understood" if self.secret or MAY_BE_SECRET.search(value) else f'"{printable(value)}"'
            raise SettingError(f"{self.name} is {held}: it takes {self.takes}.") from None


def printable(text: str) -> str:
    """The text with a space for each character that a terminal or a log would not show."""
    return "".join(c if c.isprintable() else " " for c in text)


def value_or_file(values: Mapping[str, Any], variable: Variable, file: Variable) -> Any:
    """The value of `variable`, or the parsed text of the file that `file` names; `SettingError` if both are set.

    `values` holds the parsed value of every variable by name.
    """
    text = values[file.name]
    if text is None:
        return values[variable.name]
    if values[variable.name] is not None:
        raise SettingError(f"{variable.name} and {file.name} are both set: set one of them.")
    try:
        return variable.parse(text)
    except ValueError:
        raise SettingError(
            f"{file.name} names a file that is not understood: it must hold {variable.takes}."
        ) from None


def between(low: int, high: int) -> Callable[[str], int]:
    """Parses a whole number from `low` to `high`."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value) or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    return parse


def matching(pattern: str) -> Callable[[str], str]:
    """Parses a text that matches the whole pattern."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return parse


def parts_of(address: str, pattern: str | re.Pattern[str]) -> SplitResult:
    """The parts of an address that matches the whole pattern; `ValueError` for another one, or without a host."""
    parts = urlsplit(address)
    if not re.fullmatch(pattern, address) or not parts.hostname or parts.port == 0:  # `port` raises if it is no port
        raise ValueError
    return parts


def http_origin(value: str) -> str:
    """Parses scheme, host and port of an HTTP address; a slash at its end is dropped."""
    text = value.removesuffix("/")
    parts_of(text, HTTP_ORIGIN)
    return text


def http_address(value: str) -> str:
    """Parses an HTTP address with whatever path and query."""
    if parts_of(value, r"[!-~]{1,2000}").scheme not in ("http", "https"):
        raise ValueError
    return value


def redis_address(value: str) -> str:
    """Parses the address of a Redis: host, and if need be port, name, password and number of the database.

    It has no query: redis-py would take time limits and more from there.
    """
    parts = parts_of(value, r"rediss?://[!-~]{1,2000}")
    if not re.fullmatch(r"(/[0-9]{0,4})?", parts.path) or parts.query or parts.fragment:
        raise ValueError
    return value


def text_of_file(value: str) -> str:
    """Parses the path of a file into the text that the file holds."""
    try:
        return Path(value).read_text()
    except OSError:  # one that holds no text raises a `ValueError` itself
        raise ValueError from None
