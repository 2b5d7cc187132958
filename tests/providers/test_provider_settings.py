"""The settings of APNs and FCM: a wrong one stops the start with one line that shows no secret."""

import functools
import json
import re
from itertools import combinations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
)

import config
from tests.support.certificates import key_pem
from tests.support.rows import each

PARTS = ("APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC")
FIELDS = ("project_id", "client_email", "private_key", "token_uri")


@functools.cache
def ec_key():
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def rsa_pem():
    return key_pem(rsa.generate_private_key(65537, 1024)).decode()


def apns_environ(**changes):
    """A complete set, with changes: None leaves one out."""
    environ = {
        "APNS_KEY": key_pem(ec_key()).decode(),
        "APNS_KEY_ID": "KEY1234567",
        "APNS_TEAM_ID": "TEAM123456",
        "APNS_TOPIC": "com.example.pocketbell",
    } | changes
    return {name: value for name, value in environ.items() if value is not None}


def account(**changes):
    """A service account, with changes: None leaves a field out."""
    fields = {
        "type": "service_account",
        "project_id": "pocketbell",
        "private_key": rsa_pem(),
        "client_email": "sender@pocketbell.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def refusal(**environ):
    """The one line with which these settings are refused, of which none shows a key."""
    with pytest.raises(config.SettingError) as refused:
        config.load(environ)
    said = refused.value.code
    assert len(said.splitlines()) == 1
    assert "PRIVATE KEY" not in said and "hunter2pw" not in said
    assert [
        line for pem in (key_pem(ec_key()).decode(), rsa_pem()) for line in pem.splitlines() if line in said
    ] == []
    return said


def named(said):
    """The variables that a line names."""
    return set(re.findall(r"(?:APNS|FCM)_[A-Z_]+", said))


@pytest.fixture
def file(tmp_path):
    """Makes a file with this text or these bytes; answers with its path."""

    def make(content):
        path = tmp_path / "credentials"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return make


# --- what is taken ------------------------------------------------------------------------------------------


def environment(apns, fcm, authority):
    return {**apns.settings, "FCM_URL": fcm.origin, "SSL_CERT_FILE": authority.ca_file}


def assert_delivers(service, apns, fcm):
    caller, phones = service.caller(service.account()), {"apns": apns.phone(), "fcm": fcm.phone()}
    for kind, phone in phones.items():
        assert caller.post("/devices", {"kind": kind, "token": phone.token}).status_code == 201
    assert caller.send().json["notification"]["status"] == "delivered"
    assert [len(phone.messages) for phone in phones.values()] == [1, 1]


def test_the_credentials_are_taken_from_the_variables(make_service, apns, fcm, authority, moved_clock):
    account = json.dumps(fcm.service_account(), indent=2)
    assert_delivers(make_service(**environment(apns, fcm, authority), FCM_SERVICE_ACCOUNT=account), apns, fcm)


def test_the_credentials_are_taken_from_files(make_service, apns, fcm, authority, moved_clock, tmp_path):
    key, account = tmp_path / "AuthKey.p8", tmp_path / "account.json"
    key.write_text(f"{apns.key_pem}\n")
    account.write_text(f"{json.dumps(fcm.service_account())}\n")
    files = {"APNS_KEY": "", "APNS_KEY_FILE": str(key), "FCM_SERVICE_ACCOUNT_FILE": str(account)}
    assert_delivers(make_service(**environment(apns, fcm, authority) | files), apns, fcm)


@each("url", ["https://api.sandbox.push.apple.com", "https://localhost:2197"])
@each("name", ["APNS_URL", "FCM_URL"])
def test_another_address_of_a_provider_is_taken(name, url):
    assert config.load({name: url})


# --- APNs ---------------------------------------------------------------------------------------------------


SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(PARTS, size)]


@each("missing", SUBSETS)
@each("unset", [None, ""])
def test_a_partial_set_is_refused_with_the_missing_names(missing, unset):
    said = refusal(**apns_environ(**dict.fromkeys(missing, unset)))
    assert named(said) - {"APNS_KEY_FILE"} == set(missing)


def test_a_key_file_alone_is_a_partial_set(file):
    said = refusal(APNS_KEY_FILE=file(key_pem(ec_key())))
    assert {"APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC"} <= named(said)


@each("name", ["APNS_KEY", "FCM_SERVICE_ACCOUNT"])
def test_a_text_and_a_file_of_it_at_once_are_refused(file, name):
    environ = apns_environ(FCM_SERVICE_ACCOUNT=json.dumps(account()))
    assert named(refusal(**environ, **{f"{name}_FILE": file(environ[name])})) == {name, f"{name}_FILE"}


