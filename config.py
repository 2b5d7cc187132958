"""Every environment variable once: name, default, what it takes (CONTRACT 1, Settings).

`load` reads them all or stops with one line that names the variable, what it held and what it takes.
The only module that reads the environment; it knows nothing else of the project.
"""

import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_WEBPUSH_HOSTS = "fcm.googleapis.com,*.push.apple.com,*.push.services.mozilla.com,*.notify.windows.com"
HOST_NAME = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
APPLE_ID = r"[A-Za-z0-9]{10}"
SERVICE_ACCOUNT = {
    "project_id": r"[a-z0-9.:-]+",
    "client_email": r"[!-~]+",
    "private_key": r"[ -~\r\n]+",
    "token_uri": r"https?://[!-~]+",
}
HTTP_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+")


class SettingError(SystemExit):
    """A setting that cannot be understood. Uncaught, it ends the process with its one line and status 1."""


@dataclass(frozen=True)
class ApnsSettings:
    """The account at Apple: `key` is the PEM text of its private key."""

    url: str
    key: str = field(repr=False)
    key_id: str
    team_id: str
    topic: str


@dataclass(frozen=True)
class FcmSettings:
    """The Firebase project: its service account as Google gives it."""

    url: str
    service_account: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Settings:
    """What the environment asked for, checked."""

    host: str
    port: int
    data_dir: Path
    database: Path
    threads: int
    secret_key: str | None
    base_url: str | None
    trusted_proxies: tuple[Network, ...]
    webpush_hosts: tuple[str, ...]
    apns: ApnsSettings | None
    fcm: FcmSettings | None
    ca_file: str | None
    ingest_per_minute: int
    metrics_token: str | None = field(repr=False)
    max_body_bytes: int
    log_level: str
    print_setup_link: bool
    wipes_disk: bool  # the platform does, at each restart

    @property
    def public_url(self) -> str:
        """`BASE_URL`, or else the address the service listens on, as a link for people."""
        return self.base_url or self.local_url

    @property
    def local_url(self) -> str:
        """The address the service listens on, as a link on this machine."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def _flag(value: str) -> bool:
    return {"0": False, "1": True}[value]


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value) or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    return parse


def _like(pattern: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return parse


def _origin(value: str) -> str:
    origin = value.removesuffix("/")
    parts = urlsplit(origin)
    if not HTTP_ORIGIN.fullmatch(origin) or not parts.hostname or parts.port == 0:  # `port` raises for what is none
        raise ValueError
    return origin


def _database(value: str) -> Path:
    path = value.removeprefix("sqlite:///")
    if path in (value, "", ":memory:") or path.endswith("/"):
        raise ValueError
    return Path(path)


def _proxies(value: str) -> tuple[Network, ...]:
    if value.strip() == "*":
        return (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
    return tuple(ipaddress.ip_network(part.strip()) for part in value.split(",") if part.strip())


def _webpush_hosts(value: str) -> tuple[str, ...]:
    entries = tuple(part.strip().lower().rstrip("/") for part in value.split(",") if part.strip())
    for entry in entries:
        if not (HTTP_ORIGIN if "://" in entry else HOST_NAME).fullmatch(entry):
            raise ValueError
    return entries


def _existing_file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError
    return value


def _readable_file(value: str) -> str:
    try:
        return Path(value).read_text()
    except (OSError, UnicodeError):
        raise ValueError from None


def _pem(text: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(text.encode(), None)
    except (TypeError, UnsupportedAlgorithm):
        raise ValueError from None


def _apns_key(value: str) -> str:
    pem = value.replace("\\n", "\n")  # some platforms keep a variable on one line
    if getattr(getattr(_pem(pem), "curve", None), "name", None) != "secp256r1":
        raise ValueError
    return pem


def _service_account(value: str) -> Mapping[str, str]:
    try:
        account = json.loads(value)
    except RecursionError:
        raise ValueError from None
    if not isinstance(account, dict) or not all(isinstance(account.get(name), str) for name in SERVICE_ACCOUNT):
        raise ValueError
    is_rsa = hasattr(_pem(account["private_key"]), "decrypt")
    well_formed = all(re.fullmatch(form, account[name]) for name, form in SERVICE_ACCOUNT.items())
    if not is_rsa or not well_formed:
        raise ValueError
    return account


def _log_level(value: str) -> str:
    if value.lower() not in ("debug", "info", "warning", "error", "critical"):
        raise ValueError
    return value.lower()


@dataclass(frozen=True)
class Variable:
    """One environment variable. `takes` ends the sentence "<NAME> is …: it takes …"."""

    name: str
    default: str | None
    parse: Callable[[str], Any]
    takes: str
    secret: bool = False


VARIABLES = (
    Variable("HOST", "127.0.0.1", _like(r"[A-Za-z0-9.:-]+"), "an address or host name to listen on"),
    Variable("PORT", "8000", _between(1, 65535), "a port, a whole number from 1 to 65535"),
    Variable("DATA_DIR", "data", Path, "a directory"),
    Variable("DATABASE_URL", None, _database, "sqlite:///relative/file or sqlite:////absolute/file", secret=True),
    Variable(
        "WEB_CONCURRENCY", "1", _between(1, 1), "only 1, since the quotas are counted in one process (use THREADS)"
    ),
    Variable("THREADS", "32", _between(1, 1024), "a whole number from 1 to 1024"),
    Variable("SECRET_KEY", None, str, "any text", secret=True),
    Variable("BASE_URL", None, _origin, "the public address, such as https://bell.example.org, without a path"),
    Variable("FORWARDED_ALLOW_IPS", "127.0.0.1", _proxies, "addresses or networks of proxies, comma-separated, or *"),
    Variable(
        "WEBPUSH_HOSTS",
        DEFAULT_WEBPUSH_HOSTS,
        _webpush_hosts,
        "comma-separated host names, *. allowed in front, or whole origins",
    ),
    Variable("APNS_KEY", None, _apns_key, "the PEM text of Apple's .p8 key", secret=True),
    Variable("APNS_KEY_FILE", None, _readable_file, "the path of Apple's .p8 key"),
    Variable("APNS_KEY_ID", None, _like(APPLE_ID), "the key's id, ten letters and digits"),
    Variable("APNS_TEAM_ID", None, _like(APPLE_ID), "Apple's team id, ten letters and digits"),
    Variable("APNS_TOPIC", None, _like(r"[A-Za-z0-9.-]{1,255}"), "the app's bundle id, such as org.example.bell"),
    Variable("APNS_URL", "https://api.push.apple.com", _origin, "an origin, such as https://api.push.apple.com"),
    Variable(
        "FCM_SERVICE_ACCOUNT",
        None,
        _service_account,
        f"a Google service account's JSON with {', '.join(SERVICE_ACCOUNT)}",
        secret=True,
    ),
    Variable("FCM_SERVICE_ACCOUNT_FILE", None, _readable_file, "the path of a Google service account's JSON"),
    Variable("FCM_URL", "https://fcm.googleapis.com", _origin, "an origin, such as https://fcm.googleapis.com"),
    Variable("SSL_CERT_FILE", None, _existing_file, "the path of a file with CA certificates"),
    Variable("INGEST_PER_MINUTE", "6000", _between(1, 10**6), "a whole number from 1 to 1000000"),
    Variable("METRICS_TOKEN", None, _like(r"[!-~]{16,}"), "at least 16 visible ASCII characters", secret=True),
    Variable("MAX_BODY_BYTES", "1048576", _between(1024, 2**30), "a whole number from 1024 to 1073741824"),
    Variable("LOG_LEVEL", "info", _log_level, "debug, info, warning, error or critical"),
    Variable("PRINT_SETUP_LINK", "0", _flag, "0 or 1"),
)


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read and check every variable; raise `SettingError` for the first that cannot be understood."""
    values = {variable.name: _read(variable, environ) for variable in VARIABLES}
    data_dir: Path = values["DATA_DIR"]
    return Settings(
        host=values["HOST"],
        port=values["PORT"],
        data_dir=data_dir,
        database=values["DATABASE_URL"] or data_dir / "pocketbell.db",
        threads=values["THREADS"],
        secret_key=values["SECRET_KEY"],
        base_url=values["BASE_URL"],
        trusted_proxies=values["FORWARDED_ALLOW_IPS"],
        webpush_hosts=values["WEBPUSH_HOSTS"],
        apns=_apns(values),
        fcm=_fcm(values),
        ca_file=values["SSL_CERT_FILE"],
        ingest_per_minute=values["INGEST_PER_MINUTE"],
        metrics_token=values["METRICS_TOKEN"],
        max_body_bytes=values["MAX_BODY_BYTES"],
        log_level=values["LOG_LEVEL"],
        print_setup_link=values["PRINT_SETUP_LINK"],
        wipes_disk="DYNO" in environ,
    )


