"""Whatever strangers write is shown as text, on every page."""

import json
from urllib.parse import urlencode

from models import Alert, ApiKey, Device
from store.database import EVERYBODY, run, transaction
from store.sessions import Session
from tests.support.accounts import PASSWORD
from tests.support.forms import PAGES_OF_THE_OWNER
from tests.support.hostile import HOSTILE, SHORT, TOGETHER
from tests.support.pages import Page, Visitor, setup_link
from tests.support.rows import each


def test_there_are_thirty_hostile_texts():
    assert len(set(HOSTILE)) == 30


def pages_with(text, owner, paths):
    """These pages, with `text` everywhere that a stranger, a sender or a provider can put it."""
    with transaction(EVERYBODY):
        ApiKey.update(name=text).execute()
        Alert.update(name=text, icon=text, paused_at=1).execute()
        Device.update(name=text, last_error=text, last_error_at=1).execute()
        run("UPDATE notification SET title = ?, body = ?, missing = ?", (text, text, json.dumps([text])))
        run("UPDATE delivery SET status = 'failed', answered_at = 1, next_attempt_at = NULL, error = ?", (text,))
        Session.update(name=text).execute()
    return {path: owner.page(path) for path in paths}


def test_hostile_names_texts_and_errors_are_shown_escaped(service, owner):
    caller = service.caller()
    assert caller.post("/devices", {"kind": "apns", "token": "ab" * 32, "name": "x"}).status_code == 201
    notification_id = service.alert().post({"message": "x"}).json["notificationId"]
    plain = pages_with("harmless", owner, [*PAGES_OF_THE_OWNER, f"/app/notifications/{notification_id}"])
    showing = {path: page for path, page in plain.items() if "harmless" in page.html}
    assert len(showing) > 7
    for text in TOGETHER:
        hostile = pages_with(text, owner, showing)
        for path, after in hostile.items():
            assert after.shape == showing[path].shape, text
            assert after.text == showing[path].text.replace("harmless", " ".join(text.split()))
        assert f"Revoke {text}" in hostile["/app/keys"].values()
        assert f"Remove {text}" in hostile["/app/devices"].values()


@each("text", SHORT)
def test_a_hostile_search_is_shown_escaped(service, owner, text):
    sent = service.caller().send(f"a {text} b", "body").json["notification"]["id"]
    terms = ("body", text, "!?", f"!?{text}")
    searched = [owner.page(f"/app/notifications?{urlencode({'search': term})}") for term in terms]
    assert [page.value("search") for page in searched] == list(terms)
    marks = searched[1].texts_of("mark")
    assert marks and all(mark in " ".join(text.split()) for mark in marks)
    assert searched[0].titles() == searched[1].titles() == [f"a {' '.join(text.split())} b"]
    assert searched[2].shape == searched[3].shape
    service.caller().delete(f"/notifications/{sent}")


TYPED = [
    ("/app/keys", "name", {"name": "…" + "x" * 100}),
    ("/app/quiet", "end", {"days": "0-mo", "begin": "22:00", "end": "…"}),
    ("/app/devices/new", "name", {"kind": "apns", "token": "no", "name": "…"}),
    ("/app/devices/new", "name", {"kind": "ntfy", "name": "…" + "x" * 100}),
    ("/app/login", "email", {"email": "…", "password": "x"}),
]


def test_hostile_input_of_a_form_is_shown_escaped(owner):
    for path, field, form in TYPED:
        plain, *hostile = (
            owner.refused(path, {name: value.replace("…", typed) for name, value in form.items()})
            for typed in ("harmless", *SHORT)
        )
        for text, page in zip(SHORT, hostile, strict=True):
            assert page.shape == plain.shape, (path, text)
            assert form[field].replace("…", text) in page.values()


def test_hostile_input_on_the_set_up_page_is_shown_escaped(visitor):
    link = setup_link()
    visitor.get(link)
    typed = ({"email": one, "password": PASSWORD, "time_zone": one} for one in ("harmless", *SHORT))
    plain, *hostile = (Page(visitor.post(link, form).text) for form in typed)
    for text, page in zip(SHORT, hostile, strict=True):
        assert page.value("email") == text
        assert page.shape == plain.shape, text


def test_an_accounts_hostile_email_address_is_shown_escaped(service):
    shown, _ = [], service.account()  # the first one is an administrator, whose pages have more
    for local in ("harmless", *("".join(text.split()).replace("@", "").lower() for text in SHORT)):
        address = local + "@x.local"
        printed = service.flask("account", "create", "--", address).output.strip().partition(":8000")[2]
        visitor = Visitor(service)
        setup = visitor.page(printed)
        assert f"For {address}." in setup.text
        visitor.post(printed, {"password": PASSWORD})
        devices, settings = visitor.page("/app/devices"), visitor.page("/app/settings")
        assert address in settings.text
        shown.append([page.shape for page in (setup, devices, settings)])
    assert shown == shown[:1] * len(shown)
