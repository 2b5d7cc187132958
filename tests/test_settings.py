"""Settings: environment variables only, all optional; a wrong one stops the start with one line."""

import ipaddress
import os
import subprocess
import sys
from pathlib import Path

import pytest

import config
from settings.variables import redis_address
from store.database import ServerUrl
from tests.support.rows import each
from tests.support.server import ROOT


def networks(*texts):
    return tuple(ipaddress.ip_network(text) for text in texts)


def run_config(environ):
    """`python config.py` with these settings alone."""
    command = [sys.executable, str(ROOT / "config.py")]
    return subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, timeout=30)


def refusal(**environ):
    """The lines with which these settings are refused, mostly one."""
    with pytest.raises(config.SettingError) as refused:
        config.load(environ)
    return refused.value.code


# --- defaults -----------------------------------------------------------------------------------------------


DEFAULTS = [
    ("host", "127.0.0.1"), ("port", 8000), ("data_dir", Path("data")),
    ("database", Path("data/pocketbell.db")), ("threads", 32), ("secret_key", None), ("base_url", None),
    ("trusted_proxies", networks("127.0.0.1")), ("ca_file", None), ("max_body_bytes", 1_048_576),
    ("compatibility", True), ("log_level", "info"), ("print_setup_link", False), ("first_account", None),
]  # fmt: skip


@each("field, value", DEFAULTS)
def test_every_setting_is_optional_and_has_a_default(field, value):
    assert getattr(config.load({}), field) == value


@each(
    "host",
    ["web.push.apple.com", "fcm.googleapis.com", "updates.push.services.mozilla.com", "db5.notify.windows.com"],
)
def test_the_push_hosts_of_apple_google_mozilla_and_microsoft_are_permitted_by_default(host):
    entries = config.load({}).providers["webpush"]
    assert any(host == entry or (entry.startswith("*.") and host.endswith(entry[1:])) for entry in entries)


def test_set_but_empty_counts_as_unset_for_every_variable():
    assert config.load({variable.name: "" for variable in config.variables()}) == config.load({})


def test_no_variable_is_described_twice():
    names = [variable.name for variable in config.variables()]
    assert len(names) == len(set(names))


# --- good values --------------------------------------------------------------------------------------------


TWO_HOSTS = "postgresql://a:1,b:2/bell?target_session_attrs=read-write"
GOOD = [
    ("HOST", "0.0.0.0", "host", "0.0.0.0"),
    ("HOST", "::1", "host", "::1"),
    ("HOST", "bell.example.org", "host", "bell.example.org"),
    ("PORT", "1", "port", 1),
    ("PORT", "65535", "port", 65535),
    ("DATA_DIR", "/var/lib/bell", "data_dir", Path("/var/lib/bell")),
    ("DATA_DIR", "/var/lib/bell", "database", Path("/var/lib/bell/pocketbell.db")),
    ("DATABASE_URL", "sqlite:///bell.db", "database", Path("bell.db")),
    ("DATABASE_URL", "sqlite:///some/where.db", "database", Path("some/where.db")),
    ("DATABASE_URL", "sqlite:////srv/bell.db", "database", Path("/srv/bell.db")),
    ("WEB_CONCURRENCY", "1", "workers", 1),
    ("REDIS_TLS_VERIFY", "0", "redis_tls_verify", False),
    ("DATABASE_URL", "postgres://u:p@db/bell", "database", ServerUrl("postgres://u:p@db/bell", 8)),
    ("DATABASE_URL", TWO_HOSTS, "database", ServerUrl(TWO_HOSTS, 8)),
    ("THREADS", "1", "threads", 1),
    ("THREADS", "64", "threads", 64),
    ("SECRET_KEY", "s p a c e s and ünicode", "secret_key", "s p a c e s and ünicode"),
    ("BASE_URL", "https://bell.example.org", "base_url", "https://bell.example.org"),
    ("BASE_URL", "https://bell.example.org/", "base_url", "https://bell.example.org"),
    ("BASE_URL", "http://192.168.1.5:8080", "base_url", "http://192.168.1.5:8080"),
    ("BASE_URL", "http://[fd00::5]:8080", "base_url", "http://[fd00::5]:8080"),
    ("FORWARDED_ALLOW_IPS", "10.0.0.1", "trusted_proxies", networks("10.0.0.1")),
    ("FORWARDED_ALLOW_IPS", "10.0.0.1, fd00::1", "trusted_proxies", networks("10.0.0.1", "fd00::1")),
    ("FORWARDED_ALLOW_IPS", "172.16.0.0/12,::1", "trusted_proxies", networks("172.16.0.0/12", "::1")),
    ("FORWARDED_ALLOW_IPS", "*", "trusted_proxies", networks("0.0.0.0/0", "::/0")),
    ("SSL_CERT_FILE", __file__, "ca_file", __file__),
    ("MAX_BODY_BYTES", "2048", "max_body_bytes", 2048),
    ("COMPATIBILITY", "off", "compatibility", False),
    ("HEARTBEAT_URL", "http://10.0.0.1:8000/ping/x?a=b", "heartbeat_url", "http://10.0.0.1:8000/ping/x?a=b"),
    ("COMPATIBILITY", "ON", "compatibility", True),
    ("LOG_LEVEL", "debug", "log_level", "debug"),
    ("LOG_LEVEL", "WARNING", "log_level", "warning"),
]


