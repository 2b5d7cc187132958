"""What counts for all who have the same notification, once: three accounts, each with a phone."""

import pytest

from core import answers
from core.buttons import token_of
from models import Account
from tests.support.alarms import bodies, detail, ring, send_at
from tests.support.assistants import call
from tests.support.followers import follow, follower
from tests.support.mutes import key_id
from tests.support.rows import each

FOLLOWERS = ("bob", "cleo")
WHO = ("owner", *FOLLOWERS)
by_whom = each("who", ["owner", "bob"])  # followers are alike
of_what_waits = each("how, who", [(how, who) for how in ("repeating", "held") for who in ("owner", "bob")])
YES_OR_NO = [{"label": "Yes", "answer": "y"}, {"label": "No", "answer": "n"}]


class Household:
    """An owner, and two accounts that follow the owner's key, each with a phone."""

    def __init__(self, service, owner, push_service):
        self.service, self.callers, self.phones = service, {"owner": owner}, {}
        for name in FOLLOWERS:
            self.callers[name] = follower(service, owner, "key", key_id(owner), name)
        for name, caller in self.callers.items():
            self.phones[name] = push_service.browser()
            sent = {"kind": "webpush", "subscription": self.phones[name].subscription, "name": f"{name}'s"}
            assert caller.post("/devices", sent).status_code == 201

    def ids(self):
        """The id of the newest notification of each."""
        return {name: caller.listed("?limit=1")[0]["id"] for name, caller in self.callers.items()}

    def shown(self, ids):
        """The notification of each; None where it is gone."""
        answers = {name: self.callers[name].get(f"/notifications/{id_}") for name, id_ in ids.items()}
        return {name: one.json["notification"] if one.status_code == 200 else None for name, one in answers.items()}

    def states(self, ids):
        shown = self.shown(ids)
        return {name: one and one["acknowledge"]["state"] for name, one in shown.items()}


@pytest.fixture
def household(service, owner, push_service):
    return Household(service, owner, push_service)


@pytest.fixture
def send(household, moved_clock):
    """Sends one that waits for everybody: the ids of all three."""

    def made(how):
        owner = household.callers["owner"]
        asked = {"tag": "disk", "acknowledge": {"everyS": 60, "forS": 3600}, "actions": YES_OR_NO}
        if how == "held":
            send_at(owner, moved_clock.ms + 600_000, **asked)
        else:
            owner.post("/notifications/send", {"title": "Disk", "body": "full", **asked})
        household.service.work()
        return household.ids()

    return made


@of_what_waits
def test_anyones_acknowledgement_counts_for_all_once(household, send, how, who, moved_clock):
    sent = send(how)
    answer = household.callers[who].post(f"/notifications/{sent[who]}/acknowledge")
    assert answer.status_code == 200
    shown = household.shown(sent)
    assert {one["acknowledge"]["state"] for one in shown.values()} == {"acknowledged"}
    by = {name: one.get("acknowledgedBy") for name, one in shown.items()}
    email = f"{who}@example.org"
    assert by == {name: None if name == who else email for name in WHO}
    moved_clock.advance(5)
    last = WHO[-1] if who != WHO[-1] else WHO[0]
    household.callers[last].post(f"/notifications/{sent[last]}/acknowledge")
    assert household.shown(sent) == shown


@of_what_waits
def test_the_first_answer_of_anybody_is_that_of_all(household, send, how, who):
    sent = send(how)
    answers.answer(Account.find(f"{who}@example.org"), sent[who], 0)
    shown = household.shown(sent)
    assert {one["answer"]["answer"] for one in shown.values()} == {"y"}
    assert {one["acknowledge"]["state"] for one in shown.values()} == {"acknowledged"}
    assert [name for name in WHO if "by" not in shown[name]["answer"]] == [who]
    for name in WHO:
        account = Account.find(f"{name}@example.org")
        with pytest.raises(Exception, match="already answered"):
            answers.answer(account, sent[name], 1)


@of_what_waits
def test_a_newer_one_with_the_tag_replaces_all_if_the_owners_sends_it_and_else_only_his_own(
    household, send, how, who
):
    sent = send(how)
    household.callers[who].post("/notifications/send", {"title": "Disk", "body": "newer", "tag": "disk"})
    states = household.states(sent)
    replaced = WHO if who == "owner" else (who,)
    assert states == {name: "cancelled" if name in replaced else "waiting" for name in WHO}
    newer = {name: caller.listed()[0]["body"] for name, caller in household.callers.items()}
    assert [name for name in WHO if newer[name] == "newer"] == list(replaced)
    shown = household.shown(sent)
    assert [name for name in WHO if "replacedBy" in shown[name]] == list(replaced)
    assert all(shown[name]["replacedBy"] == household.ids()[name] for name in replaced)


