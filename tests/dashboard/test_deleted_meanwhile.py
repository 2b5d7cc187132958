"""A request whose account is deleted while it is under way is refused like one whose account was deleted before."""

import pytest

from core import accounts, deletion
from store import database
from tests.support.accounts import OTHER, OWNER
from tests.support.followers import invited
from tests.support.heartbeats import Pinged
from tests.support.pages import Page, make_account, signed_in

BODIES = {
    "/notifications/send": {"title": "t", "body": "b"},
    "/alerts": {"name": "Disk"},
    "/heartbeats": {"name": "Backup", "periodS": 60},
    "/rules": {"project": "p", "metric": "m", "when": "> 9"},
    "/mutes": {"what": "all", "forS": 60},
    "/devices": {"kind": "ntfy", "name": "Phone"},
}


@pytest.fixture
def delete_meanwhile(service, monkeypatch):
    """Arrange that the account with this address is deleted just before the next transaction."""

    def delete(email):
        begin = database._engine.transaction

        def meanwhile(*account_seqs, **more):
            monkeypatch.setattr(database._engine, "transaction", begin)
            deletion.delete_account(accounts.find_account(email))
            return begin(*account_seqs, **more)

        monkeypatch.setattr(database._engine, "transaction", meanwhile)

    return delete


@pytest.mark.parametrize("path", BODIES)
def test_a_request_with_a_key_is_refused_as_with_an_unknown_key(service, delete_meanwhile, path):
    make_account(service, OTHER)
    caller = service.caller(service.account(OWNER))
    delete_meanwhile(OWNER)
    refused = caller.post(path, BODIES[path])
    assert (refused.status_code, refused.json["code"]) == (401, "UNAUTHORIZED"), refused.json


def test_an_invitation_is_not_accepted(service, delete_meanwhile):
    owner = service.caller(service.account(OWNER))
    caller = service.caller(service.account(OTHER))
    hook = service.alert()
    one = invited(owner, "alert", hook.id, OTHER)
    delete_meanwhile(OTHER)
    assert caller.post(f"/following/{one['id']}/accept").status_code == 401
    assert [one["state"] for one in owner.get(f"/alerts/{hook.id}/followers").json["followers"]] == ["invited"]


def test_a_page_asks_to_sign_in_again(service, delete_meanwhile):
    make_account(service, OTHER)
    visitor = signed_in(service, OWNER)
    visitor.get("/app/alerts/new")
    delete_meanwhile(OWNER)
    answer = visitor.post("/app/alerts/new", {"name": "Disk", "title": "t", "body": "b"})
    assert (answer.status_code, "Sign in again" in Page(answer.text).main) == (401, True), answer.text


@pytest.mark.parametrize("begin", ["/p/", "/ping/"])
def test_an_address_is_an_unknown_one(service, delete_meanwhile, begin):
    make_account(service, OTHER)
    caller = service.caller(service.account(OWNER))
    code = service.alert().code if begin == "/p/" else Pinged(service, caller, "--period", "1h").path[6:]
    delete_meanwhile(OWNER)
    assert service.client.post(begin + code, json={"t": 1}).status_code == 404
