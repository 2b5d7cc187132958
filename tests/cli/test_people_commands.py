"""`account invite`, `disable`, `enable`, and administrators on the command line."""

import re

import pytest

from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.commands import lines_of, printed, said
from tests.support.pages import Visitor
from tests.support.rows import each

LAST = "This is the last administrator who can sign in."


def states(service):
    """The role and the state of each account, as `account list` shows them."""
    return {line[0]: tuple(line[5:]) for line in lines_of(service, "account", "list")}


def sign_in(service, email=OWNER):
    """The status of signing in: 303 is a welcome."""
    return Visitor(service).sign_in(email).status_code


@pytest.fixture
def owned(service):
    """A service whose owner can sign in."""
    printed(service.flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD))
    return service


@pytest.fixture
def second(owned):
    """The same with a second account, which is an administrator, too."""
    printed(owned.flask("account", "create", OTHER, "--password-stdin", stdin=PASSWORD))
    assert printed(owned.flask("account", "set", OTHER, "--admin")).endswith(", administrator.")
    return owned


def test_an_invitation_is_a_link_alone_and_the_list_shows_that_it_waits(owned):
    link = printed(owned.flask("account", "invite", OTHER, "--plan", "pro", "--admin"))
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/app/setup/[\w-]{43}", link)
    assert lines_of(owned, "account", "list")[0][:2] == [OTHER, "pro"]
    assert states(owned) == {OWNER: ("administrator", "enabled"), OTHER: ("administrator", "invited")}


def test_who_has_an_account_is_not_invited(owned):
    assert "already an account" in said(owned.flask("account", "invite", OWNER.upper()))
    assert "name@example.org" in said(owned.flask("account", "invite", "nobody"))
    assert sign_in(owned) == 303


def test_a_disabled_account_signs_in_again_once_it_is_enabled(second):
    assert printed(second.flask("account", "disable", OTHER)) == f"{OTHER} is disabled."
    assert (states(second)[OTHER], sign_in(second, OTHER)) == (("administrator", "disabled"), 422)
    assert printed(second.flask("account", "enable", OTHER)) == f"{OTHER} is enabled."
    assert (states(second)[OTHER], sign_in(second, OTHER)) == (("administrator", "enabled"), 303)


@pytest.mark.parametrize("command", ["disable", "set --no-admin", "delete --yes"])
def test_the_last_administrator_stays(owned, command):
    name, *options = command.split()
    owned.flask("account", "invite", OTHER, "--admin")
    assert said(owned.flask("account", name, OWNER, *options)).startswith(f"Error: {LAST}")
    assert states(owned)[OWNER] == ("administrator", "enabled")
    printed(owned.flask("account", "set", OTHER, "--password-stdin", stdin=PASSWORD))
    printed(owned.flask("account", name, OWNER, *options))
    assert states(owned).get(OWNER) != ("administrator", "enabled")


def test_a_refused_change_of_the_role_leaves_the_plan_as_it_was(owned):
    said(owned.flask("account", "set", OWNER, "--no-admin", "--plan", "scale"))
    assert lines_of(owned, "account", "list")[0][1] == "starter"


@each("command", ["account set EMAIL --password-link", "send EMAIL title body"])
def test_what_cannot_reach_a_disabled_account_says_so(second, command):
    second.flask("account", "disable", OTHER)
    assert f"{OTHER} is disabled" in said(second.flask(*command.replace("EMAIL", OTHER).split()))