@of_what_waits
def test_the_owners_deletion_takes_what_waits_along_and_a_followers_only_his_own(household, send, how, who):
    sent = send(how)
    assert household.callers[who].delete(f"/notifications/{sent[who]}").json == {"ok": True}
    gone = WHO if who == "owner" else (who,)
    assert household.states(sent) == {name: None if name in gone else "waiting" for name in WHO}


@by_whom
def test_what_was_delivered_or_acknowledged_is_deleted_by_each_alone(household, who, service):
    ring(household.callers["owner"])
    service.work()
    ids = household.ids()
    household.callers["cleo"].post(f"/notifications/{ids['cleo']}/acknowledge")
    household.callers[who].delete(f"/notifications/{ids[who]}")
    assert [name for name, state in household.states(ids).items() if state is None] == [who]


def test_the_rest_of_a_group_holds_together_when_the_owners_is_deleted(household, service):
    ring(household.callers["owner"], tag="disk")
    ids = household.ids()
    household.callers["owner"].post("/notifications/send", {"title": "a", "body": "b", "actions": YES_OR_NO})
    asked = household.ids()
    household.callers["owner"].delete(f"/notifications/{asked['owner']}")
    press(household, "bob", asked["bob"], 1)
    assert {one["answer"]["answer"] for name, one in household.shown(asked).items() if name != "owner"} == {"n"}
    household.callers["owner"].post("/notifications/send", {"title": "a", "body": "newer", "tag": "disk"})
    assert set(household.states(ids).values()) == {"cancelled"}


def press(household, name, id_, position):
    """Press a button on the phone of this account, as it was pushed."""
    household.service.work()
    (device,) = household.callers[name].get("/devices").json["devices"]
    answer = household.service.client.post(f"/a/{token_of(id_, device['id'], position)}")
    assert answer.status_code == 200, answer.text


def test_a_press_on_a_phone_names_the_account_and_the_device_to_the_others(household, service, moved_clock):
    ring(household.callers["owner"])
    service.work()
    ids = household.ids()
    press(household, "bob", ids["bob"], None)
    moved_clock.advance(2)
    service.work()
    shown = {name: bodies(phone) for name, phone in household.phones.items()}
    said = "Acknowledged by bob@example.org on bob's."
    assert shown == {name: ["full"] if name == "bob" else ["full", said] for name in WHO}


def test_repeats_reach_everybody_until_somebody_acknowledges(household, service, moved_clock):
    ring(household.callers["owner"])
    for _ in range(3):
        service.work()
        moved_clock.advance(60)
    assert {len(bodies(phone)) for phone in household.phones.values()} == {3}
    ids = household.ids()
    household.callers["cleo"].post(f"/notifications/{ids['cleo']}/acknowledge")
    for _ in range(3):
        moved_clock.advance(60)
        service.work()
    said = dict.fromkeys(WHO, "Acknowledged by cleo@example.org.") | {"cleo": "Acknowledged."}
    assert {name: bodies(phone)[-1] for name, phone in household.phones.items()} == said
    assert {len(bodies(phone)) for phone in household.phones.values()} == {4}


def test_a_copy_replaces_only_copies_of_the_same_sender(household, service, owner):
    bob = household.callers["bob"]
    other = service.caller(name="other")
    follow(owner, bob, "bob@example.org", "key", key_id(owner, "other"))
    bob.post("/notifications/send", {"title": "own", "body": "own", "tag": "disk"})
    own = bob.listed()[0]["id"]
    other.post("/notifications/send", {"title": "other", "body": "other", "tag": "disk"})
    others_copy = bob.listed()[0]["id"]
    owner.post("/notifications/send", {"title": "a", "body": "b", "tag": "disk"})
    assert not [id_ for id_ in (own, others_copy) if "replacedBy" in detail(bob, id_)]


def test_who_is_passed_over_has_his_earlier_one_ended(household, service, owner):
    ring(owner, tag="disk")
    ids = household.ids()
    service.flask("account", "disable", "bob@example.org")
    owner.post("/notifications/send", {"title": "a", "body": "newer", "tag": "disk"})
    service.flask("account", "enable", "bob@example.org")
    assert household.states(ids)["bob"] == "cancelled"
    assert "replacedBy" not in detail(household.callers["bob"], ids["bob"])


def test_an_assistants_question_gets_the_first_answer_of_anybody(household, service, owner):
    service.work()
    sent = call(owner, "ask", {"question": "Deploy?", "answers": ["Yes", "No"]})["structuredContent"]["notification"]
    press(household, "cleo", household.ids()["cleo"], 1)
    given = call(owner, "get_notification", {"id": sent["id"]})["structuredContent"]["notification"]["answer"]
    assert (given["label"], given["by"], given["device"]) == ("No", "cleo@example.org", None)