def encrypted_pem():
    return ec_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2pw")).decode()


def public_pem():
    return ec_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


NO_KEYS = {
    "text": lambda: "hunter2pw",
    "base64 alone": lambda: "".join(key_pem(ec_key()).decode().splitlines()[1:-1]),
    "cut off": lambda: key_pem(ec_key()).decode()[:120],
    "damaged": lambda: "-----BEGIN PRIVATE KEY-----\nhunter2pw\n-----END PRIVATE KEY-----\n",
    "public": public_pem,
    "RSA": rsa_pem,
    "another curve": lambda: key_pem(ec.generate_private_key(ec.SECP384R1())).decode(),
    "encrypted": encrypted_pem,
    "NUL": lambda: "hunter2pw\0",
    "not ASCII": lambda: "hunter2pw ü 😀",
}


@each("make", NO_KEYS.values())
def test_a_key_that_is_none_for_apns_is_refused_without_being_shown(file, make):
    for name, value in (("APNS_KEY", make()), ("APNS_KEY_FILE", file(make()))):
        said = refusal(**apns_environ(APNS_KEY=None) | {name: value})
        assert name in named(said) and make()[-40:] not in said


@pytest.mark.parametrize("content", ["", b"\xff\xfe\x00hunter2pw"])
def test_a_key_file_without_text_is_refused(file, content):
    assert "APNS_KEY_FILE" in named(refusal(**apns_environ(APNS_KEY=None, APNS_KEY_FILE=file(content))))


FILES = {"APNS_KEY_FILE": apns_environ(APNS_KEY=None), "FCM_SERVICE_ACCOUNT_FILE": {}}


@each("name", FILES)
@each("path", ["/nowhere/credentials", "/", "no\nsuch\u2028file"])
def test_a_file_that_cannot_be_read_is_refused_in_one_line_with_its_name(name, path):
    said = refusal(**FILES[name], **{name: path})
    assert name in named(said) and path.split("\n")[0] in said


# --- FCM ----------------------------------------------------------------------------------------------------


NO_ACCOUNTS = ["hunter2pw", "/etc/hunter2pw.json", "{", "[]", "null", "7", '"hunter2pw"', "[" * 100_000]


@each("text", NO_ACCOUNTS)
def test_an_invalid_service_account_is_refused_without_being_shown(file, text):
    assert "FCM_SERVICE_ACCOUNT" in named(refusal(FCM_SERVICE_ACCOUNT=text))
    assert "FCM_SERVICE_ACCOUNT_FILE" in named(refusal(FCM_SERVICE_ACCOUNT_FILE=file(text)))


@each("field", FIELDS)
@each("value", [None, 7, ["hunter2pw"], {}, True])
def test_a_field_that_is_not_there_or_no_text_is_refused_and_named(field, value):
    said = refusal(FCM_SERVICE_ACCOUNT=json.dumps(account(**{field: value})))
    assert "FCM_SERVICE_ACCOUNT" in named(said) and field in said


@each("key", ["", "hunter2pw", key_pem(ec_key()).decode(), "-----BEGIN PRIVATE KEY-----\nhunter2pw"])
def test_a_private_key_that_is_none_for_google_is_refused_and_named(key):
    assert "private_key" in refusal(FCM_SERVICE_ACCOUNT=json.dumps(account(private_key=key)))


@each("uri", ["", "oauth2.googleapis.com/token", "ftp://localhost/token", "https://", "file:///a"])
def test_a_token_uri_that_is_none_is_refused_and_named(uri):
    assert "token_uri" in refusal(FCM_SERVICE_ACCOUNT=json.dumps(account(token_uri=uri)))


# --- the start ----------------------------------------------------------------------------------------------


@each(
    "value",
    [
        "-----BEGIN PRIVATE KEY-----\nMIGH5ecret\n",
        "-----BEGIN PRIVATE KEY----- MIGH5ecret",
        '{"private_key": "5ecret"}',
    ],
)
@each("name", ["APNS_KEY_FILE", "FCM_SERVICE_ACCOUNT_FILE"])
def test_a_key_that_stands_where_its_files_name_should_be_is_not_shown(name, value):
    with pytest.raises(config.SettingError) as refused:
        config.load({name: value})
    assert name in str(refused.value) and "5ecret" not in str(refused.value)
