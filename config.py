"""Every setting, read once from the environment and the settings file (README.md, Settings).

The service's own variables are declared here, a provider's in its module. `load` reads all of them, or stops with a
line for each wrong one: its name, its value and the allowed values. The only module that reads the environment.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from providers import PROVIDERS
from settings.file import Line, read_file
from settings.variables import SettingError as SettingError  # raised by `load`
from settings.variables import Variable, between, http_address, http_origin, matching, redis_address
from store.database import ServerUrl
from wire.validation import either

VERSION = "1.0.0"
MIN_SECRET_CHARACTERS = 16
SHORT_SECRET = f"SECRET_KEY can be guessed: use {MIN_SECRET_CHARACTERS} random characters or more."
OWN_FILE = Path(__file__).parent / ".env"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FLAG = {"0": False, "1": True}
LOG_LEVELS = {level: level for level in ("debug", "info", "warning", "error", "critical")}

# An address with unencoded characters in the user's part is refused: its password might be shown with the address.
POSTGRESQL = re.compile(r"postgres(ql)?://([^/?#@\s]*@)?[^/?#@\s]*(/[^/?#@\s]*)?(\?[^#@\s]*)?")


def _database(value: str) -> Path | str:
    if POSTGRESQL.fullmatch(value):
        return value
    path = value.removeprefix("sqlite:///")
    if path in (value, "", ":memory:") or path.endswith("/"):
        raise ValueError
    return Path(path)


def _proxies(value: str) -> tuple[Network, ...]:
    if value.strip() == "*":
        return (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
    return tuple(ipaddress.ip_network(part.strip()) for part in value.split(",") if part.strip())


def _readable_file(value: str) -> str:
    try:
        with Path(value).open():
            return value
    except OSError:
        raise ValueError from None


def _variable(name: str, default: str | None, parse: Callable[[str], Any], takes: str, secret: bool = False) -> Any:
    """A field of `Settings` that holds the value of this variable."""
    return field(repr=not secret, metadata={"variable": Variable(name, default, parse, takes, secret)})


def _number(name: str, default: str, low: int, high: int) -> Any:
    return _variable(name, default, between(low, high), f"a whole number from {low} to {high}")


def _choice(name: str, default: str, meanings: Mapping[str, Any]) -> Any:
    """One of these words, in capital letters or not."""
    return _variable(name, default, lambda value: meanings[value.lower()], either(meanings))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The checked settings. `providers` has those of each push provider by its kind: None if it is not configured."""

    host: str = _variable("HOST", "127.0.0.1", matching(r"[A-Za-z0-9.:-]+"), "an address or host name to listen on")
    port: int = _variable("PORT", "8000", between(1, 65535), "a port, a whole number from 1 to 65535")
    data_dir: Path = _variable("DATA_DIR", "data", Path, "a directory")
    database_url: Path | str | None = _variable(
        "DATABASE_URL",
        None,
        _database,
        "sqlite:///relative/file, sqlite:////absolute/file or postgresql://…@host/name",
        secret=True,
    )
    database_connections: int = _number("DATABASE_CONNECTIONS", "8", 1, 100)
    redis_url: str | None = _variable(
        "REDIS_URL", None, redis_address, "redis://host:port or rediss://name:password@host:port", secret=True
    )
    redis_tls_verify: bool = _choice("REDIS_TLS_VERIFY", "1", FLAG)
    workers: int = _number("WEB_CONCURRENCY", "1", 1, 64)
    threads: int = _number("THREADS", "32", 1, 1024)
    secret_key: str | None = _variable("SECRET_KEY", None, str, "any text", secret=True)
    base_url: str | None = _variable(
        "BASE_URL", None, http_origin, "the public address, such as https://bell.example.org, without a path"
    )
    trusted_proxies: tuple[Network, ...] = _variable(
        "FORWARDED_ALLOW_IPS", "127.0.0.1", _proxies, "addresses or networks of proxies, comma-separated, or *"
    )
    ca_file: str | None = _variable("SSL_CERT_FILE", None, _readable_file, "the path of a file with CA certificates")
    ingest_per_minute: int = _number("INGEST_PER_MINUTE", "6000", 1, 10**6)
    account_megabytes: int = _number("ACCOUNT_MEGABYTES", "2000", 1, 10**6)
    metrics_token: str | None = _variable(
        "METRICS_TOKEN", None, matching(r"[!-~]{16,}"), "at least 16 visible ASCII characters", secret=True
    )
    max_body_bytes: int = _number("MAX_BODY_BYTES", "1048576", 1024, 2**30)
    compatibility: bool = _choice("COMPATIBILITY", "on", {"on": True, "off": False})  # ntfy's, Gotify's addresses
    heartbeat_url: str | None = _variable(
        "HEARTBEAT_URL", None, http_address, "an http or https address", secret=True
    )
    log_level: str = _choice("LOG_LEVEL", "info", LOG_LEVELS)
    first_account: str | None = _variable(
        "FIRST_ACCOUNT", None, matching(r"[!-?A-~]{1,64}@[!-?A-~]{1,180}"), "the e-mail address of the first account"
    )
    print_setup_link: bool = _choice("PRINT_SETUP_LINK", "0", FLAG)
    providers: Mapping[str, Any]
    wipes_disk: bool  # the platform does so at each restart, and the database is there
    file: Path | None  # the settings file, if there is one

    @property
    def database(self) -> Path | ServerUrl:
        """The SQLite file, or the PostgreSQL server."""
        place = self.database_url or self.data_dir / "pocketbell.db"
        return ServerUrl(place, self.database_connections) if isinstance(place, str) else place

    @property
    def has_short_secret(self) -> bool:
        """Whether `SECRET_KEY` is set, and can be guessed."""
        return 0 < len(self.secret_key or "") < MIN_SECRET_CHARACTERS

    @property
    def public_url(self) -> str:
        """`BASE_URL`, or else the address that the service listens on, as a link for people."""
        return self.base_url or self.local_url

    @property
    def local_url(self) -> str:
        """The address that the service listens on, as a link on this machine."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def addresses(self) -> str:
        """The settings that `at()` takes over, as a line."""
        return f"{self.host} {self.port} {self.base_url or ''}"

    def at(self, addresses: str) -> "Settings":
        """These settings with the addresses of a running service; `BASE_URL` is its own only if it is unset here."""
        host, port, base_url = addresses.split(" ")
        return replace(self, host=host, port=int(port), base_url=self.base_url or base_url or None)


# The service's own variables, by the fields of `Settings`.
OF_THE_SERVICE: dict[str, Variable] = {
    one.name: one.metadata["variable"] for one in fields(Settings) if "variable" in one.metadata
}


def variables() -> tuple[Variable, ...]:
    """Every variable: first the service's, then each provider's."""
    return (*OF_THE_SERVICE.values(), *(variable for one in PROVIDERS.values() for variable in one.variables))


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Read every variable, then check their combinations; raise `SettingError` with a line per fault.

    The settings file is named by `POCKETBELL_ENV`, or else is `OWN_FILE`, unless the caller passes `environ`.
    """
    file = OWN_FILE if environ is None and OWN_FILE.is_file() else None
    environ = os.environ if environ is None else environ
    if named := environ.get("POCKETBELL_ENV"):
        file = Path(named)
    lines = read_file(file, [variable.name for variable in variables()]) if file else {}
    lines = {name: line for name, line in lines.items() if not environ.get(name)}  # the environment wins
    given = {**environ, **{name: line.value for name, line in lines.items()}}
    values = _read_all({variable.name: partial(variable.read, given) for variable in variables()}, lines)
    is_sqlite = not isinstance(values["DATABASE_URL"], str)
    _check_sharing(is_sqlite, values["REDIS_URL"], values["WEB_CONCURRENCY"])
    return Settings(
        **{name: values[variable.name] for name, variable in OF_THE_SERVICE.items()},
        providers=_read_all({kind: partial(provider.read, values) for kind, provider in PROVIDERS.items()}, {}),
        wipes_disk="DYNO" in environ and is_sqlite,
        file=file,
    )


