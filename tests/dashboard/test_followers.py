"""Followers in the web app: inviting on Also notify, accepting on Home, leaving on Settings, and who did what."""

import pytest

from tests.support.accounts import OTHER, OWNER
from tests.support.alarms import ring
from tests.support.followers import invited, place
from tests.support.mutes import key_id
from tests.support.pages import Visitor, make_account, notification_page


@pytest.fixture
def other(service, owner):
    """A browser of another account."""
    make_account(service, OTHER)
    visitor = Visitor(service)
    visitor.sign_in(OTHER)
    visitor.page("/app/")
    return visitor


@pytest.fixture
def pages(service, caller):
    """The page Also notify of each kind of sender, and the page that leads to it."""
    alert = service.alert(name="Disk").id
    beat = caller.post("/heartbeats", {"name": "Backup", "periodS": 3600}).json["heartbeat"]["id"]
    rule = caller.post("/rules", {"project": "p", "metric": "cpu", "when": "> 90"}).json["rule"]["id"]
    return {
        f"/app/followers/alert/{alert}": f"/app/alerts/{alert}",
        f"/app/followers/heartbeat/{beat}": f"/app/watches/{beat}",
        f"/app/followers/key/{key_id(caller, 'backup script')}": "/app/keys",
        f"/app/followers/rule/{rule}": f"/app/metrics/one?project=p&metric=cpu&range=24%20h&rule={rule}",
    }


def test_each_kind_is_shared_accepted_on_home_and_left_on_settings(owner, other, pages):
    for path, leads_here in pages.items():
        assert path in [e.attributes.get("href") for e in owner.page(leads_here).elements], leads_here
        shown = owner.done(path, {"email": OTHER}, leads_to=path)
        assert OTHER in shown.main and "Invited" in shown.main
    home = other.page("/app/")
    accepts = home.forms("/accept")
    assert OWNER in home.main and "Invitations" in home.main and len(accepts) == len(pages)
    assert {other.post(accept).location for accept in accepts} == {"/app/"}
    assert "Invitations" not in other.page("/app/").main
    assert "Invited" not in owner.page(next(iter(pages))).main
    assert "You follow" in other.page("/app/settings").main
    leaves = [accept.replace("/accept", "/leave") for accept in accepts]
    assert {other.post(leave).location for leave in leaves} == {"/app/settings"}
    assert "You follow" not in other.page("/app/settings").main
    assert not any(OTHER in owner.page(path).main for path in pages)


def test_what_is_followed_can_be_muted_on_the_page_quiet_hours(owner, other, pages):
    path = next(iter(pages))
    owner.done(path, {"email": OTHER}, leads_to=path)
    accept = other.page("/app/").action_of("/accept")
    other.done(accept, {}, leads_to="/app/")
    assert f"Disk ({OWNER})" in other.page("/app/quiet").main
    muted = {"what": f"alert:{accept.split('/')[-2]}", "duration": "1h", "cron": ""}
    assert "Muted the alert Disk" in other.done("/app/mutes", muted, leads_to="/app/quiet").main
    assert f"({OTHER})" not in owner.page("/app/quiet").main


def test_an_invitation_is_declined_on_home_and_a_follower_removed(owner, other, pages):
    path = next(iter(pages))
    owner.done(path, {"email": OTHER}, leads_to=path)
    home = other.page("/app/")
    decline = home.action_of("/leave")
    assert "Invitations" not in other.done(decline, {}, leads_to="/app/").main
    shown = owner.done(path, {"email": OTHER}, leads_to=path)
    remove = shown.action_of("/remove")
    assert OTHER not in owner.done(remove, {}, leads_to=path).main.partition("no longer")[2]
    assert "Invitations" not in other.page("/app/").main


def test_an_unknown_kind_or_id_is_no_page(owner, pages):
    for path in ("/app/followers/all/x", "/app/followers/alert/x", f"{next(iter(pages))}/x/remove"):
        assert owner.post(path, {"email": OTHER}).status_code == 404, path


def test_a_copy_names_the_sender_and_its_owner_and_leads_to_no_page_of_theirs(service, owner, other, caller):
    hook = service.alert("--icon", "flame", name="Disks")
    one = invited(caller, "alert", hook.id, OTHER)
    other.post(f"/app/following/{one['id']}/accept", {})
    hook.post({"message": "full"})
    theirs = service.caller(OTHER).listed()[0]["id"]
    page = notification_page(other, theirs)
    assert "Disks" in page.main and f"shared by {OWNER}" in page.main and hook.id not in page.text
    assert "Disks" in other.page("/app/notifications").main
    caller.delete(f"/alerts/{hook.id}")
    assert OWNER in notification_page(other, theirs).main


def test_pages_say_who_acknowledged_and_answered(service, owner, other, caller):
    key = key_id(caller, "backup script")
    one = invited(caller, "key", key, OTHER)
    other.post(f"/app/following/{one['id']}/accept", {})
    mine = ring(caller, actions=[{"label": "Yes", "answer": "y"}])
    theirs = service.caller(OTHER).listed()[0]["id"]
    other.post(f"/app/notifications/{theirs}/answer", {"position": "0"})
    page = notification_page(owner, mine)
    assert page.main.count(f"by {OTHER}") == 3  # the answer, twice, and the acknowledgement
    assert f"by {OTHER}" not in notification_page(other, theirs).main


def test_more_invitations_than_fit_are_counted(service, owner, other, caller):
    for number in range(7):
        caller.post(place("alert", service.alert(name=f"Alert {number}").id), {"email": OTHER})
    home = other.page("/app/").main
    assert home.count("with you") == 5 and "2 more when these are done" in home