@each("name, value, field, understood", GOOD)
def test_a_good_value_is_understood(name, value, field, understood):
    assert getattr(config.load({name: value}), field) == understood


@each(
    "value, hosts",
    [
        ("push.example.com", ("push.example.com",)),
        (" Push.Example.com , *.example.org", ("push.example.com", "*.example.org")),
        ("http://127.0.0.1:8081", ("http://127.0.0.1:8081",)),
    ],
)
def test_hosts_of_push_services_are_understood(value, hosts):
    assert config.load({"WEBPUSH_HOSTS": value}).providers["webpush"] == hosts


def test_a_database_elsewhere_leaves_the_data_directory_where_it_was():
    settings = config.load({"DATA_DIR": "/srv/data", "DATABASE_URL": "sqlite:////srv/db/bell.db"})
    assert (settings.data_dir, settings.database) == (Path("/srv/data"), Path("/srv/db/bell.db"))


# --- wrong values -------------------------------------------------------------------------------------------


WRONG = {
    "HOST": ["a b", "127.0.0.1/8", "http://127.0.0.1", "unix:/tmp/x", "bell_1"],
    "PORT": ["0", "65536", "-1", "80.0", "8e3", "0x50", " 80", "http", "８０", "9" * 400],
    "WEB_CONCURRENCY": ["0", "65", "auto", "-1"],
    "REDIS_TLS_VERIFY": ["no", "2", "none"],
    "THREADS": ["0", "-4", "many", "1.5", "100000"],
    "BASE_URL": [
        *("bell.example.org", "ftp://bell.example.org", "https://", "/app", "https:bell", "https://bell example.org"),
        *(f"https://bell.example.org{end}" for end in ("/app", "?a=b", ":port", ":99999", "#top")),
        "https://[::1",
    ],
    "FORWARDED_ALLOW_IPS": ["proxy", "10.0.0.1 10.0.0.2", "10.0.0.1/8", "10.0.0.256", "**"],
    "WEBPUSH_HOSTS": ["*", "a b", "*.", "ftp://a", "https://a/path", "push_1", "a.*.b", "a:1"],
    "APNS_URL": ["api.push.apple.com"],
    "FCM_URL": ["api.push.apple.com"],
    "SSL_CERT_FILE": ["/nowhere/ca.pem", "/", "c" * 256],
    "MAX_BODY_BYTES": ["0", "-1", "1MB", "1e6", "1_000_000"],
    "NTFY_UPSTREAM": ["ntfy.sh", "https://ntfy.sh/topic", "ftp://ntfy.sh", "on"],
    "COMPATIBILITY": ["1", "yes", "ntfy"],
    "LOG_LEVEL": ["loud", "20", "info,debug"],
    "FIRST_ACCOUNT": ["you", "you.example.org", "yoü", "a b"],
    "PRINT_SETUP_LINK": ["yes", "2", "true"],
    "SMTP_FROM": ["bell", "<>"],
}


