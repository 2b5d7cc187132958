"""A form is accepted only from our own pages: its token and its origin are checked."""

import re

import pytest

from app import ROUTES
from tests.support.accounts import OWNER
from tests.support.commands import lines_of
from tests.support.forms import POST_RULES
from tests.support.rows import each
from tests.support.tables import everything

FOREIGN_ORIGINS = [
    *("https://evil.example", "http://localhost.evil.example", "http://evil.example/localhost"),
    *("http://localhost:8001", "http://localhost@evil.example", "null", "", "http://["),
]


# Words of the forms that end what others need, the last ones last.
ENDS = ["rotate", "disable", "enable", "withdraw", "/end", "remove", "revoke", "delete", "setup", "login"]
LATER = [  # what needs something that others end; each list is sent from pages of its own
    [
        *("/app/alerts/<alert_id>/preset", "/app/alerts/<alert_id>/forget"),
        *("/app/notifications/<notification_id>/acknowledge", "/app/notifications/delete"),
        *("/app/devices/phone/answer", "/app/phone", "/app/settings/password"),
    ],
    [
        "/app/notifications/<notification_id>/snooze",
        "/app/notifications/acknowledge",
        "/app/phone/<code>",
        "/app/logout",
    ],
    ["/app/settings/sign-out-everywhere"],
]
FIRST = [rule for rule in POST_RULES if not any(rule in rules for rules in LATER)]
FIRST.sort(key=lambda rule: (max((place for place, word in enumerate(ENDS) if word in rule), default=-1), rule))


@pytest.mark.parametrize("rules", [FIRST, *LATER])
def test_a_genuine_form_is_accepted_and_changes_something(forms, rules):
    after = everything()
    for rule in rules:
        before, answer = after, forms.send(rule)
        assert answer.status_code in (200, 201, 303), (rule, answer.text)
        after = everything()
        assert (after != before) == (rule != "/app/forgot"), rule


@pytest.fixture
def refused(forms):
    """Sends a form that must be refused and change nothing."""
    before = everything()

    def send(rule, **more):
        answer = forms.send(rule, **more)
        assert answer.status_code == 400 and "Open the page again" in answer.text, rule

    yield send
    assert everything() == before
    assert forms.owner.is_signed_in and not forms.visitor.is_signed_in  # nobody's cookie has changed


def test_a_form_without_its_sessions_token_or_from_another_origin_is_refused_and_changes_nothing(stranger, refused):
    for rule in POST_RULES:
        refused(rule, token=stranger.token)
    for rule in {one.guard: one.rule for one in ROUTES if one.rule in POST_RULES and one.method == "POST"}.values():
        refused(rule, token="")
        refused(rule, headers={"Origin": "https://evil.example"})


@each("origin", FOREIGN_ORIGINS)
def test_an_origin_similar_to_ours_is_refused(refused, origin):
    refused(POST_RULES[0], headers={"Origin": origin})


@each("token", ["é", "\u00ff" * 5000, "0", "None", "undefined"])
def test_a_forged_token_is_refused(owner, token):
    assert owner.post("/app/keys", {"name": "x", "csrf": token}, headers={"X-CSRF-Token": None}).status_code == 400


def test_a_form_of_a_browser_that_sends_no_origin_is_taken(owner):
    assert owner.post("/app/keys", {"name": "x"}, headers={"Origin": None}).status_code == 303


def test_a_form_sends_its_token_in_a_field(owner):
    sent = {"name": "x", "csrf": owner.page("/app/keys").value("csrf")}
    assert owner.post("/app/keys", sent, headers={"X-CSRF-Token": None}).status_code == 303


def test_a_form_that_was_open_while_the_browser_signed_out_is_refused(service, owner):
    old = owner.token
    owner.post("/app/logout")
    owner.sign_in()
    assert owner.post("/app/keys", {"name": "x"}, token=old).status_code == 400
    assert lines_of(service, "key", "list", OWNER) == []


def test_a_get_request_to_the_address_of_a_form_changes_nothing(forms):
    before = everything()
    for rule in POST_RULES:
        path = re.sub("<[a-z_]+>", lambda match: forms.ids[match[0]], rule)
        forms.owner.get(path, query_string=forms.content(rule) if rule != "/app/devices" else None)
    assert everything() == before
    assert forms.owner.is_signed_in