def _read_all(reads: Mapping[str, Callable[[], Any]], lines: Mapping[str, Line]) -> dict[str, Any]:
    """The result of each function, by name; raise one `SettingError` with the sentences of all.

    `lines` are the settings file's: a sentence names the line's place.
    """
    found, faults = dict[str, Any](), list[str]()
    for name, read in reads.items():
        try:
            found[name] = read()
        except SettingError as error:
            faults.append(f"{lines[name].place if name in lines else ''}{error}")
    if faults:
        raise SettingError("\n".join(faults))
    return found


def _check_sharing(is_sqlite: bool, redis_url: str | None, workers: int) -> None:
    """Refuse several processes with an SQLite file, and Redis, which only they need."""
    if workers > 1 and (is_sqlite or not redis_url):
        raise SettingError(
            f'WEB_CONCURRENCY is "{workers}": it takes only 1 unless DATABASE_URL is PostgreSQL and REDIS_URL is set,'
            " since the quotas are counted in one process without them (use THREADS)."
        )
    if redis_url and is_sqlite:
        raise SettingError(
            "REDIS_URL is set, but the database is SQLite, which one process uses: set DATABASE_URL to PostgreSQL, or"
            " remove REDIS_URL."
        )


if __name__ == "__main__":
    load()
    print("The settings are fine.")
