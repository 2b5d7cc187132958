"""The bodies that forms may have, with and without a session: nothing large is ever parsed for a stranger."""

import io
import re

import pytest
from werkzeug.formparser import FormDataParser

from app import ROUTES
from tests.support.accounts import OWNER, PASSWORD
from tests.support.pages import Visitor, make_account, setup_form, setup_link, signed_in
from tests.support.rows import each
from web import request_body

RULES = [route.rule for route in ROUTES if route.method == "POST" and route.rule.startswith("/app/")]
PATHS = [re.sub("<[a-z_]+>", "x", rule) for rule in RULES]
FORM = "application/x-www-form-urlencoded"
STRANGERS, OWNERS = 16_384, 524_288  # bytes


def form_of(size, **fields):
    """A form with these fields, padded to exactly this many bytes."""
    text = "&".join(f"{name}={value}" for name, value in fields.items()) + "&padding="
    return (text + "x" * (size - len(text))).encode()


def post(browser, path, data, is_chunked=False, **headers):
    """Send a body as a browser does or, chunked, without saying how long it is."""
    if not is_chunked:
        return browser.post(path, data, content_type=FORM, headers=headers)
    chunked = {"input_stream": io.BytesIO(data), "environ_overrides": {"wsgi.input_terminated": True}}
    sent = {"X-CSRF-Token": browser.token, "Transfer-Encoding": "chunked", "Content-Type": FORM, **headers}
    return browser.client.post(path, headers={k: v for k, v in sent.items() if v is not None}, **chunked)


@pytest.fixture
def unparsed(monkeypatch):
    """Fail the test when a form is parsed."""
    monkeypatch.setattr(FormDataParser, "parse", lambda *_, **__: pytest.fail("the form was parsed"))


def test_without_a_session_more_than_16_kb_is_413_before_anything_is_parsed(visitor, unparsed):
    visitor.get("/app/login")
    large, larger = (form_of(size, csrf=visitor.token) for size in (STRANGERS + 1, 1_000_000))
    sent = [*((path, large, False) for path in PATHS), ("/app/login", larger, False)]
    for path, form, is_chunked in [*sent, ("/app/login", large, True), ("/app/keys", large, True)]:
        answer = post(visitor, path, form, is_chunked, **{"X-CSRF-Token": None})
        if path == "/app/devices/resync":
            assert answer.status_code == 401  # who sends there has a token, and it is asked for first
        else:
            assert answer.status_code == 413 and "<h1>That did not work</h1>" in answer.text, path


def test_a_browser_whose_session_ended_has_the_limit_of_a_stranger(visitor, owner, unparsed):
    visitor.client.set_cookie("pocketbell", owner.cookie, domain="localhost")
    visitor.token = owner.token
    owner.post("/app/logout", token=owner.token)
    for is_chunked in (False, True):
        assert post(visitor, "/app/keys", form_of(STRANGERS + 1), is_chunked).status_code == 413


def test_without_a_session_exactly_16_kb_are_read(service):
    make_account(service)
    for is_chunked in (False, True):
        visitor = Visitor(service)
        visitor.get("/app/login")
        form = form_of(STRANGERS, email=OWNER, password=PASSWORD.replace(" ", "+"), csrf=visitor.token)
        assert post(visitor, "/app/login", form, is_chunked).status_code == 303


def test_the_set_up_form_takes_16_kb_and_no_more(visitor):
    link = setup_link()
    visitor.get(link)
    fields = {name: value.replace(" ", "+") for name, value in setup_form(csrf=visitor.token).items()}
    assert post(visitor, link, form_of(STRANGERS + 1, **fields)).status_code == 413
    assert post(visitor, link, form_of(STRANGERS, **fields)).status_code == 303


@each("path", [path for path in PATHS if path != "/app/devices/resync"])
def test_a_form_of_a_browser_that_has_opened_no_page_is_refused_unparsed(service, unparsed, path):
    fresh = Visitor(service)
    answer = fresh.post(path, b"csrf=x&email=x", content_type=FORM, headers={"X-CSRF-Token": None})
    assert answer.status_code in (303, 400)  # 303 leads who is not signed in to the sign-in


@each("path", ["/app/login", "/app/setup/x"])
def test_a_form_from_another_site_is_refused_unparsed(visitor, unparsed, path):
    visitor.get("/app/login")
    headers = {"X-CSRF-Token": None, "Origin": "https://evil.example"}
    assert visitor.post(path, b"csrf=x&email=x", content_type=FORM, headers=headers).status_code == 400


def test_a_form_of_a_signed_in_owner_has_512_kb_at_most(owner):
    form = form_of(OWNERS, name="large", csrf=owner.token)
    for is_chunked in (False, True):
        assert post(owner, "/app/keys", form, is_chunked).status_code == 303
        assert post(owner, "/app/keys", form + b"x", is_chunked).status_code == 413


def test_the_body_size_setting_limits_the_forms_of_owners_too(make_service):
    owner = signed_in(make_service(MAX_BODY_BYTES="2048"))
    assert post(owner, "/app/keys", form_of(2_049, name="x")).status_code == 413


def test_the_longest_templates_and_the_largest_payload_that_a_page_lets_be_typed_fit(owner, service):
    address = service.alert(email=OWNER)
    fields = {"title": "é" * 1_000, "body": "警" * 10_000, "payload": '{"a": "' + "é" * 65_000 + '"}', "preview": "1"}
    assert owner.post(f"/app/alerts/{address.id}", fields).status_code == 200


def test_a_form_with_more_than_200_fields_is_refused_unparsed(owner, unparsed):
    assert request_body.MAX_FORM_FIELDS == 200
    answer = post(owner, "/app/keys", b"&".join([b"a=1"] * 201))
    assert answer.status_code == 400 and "200 fields" in answer.text


def test_a_form_with_200_fields_is_read(owner):
    assert post(owner, "/app/keys", b"name=many&" + b"&".join([b"a=1"] * 199)).status_code == 303