def _apns(values: Mapping[str, Any]) -> ApnsSettings | None:
    key = _one_of(values, "APNS_KEY", "APNS_KEY_FILE", _apns_key)
    parts = {"APNS_KEY": key} | {name: values[name] for name in ("APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC")}
    missing = [name for name, value in parts.items() if value is None]
    if len(missing) == len(parts):
        return None
    if missing:
        wanted = " and ".join(missing).replace("APNS_KEY ", "APNS_KEY (or APNS_KEY_FILE) ")
        raise SettingError(f"APNs is configured in part: {wanted} must be set, too.")
    return ApnsSettings(values["APNS_URL"], *parts.values())


def _fcm(values: Mapping[str, Any]) -> FcmSettings | None:
    account = _one_of(values, "FCM_SERVICE_ACCOUNT", "FCM_SERVICE_ACCOUNT_FILE", _service_account)
    return FcmSettings(values["FCM_URL"], account) if account is not None else None


def _one_of(values: Mapping[str, Any], name: str, file_name: str, parse: Callable[[str], Any]) -> Any:
    """The value of a variable, or of the file that its other form names; never both."""
    if values[file_name] is None:
        return values[name]
    if values[name] is not None:
        raise SettingError(f"{name} and {file_name} are both set: set one of them.")
    try:
        return parse(values[file_name])
    except ValueError:
        takes = next(variable.takes for variable in VARIABLES if variable.name == name)
        raise SettingError(f"{file_name} names a file that is not understood: it must hold {takes}.") from None


def _read(variable: Variable, environ: Mapping[str, str]) -> Any:
    value = environ.get(variable.name) or variable.default  # set but empty counts as not set
    if value is None:
        return None
    try:
        return variable.parse(value)
    except (ValueError, KeyError):
        # what stands before an @ may be a password, and a key may be where its file's name should be
        hidden = variable.secret or re.search(r"[@{\n]|PRIVATE KEY", value)
        printable = "".join(c if c.isprintable() else " " for c in value)
        held = "not understood" if hidden else f'"{printable}"'
        raise SettingError(f"{variable.name} is {held}: it takes {variable.takes}.") from None


if __name__ == "__main__":
    load()
    print("The settings are fine.")