def values_of(settings):
    """The name of each setting with each of its values."""
    return [(name, value) for name, values in settings.items() for value in values]


@each("name, value", values_of(WRONG))
def test_a_wrong_value_is_refused_with_its_name_the_value_and_the_allowed_ones(name, value):
    said = refusal(**{name: value})
    (variable,) = (one for one in config.variables() if one.name == name)
    assert name in said and value in said and variable.takes in said


SECRETS = {  # or what may hold one
    "BASE_URL": ["https://owner:hunter2pw@bell.example.org"],
    "DATABASE_URL": [
        *("postgres://user:hunter2pw/@db.example.org/bell", "mysql://hunter2pw", "hunter2pw", "SQLITE:///hunter2pw"),
        *("sqlite://hunter2pw", "sqlite:/hunter2pw", "sqlite:///", "sqlite://", "sqlite:", "sqlite:///:memory:"),
    ],
    "HEARTBEAT_URL": [
        *("hunter2pw", "ftp://a/hunter2pw", "http:///hunter2pw", "http://a b/hunter2pw", "http://a:0/hunter2pw"),
        *("http://[::1/hunter2pw", "http://a:x/hunter2pw"),
    ],
    "METRICS_TOKEN": ["hunter2pw"],
    "SMTP_FROM": ["a@b\nBcc: c@d", "é@b.c", "a b@c.d"],
    "REDIS_URL": [
        *("hunter2pw", "hunter2pw:6379", "http://hunter2pw", "redis://", "redis://:hunter2pw@", "REDIS://hunter2pw"),
        *("redis://hunter2pw:x", "redis://hunter2pw:0", "redis://hunter2pw/zero", "redis://hunter2pw/1/2"),
        *("redis://hunter2pw?socket_timeout=9", "redis://hunter2pw#1", "redis://hunter2pw a", "unix:///hunter2pw"),
    ],
    "SMTP_URL": [
        *("mail.example.org", "http://mail", "smtp://", "smtp://mail:0", "smtp://mail:x", "smtp://mail/path"),
        *("smtp://mail?x=1", "smtp://mail#x", "smtp://ma il", "smtp://u:hunter2pw@ma\nil", "smtp://[::1"),
        "smtp://u:hunter2pw%00@mail",
    ],
}


@each("name, value", values_of(SECRETS))
def test_a_wrong_secret_is_refused_with_the_allowed_form_and_never_its_value(name, value):
    (variable,) = (one for one in config.variables() if one.name == name)
    assert refusal(**{name: value}) == f"{name} is not understood: it takes {variable.takes}."


def test_settings_are_shown_without_their_secrets():
    secrets = {"SECRET_KEY": "hunter2pw", "METRICS_TOKEN": "hunter2pw" * 2, "HEARTBEAT_URL": "https://a/hunter2pw"}
    server = {"DATABASE_URL": "postgresql://u:hunter2pw@db/bell", "REDIS_URL": "redis://:hunter2pw@db"}
    assert "hunter2pw" not in repr(config.load(secrets | server))


BROKEN = [
    *("HOST", "PORT", "DATABASE_URL", "WEB_CONCURRENCY", "THREADS", "BASE_URL", "FORWARDED_ALLOW_IPS"),
    *("WEBPUSH_HOSTS", "SSL_CERT_FILE", "MAX_BODY_BYTES", "LOG_LEVEL"),
]


