"""Every setting, read once from the environment and the settings file (README.md, Settings).

The service's own variables are declared here, a provider's in its module. `load` reads all of them, or stops with a
line for each wrong one: its name, its value and the allowed values. The only module that reads the environment.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from process.settings_file import Line, read_file
from process.variables import SettingError as SettingError  # raised by `load`
from process.variables import Variable, between, http_address, http_origin, matching, redis_address
from providers import PROVIDERS
from store.database import ServerUrl

VERSION = "1.0.0"
OWN_FILE = Path(__file__).parent / ".env"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Settings:
    """The checked settings. `providers` has those of each push provider by its kind: None if it is not configured."""

    host: str
    port: int
    data_dir: Path
    database: Path | ServerUrl
    redis_url: str | None = field(repr=False)
    redis_tls_verify: bool
    workers: int
    threads: int
    secret_key: str | None
    base_url: str | None
    trusted_proxies: tuple[Network, ...]
    providers: Mapping[str, Any]
    ca_file: str | None
    ingest_per_minute: int
    account_megabytes: int
    metrics_token: str | None = field(repr=False)
    max_body_bytes: int
    compatibility: bool  # with ntfy and Gotify: their addresses are there
    heartbeat_url: str | None = field(repr=False)
    log_level: str
    print_setup_link: bool
    wipes_disk: bool  # the platform does so at each restart, and the database is there
    file: Path | None  # the settings file, if there is one

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


def _flag(value: str) -> bool:
    return {"0": False, "1": True}[value]


def _on_or_off(value: str) -> bool:
    return {"on": True, "off": False}[value.lower()]


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


def _existing_file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError
    return value


def _log_level(value: str) -> str:
    if value.lower() not in ("debug", "info", "warning", "error", "critical"):
        raise ValueError
    return value.lower()


OF_THE_SERVICE = (
    Variable("HOST", "127.0.0.1", matching(r"[A-Za-z0-9.:-]+"), "an address or host name to listen on"),
    Variable("PORT", "8000", between(1, 65535), "a port, a whole number from 1 to 65535"),
    Variable("DATA_DIR", "data", Path, "a directory"),
    Variable(
        "DATABASE_URL",
        None,
        _database,
        "sqlite:///relative/file, sqlite:////absolute/file or postgresql://…@host/name",
        secret=True,
    ),
    Variable("DATABASE_CONNECTIONS", "8", between(1, 100), "a whole number from 1 to 100"),
    Variable(
        "REDIS_URL",
        None,
        redis_address,
        "redis://host:port or rediss://name:password@host:port",
        secret=True,
    ),
    Variable("REDIS_TLS_VERIFY", "1", _flag, "0 or 1"),
    Variable("WEB_CONCURRENCY", "1", between(1, 64), "a whole number from 1 to 64"),
    Variable("THREADS", "32", between(1, 1024), "a whole number from 1 to 1024"),
    Variable("SECRET_KEY", None, str, "any text", secret=True),
    Variable("BASE_URL", None, http_origin, "the public address, such as https://bell.example.org, without a path"),
    Variable("FORWARDED_ALLOW_IPS", "127.0.0.1", _proxies, "addresses or networks of proxies, comma-separated, or *"),
    Variable("SSL_CERT_FILE", None, _existing_file, "the path of a file with CA certificates"),
    Variable("INGEST_PER_MINUTE", "6000", between(1, 10**6), "a whole number from 1 to 1000000"),
    Variable("ACCOUNT_MEGABYTES", "2000", between(1, 10**6), "a whole number from 1 to 1000000"),
    Variable("METRICS_TOKEN", None, matching(r"[!-~]{16,}"), "at least 16 visible ASCII characters", secret=True),
    Variable("MAX_BODY_BYTES", "1048576", between(1024, 2**30), "a whole number from 1024 to 1073741824"),
    Variable("COMPATIBILITY", "on", _on_or_off, "on or off"),
    Variable("HEARTBEAT_URL", None, http_address, "an http or https address", secret=True),
    Variable("LOG_LEVEL", "info", _log_level, "debug, info, warning, error or critical"),
    Variable("PRINT_SETUP_LINK", "0", _flag, "0 or 1"),
)


def variables() -> tuple[Variable, ...]:
    """Every variable: first the service's, then each provider's."""
    return OF_THE_SERVICE + tuple(variable for one in PROVIDERS.values() for variable in one.variables)


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
    database: Path | str = values["DATABASE_URL"] or values["DATA_DIR"] / "pocketbell.db"
    _check_sharing(isinstance(database, Path), values["REDIS_URL"], values["WEB_CONCURRENCY"])
    return Settings(
        host=values["HOST"],
        port=values["PORT"],
        data_dir=values["DATA_DIR"],
        database=ServerUrl(database, values["DATABASE_CONNECTIONS"]) if isinstance(database, str) else database,
        redis_url=values["REDIS_URL"],
        redis_tls_verify=values["REDIS_TLS_VERIFY"],
        workers=values["WEB_CONCURRENCY"],
        threads=values["THREADS"],
        secret_key=values["SECRET_KEY"],
        base_url=values["BASE_URL"],
        trusted_proxies=values["FORWARDED_ALLOW_IPS"],
        providers=_read_all({kind: partial(provider.read, values) for kind, provider in PROVIDERS.items()}, {}),
        ca_file=values["SSL_CERT_FILE"],
        ingest_per_minute=values["INGEST_PER_MINUTE"],
        account_megabytes=values["ACCOUNT_MEGABYTES"],
        metrics_token=values["METRICS_TOKEN"],
        max_body_bytes=values["MAX_BODY_BYTES"],
        compatibility=values["COMPATIBILITY"],
        heartbeat_url=values["HEARTBEAT_URL"],
        log_level=values["LOG_LEVEL"],
        print_setup_link=values["PRINT_SETUP_LINK"],
        wipes_disk="DYNO" in environ and isinstance(database, Path),
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