@each("name", BROKEN)
def test_a_value_with_line_breaks_is_refused_in_one_line(name):
    assert len(refusal(**{name: "no\nsuch\r\nvalue\u2028"}).splitlines()) == 1


@each("environ", [{}, {"DATABASE_URL": "sqlite:///bell.db"}, {"REDIS_URL": "redis://localhost"}])
def test_more_than_one_worker_is_refused_with_the_reason(environ):
    said = refusal(WEB_CONCURRENCY="2", **environ)
    assert '"2"' in said and "quotas are counted in" in said and "PostgreSQL" in said and "REDIS_URL" in said


@each("environ", [{}, {"DATABASE_URL": "sqlite:///bell.db"}])
def test_redis_is_refused_with_sqlite(environ):
    said = refusal(REDIS_URL="redis://:hunter2pw@localhost:6379/0", **environ)
    assert "REDIS_URL is set, but the database is SQLite" in said and "hunter2pw" not in said


REDIS_URLS = [
    *("redis://localhost", "redis://10.0.0.5:6379", "redis://[fd00::5]:6379/", "redis://:pass%20word@host:1/0"),
    *("rediss://name:password@redis.example.org:6380/15", "redis://name@localhost/9999"),
]


@each("url", REDIS_URLS)
def test_the_address_of_a_redis_is_understood(url):
    assert redis_address(url) == url


# --- several that are wrong ---------------------------------------------------------------------------------


def test_every_provider_that_cannot_be_set_up_is_named():
    apple, google = {"APNS_KEY_ID": "KEY1234567"}, {"FCM_SERVICE_ACCOUNT_FILE": os.devnull}
    assert refusal(**apple, **google).splitlines() == [refusal(**apple), refusal(**google)]


@each(
    "name, others",
    [
        *(("DATABASE_URL", {"WEB_CONCURRENCY": "2"}), ("REDIS_URL", {}), ("PORT", {"WEB_CONCURRENCY": "2"})),
        *(("APNS_KEY_ID", {}), ("APNS_KEY_FILE", {"APNS_TOPIC": "org.example.bell"})),
    ],
)
def test_contradictions_are_reported_only_for_valid_settings(name, others):
    (line,) = refusal(**{name: "/"}, **others).splitlines()
    assert line.startswith(f"{name} is ")


# --- python config.py (the Procfile's release step) ---------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="an environment of bytes is POSIX's")
def test_a_value_that_is_not_utf_8_is_refused_in_one_line():
    checked = run_config({b"PORT": b"80\xff"})
    assert (checked.returncode, len(checked.stderr.splitlines())) == (1, 1)
    assert checked.stderr.startswith(b"PORT")


# --- the public address -------------------------------------------------------------------------------------


PUBLIC_URLS = [
    ({}, "http://127.0.0.1:8000"),
    ({"PORT": "9000"}, "http://127.0.0.1:9000"),
    ({"HOST": "bell.lan", "PORT": "80"}, "http://bell.lan:80"),
    ({"HOST": "0.0.0.0"}, "http://localhost:8000"),
    ({"HOST": "::"}, "http://localhost:8000"),
    ({"HOST": "::1"}, "http://[::1]:8000"),
    ({"HOST": "fd00::5", "PORT": "81"}, "http://[fd00::5]:81"),
    ({"BASE_URL": "https://bell.example.org"}, "https://bell.example.org"),
    ({"BASE_URL": "https://bell.example.org/"}, "https://bell.example.org"),
    ({"BASE_URL": "https://bell.example.org:8443", "HOST": "0.0.0.0", "PORT": "1"}, "https://bell.example.org:8443"),
]


@each("environ, address", PUBLIC_URLS)
def test_the_public_address_is_base_url_or_where_the_service_listens(environ, address):
    assert config.load(environ).public_url == address
