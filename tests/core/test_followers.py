"""Followers: who is invited, and what each gets of what an owner's alert, heartbeat, rule or key sends."""

import json
from io import BytesIO

import pytest

from core import alarms, storage
from models import Account
from store import copies, followers
from store.database import run
from tests.support.accounts import account_set
from tests.support.alarms import bodies, detail, every, send_at
from tests.support.devices import subscribe
from tests.support.followers import PATHS, follow, follower, invited, place
from tests.support.heartbeats import Pinged
from tests.support.mutes import key_id, mute
from tests.support.picture_files import png
from tests.support.rows import each
from tests.support.times import DAY_S

BOB = "bob@example.org"


@pytest.fixture
def hook(service, owner):
    return service.alert("--title", "{{ t }}", "--body", "{{ b }}")


@pytest.fixture
def bob(service, owner, hook):
    """An account that follows the alert and the owner's key, with a phone."""
    one = follower(service, owner, "alert", hook.id)
    follow(owner, one, BOB, "key", key_id(owner))
    return one


@pytest.fixture
def phone(bob, push_service):
    return subscribe(bob, push_service)


def account_seq(email=BOB):
    return Account.find(email).seq


def followed_id(caller, what="alert"):
    """The id by which the account follows the alert, key, heartbeat or rule."""
    return next(one["id"] for one in caller.get("/following").json["following"] if one["what"] == what)


def counts(caller):
    stats = caller.get("/stats").json["stats"]
    return stats["totalNotificationsAllTime"], stats["notificationsThisDay"]


# --- inviting -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", PATHS)
def test_who_accepts_follows_and_who_leaves_does_not(service, owner, what):
    ids = {"key": key_id(owner), "alert": service.alert().id}
    ids["heartbeat"] = owner.post("/heartbeats", {"name": "Backup", "periodS": 60}).json["heartbeat"]["id"]
    ids["rule"] = owner.post("/rules", {"project": "p", "metric": "m", "when": "> 9"}).json["rule"]["id"]
    bob = service.caller(service.account(BOB))
    at = place(what, ids[what])
    one = invited(owner, what, ids[what], " Bob@Example.org ")
    assert one["email"] == BOB and owner.get(at).json["followers"] == [{**one, "state": "invited"}]
    (mine,) = bob.get("/following").json["following"]
    assert (mine["owner"], mine["what"], mine["state"]) == ("owner@example.org", what, "invited")
    for _ in range(2):
        assert bob.post(f"/following/{one['id']}/accept").json["followed"] == {**mine, "state": "following"}
    assert owner.get(at).json["followers"] == [{**one, "state": "following"}]
    assert owner.post(at, {"email": BOB}).status_code == 200
    assert bob.delete(f"/following/{one['id']}").json == {"ok": True}
    assert owner.get(at).json["followers"] == bob.get("/following").json["following"] == []
    assert bob.delete(f"/following/{one['id']}").status_code == 404


def test_an_invitation_that_nobody_accepts_is_gone_after_30_days_also_for_an_account_that_comes_later(
    service, owner, hook, moved_clock
):
    one = invited(owner, "alert", hook.id, BOB)
    moved_clock.advance(30 * DAY_S - 1)
    bob = service.caller(service.account(BOB))
    assert [known["id"] for known in bob.get("/following").json["following"]] == [one["id"]]
    moved_clock.advance(1)
    assert bob.get("/following").json["following"] == owner.get(place("alert", hook.id)).json["followers"] == []
    assert bob.post(f"/following/{one['id']}/accept").status_code == 404
    again = invited(owner, "alert", hook.id, BOB)
    assert bob.post(f"/following/{again['id']}/accept").status_code == 200


def test_an_invitation_that_expired_is_renewed_and_answered_as_itself(owner, hook, moved_clock):
    first = invited(owner, "alert", hook.id, "old@example.org")
    moved_clock.advance(20 * DAY_S)
    second = invited(owner, "alert", hook.id, "new@example.org")
    moved_clock.advance(11 * DAY_S)
    again = invited(owner, "alert", hook.id, "old@example.org")
    assert again["email"] == "old@example.org" and again["id"] not in (first["id"], second["id"])
    assert owner.get(place("alert", hook.id)).json["followers"] == [again, second]


def test_what_expired_and_the_followers_of_a_key_that_ended_are_removed(service, owner, hook, bob, moved_clock):
    invited(owner, "alert", hook.id, "nobody@example.org")
    owner.delete(f"/api-keys/{key_id(owner)}")
    every(service, moved_clock, 31 * DAY_S)
    assert run("SELECT what, email FROM follower").fetchall() == [("alert", BOB)]


@each("email", ["owner@example.org", " Owner@example.org", "", "x", None, 5, "a@b c", "x" * 255 + "@example.org"])
def test_a_wrong_address_and_the_own_one_are_refused(owner, hook, email):
    assert owner.post(place("alert", hook.id), {"email": email}).status_code == 400
    assert owner.get(place("alert", hook.id)).json["followers"] == []


def test_the_21st_is_refused_until_one_goes(owner, hook):
    made = [invited(owner, "alert", hook.id, f"{number}@example.org") for number in range(20)]
    refused = owner.post(place("alert", hook.id), {"email": BOB})
    assert (refused.status_code, "At most 20" in refused.json["error"]) == (400, True)
    assert owner.post(place("alert", hook.id), {"email": "7@example.org"}).status_code == 200
    assert owner.delete(f"{place('alert', hook.id)}/{made[3]['id']}").json == {"ok": True}
    invited(owner, "alert", hook.id, BOB)


def test_whether_an_address_has_an_account_changes_no_answer_and_no_statement(service, owner, hook, monkeypatch):
    service.account(BOB)
    asked, answers = [], []
    monkeypatch.setattr(followers, "run", lambda *said: asked[-1].append(said[0]) or run(*said))
    monkeypatch.setattr(Account, "find", lambda email: pytest.fail("an address was looked up"))
    for email in (BOB, "nobody@example.org"):
        asked.append([])
        answer = owner.post(place("alert", hook.id), {"email": email})
        answers.append((answer.status_code, {**answer.json["follower"], "id": "", "email": ""}))
    assert answers[0] == answers[1] and asked[0] == asked[1] and asked[0]


def test_what_is_deleted_or_revoked_is_followed_no_more(service, owner, hook, bob):
    owner.delete(f"/alerts/{hook.id}")
    assert [one["what"] for one in bob.get("/following").json["following"]] == ["key"]
    other = owner.post("/api-keys/generate", {"name": "other"}).json["apiKey"]
    follow(owner, bob, BOB, "key", other["id"])
    owner.delete(f"/api-keys/{other['id']}")
    assert [one["name"] for one in bob.get("/following").json["following"]] == ["test"]
    assert owner.get(place("key", other["id"])).status_code == 404


# --- what a follower gets -----------------------------------------------------------------------------------


def test_an_event_makes_a_notification_of_his_own_for_each_follower(service, owner, hook, bob, phone):
    ana = follower(service, owner, "alert", hook.id, "ana")
    answer = hook.post({"t": "Disk", "b": "full", "secret": "x"})
    mine, bobs, anas = (caller.listed()[0] for caller in (owner, bob, ana))
    assert answer.json["notificationId"] == mine["id"] and len({mine["id"], bobs["id"], anas["id"]}) == 3
    assert {one["body"] for one in (mine, bobs, anas)} == {"full"}
    assert (mine["status"], bobs["status"], anas["status"]) == ("delivered", "pending", "delivered")
    service.work()
    assert bodies(phone) == ["full"] and bob.listed()[0]["status"] == "delivered"
    assert [counts(caller) for caller in (owner, bob, ana)] == [(1, 1)] * 3
    assert [caller.alerts() and caller.alerts()[0]["notificationCount"] for caller in (owner, bob)] == [1, []]


def test_what_is_not_followed_reaches_nobody_else(service, owner, hook, bob):
    service.alert(name="another").post({"t": "x"})
    service.caller(name="another").send()
    service.flask("send", "owner@example.org", "title", "body")
    assert bob.listed() == [] and len(owner.listed()) == 3


def test_a_heartbeat_and_a_rule_tell_their_followers(service, owner, moved_clock):
    beat = Pinged(service, owner, "--period", "1h")
    rule = owner.post("/rules", {"project": "web", "metric": "cpu", "when": "> 90"}).json["rule"]
    bob = follower(service, owner, "heartbeat", beat.id)
    follow(owner, bob, BOB, "rule", rule["id"])
    beat.ping("/fail")
    value = {"metricId": "cpu", "metricName": "CPU", "value": 95}
    owner.request("POST", "/api/webhooks/custom", json={"projectId": "web", "metrics": [value]})
    assert [one["title"] for one in bob.listed()] == [one["title"] for one in owner.listed()]
    assert len(bob.listed()) == 2
    silent = owner.post("/heartbeats", {"name": "Silent", "periodS": 60}).json["heartbeat"]
    follow(owner, bob, BOB, "heartbeat", silent["id"])
    account_set("--timezone", "Asia/Tokyo", email=BOB)
    service.client.get("/ping/" + silent["url"].rpartition("/")[2])
    every(service, moved_clock, 3_600)
    assert "Silent is down" in bob.listed()[0]["title"] and bob.listed()[0]["body"].endswith(" 10:01 (UTC).")


def test_the_alerts_digest_and_the_followers_own_quiet_hours_hold_a_copy(service, owner, hook, bob, phone, until):
    account_set("--quiet-hours", "22:00-07:00", email=BOB)
    account_set("--timezone", "America/New_York", email=BOB)
    until("2026-11-22T05:00")  # midnight there
    assert (hook.post({"t": "a", "b": "night"}).json["status"], bob.listed()[0]["status"]) == ("delivered", "held")
    loud = service.alert("--body", "{{ b }}", "--ignore-quiet-hours", name="loud")
    follow(owner, bob, BOB, "alert", loud.id)
    loud.post({"b": "ignores"})
    service.work()
    assert bodies(phone) == ["ignores"]
    until("2026-11-22T11:59")
    service.work()
    assert len(bodies(phone)) == 1
    until("2026-11-22T12:00")
    service.work()
    service.work()
    assert bodies(phone) == ["ignores", "night"]


def test_a_follower_gets_the_alerts_digests(owner, hook, bob, phone, passes):
    hook.set("--frequency", "15m")
    for number in range(3):
        assert hook.post({"t": "a", "b": f"{number}"}).json["status"] == "held"
    assert [one["status"] for one in bob.listed()] == ["held"] * 3
    passes(15 * 60)
    assert bodies(phone) == ["a: 0\na: 1\na: 2"]


def test_a_followers_mute_and_least_priority_are_his_own(service, owner, hook, bob, phone):
    mute(bob, mode="history")
    hook.post({"t": "a", "b": "muted"})
    service.work()
    assert bodies(phone) == [] and bob.listed()[0]["status"] == "delivered"
    (device,) = bob.get("/devices").json["devices"]
    bob.delete(f"/mutes/{bob.get('/mutes').json['mutes'][0]['id']}")
    bob.patch(f"/devices/{device['id']}", {"minPriority": 4})
    owner.post("/notifications/send", {"title": "a", "body": "low", "priority": 2})
    owner.post("/notifications/send", {"title": "a", "body": "high", "priority": 4})
    service.work()
    assert bodies(phone) == ["high"]


@each("by", ["REST", "command line"])
def test_a_follower_mutes_what_he_follows_for_himself_alone(service, owner, hook, bob, phone, by):
    if by == "REST":
        muted = mute(bob, "alert", followed_id(bob))
    else:
        assert service.flask("mute", BOB, "alert:Backups", "1h").stdout.startswith("Muted the alert Backups until")
        (muted,) = bob.get("/mutes").json["mutes"]
    assert (muted["subject"], muted["name"]) == (followed_id(bob), "Backups")
    hook.post({"t": "a", "b": "1"})
    assert (bob.listed()[0]["status"], owner.listed()[0]["status"], bodies(phone)) == ("held", "delivered", [])
    assert bob.post("/mutes", {"what": "alert", "id": hook.id, "forS": 60}).status_code == 404
    assert service.flask("unmute", BOB, "alert:Backups").stdout == "Ended 1 mute of alert:Backups.\n"


@each("how", ["scheduled", "snoozed", "snoozed event"])
def test_a_mute_of_what_he_follows_holds_what_is_scheduled_or_was_snoozed(
    owner, hook, bob, phone, passes, moved_clock, how
):
    if how == "scheduled":
        send_at(owner, moved_clock.ms + 60_000)
    elif how == "snoozed":
        owner.send(body="later")
    else:
        hook.post({"t": "a", "b": "later"})
    passes(1)
    id_ = bob.listed()[0]["id"]
    if how != "scheduled":
        assert bob.post(f"/notifications/{id_}/snooze", {"forS": 60}).status_code == 200
    before = len(phone.messages)
    what = "alert" if how == "snoozed event" else "key"
    mute(bob, what, followed_id(bob, what), for_s=120)
    passes(60)
    assert (detail(bob, id_)["status"], len(phone.messages)) == ("held", before)
    passes(60)
    passes(1)
    assert (detail(bob, id_)["status"], bodies(phone)[before:]) == ("delivered", ["later"])


@pytest.mark.parametrize("options, status", [((), "held"), (("--ignore-quiet-hours",), "delivered")])
def test_his_quiet_hours_hold_a_snoozed_event_unless_the_alert_ignores_them(
    service, owner, bob, phone, passes, options, status
):
    hook = service.alert(*options, name="Door")
    follow(owner, bob, BOB, "alert", hook.id)
    hook.post({"message": "open"})
    passes(1)
    id_ = bob.listed()[0]["id"]
    bob.post(f"/notifications/{id_}/snooze", {"forS": 60})
    account_set("--quiet-hours", "09:00-12:00", email=BOB)  # the clock stands at 10:00
    passes(60)
    passes(1)
    assert detail(bob, id_)["status"] == status


def test_a_name_that_the_follower_and_the_owner_gave_needs_an_id(service, hook, bob):
    own = service.alert(email=BOB, name="Backups").id
    refused = service.flask("mute", BOB, "alert:Backups", "1h").stderr
    assert '2 alerts have the name "Backups"' in refused and own in refused and followed_id(bob) in refused


def test_a_mute_goes_with_what_it_mutes(service, owner, hook, bob):
    ends = {
        "left": lambda id_: bob.delete(f"/following/{followed_id(bob)}"),
        "removed": lambda id_: owner.delete(f"{place('alert', id_)}/{followed_id(bob)}"),
        "deleted": lambda id_: owner.delete(f"/alerts/{id_}"),
    }
    bob.delete(f"/following/{followed_id(bob)}")
    for way, end in ends.items():
        id_ = service.alert(name=way).id
        follow(owner, bob, BOB, "alert", id_)
        mute(bob, "alert", followed_id(bob))
        end(id_)
        assert (way, bob.get("/mutes").json["mutes"], run("SELECT count(*) FROM mute").fetchone()) == (way, [], (0,))


def test_a_disabled_follower_one_with_a_full_backlog_and_one_without_room_are_passed_over(
    service, owner, hook, bob, phone, monkeypatch
):
    service.flask("account", "disable", BOB)
    assert hook.post({"t": "a", "b": "disabled"}).status_code == 200
    service.flask("account", "enable", BOB)
    monkeypatch.setattr(storage, "MAX_PENDING", 1)
    owner.send("a", "first")
    owner.send("a", "full")
    assert [one["body"] for one in bob.listed()] == ["first"]
    monkeypatch.setattr(storage, "MAX_PENDING", 100_000)
    storage._full_until_s.clear()
    monkeypatch.setattr(storage, "_payloads", {account_seq(): 2_000 * storage.MEGABYTE})
    assert owner.send("a", "stored").status_code == 200
    assert [one["body"] for one in bob.listed()] == ["first"] and len(owner.listed()) == 4


def test_a_follower_without_room_for_another_alarm_gets_one_that_does_not_repeat(owner, bob, monkeypatch):
    monkeypatch.setattr(alarms, "MAX_WAITING", 2)
    for number in range(2):
        bob.post("/notifications/send", {"title": f"{number}", "body": "b", "acknowledge": True})
    owner.post("/notifications/send", {"title": "t", "body": "b", "acknowledge": True})
    assert "acknowledge" not in bob.listed()[0] and "acknowledge" in owner.listed()[0]


def test_a_follower_sees_neither_what_an_event_lacked_nor_anything_that_leads_to_the_sender(service, owner, bob):
    hook = service.alert("--title", "{{ t }}", "--body", "{{ runbook }}", name="Disks")
    follow(owner, bob, BOB, "alert", hook.id)
    hook.post({"t": "a", "password": "from the payload"})
    one = bob.listed()[0]
    shown = json.dumps([detail(bob, one["id"]), bob.get("/following").json, bob.listed()])
    secrets = ("missing", "from the payload", hook.code, owner.listed()[0]["id"], hook.id, owner.key[:16])
    assert not [secret for secret in secrets if secret in shown]
    row = "SELECT api_key_seq, alert_seq, missing FROM notification WHERE id = ?"
    assert run(row, (one["id"],)).fetchone() == (None, None, None)
    assert run(row, (owner.listed()[0]["id"],)).fetchone()[2] == '["runbook"]'


def test_a_picture_comes_with_a_copy_and_goes_with_it(service, owner, bob, phone):
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(png()), "cam.png")}
    mine = owner.request("POST", "/api/v1/notifications/send", data=parts).json["notification"]
    theirs = bob.listed()[0]
    paths = ["/i/" + one["image"].partition("/i/")[2] for one in (mine, theirs)]
    assert paths[0] != paths[1]
    assert [service.client.get(path).data for path in paths] == [png(), png()]
    owner.delete(f"/notifications/{mine['id']}")
    assert [service.client.get(path).status_code for path in paths] == [404, 200]
    bob.delete(f"/notifications/{theirs['id']}")
    assert service.client.get(paths[1]).status_code == 404


def test_a_fault_while_a_copy_is_written_leaves_nothing_to_anybody(service, owner, hook, bob, monkeypatch):
    follower(service, owner, "alert", hook.id, "ana")

    def die(seqs, *more):
        assert len(seqs) == 2
        raise ZeroDivisionError

    monkeypatch.setattr(copies, "add", die)
    assert hook.post({"t": "a"}).status_code == 500
    monkeypatch.undo()
    for table in ("notification", "notification_copy", "delivery", "notification_day"):
        assert run(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


# --- leaving ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["the follower", "the owner"])
def test_what_repeats_or_is_held_goes_with_who_leaves_and_the_rest_stays(service, owner, bob, phone, by, moved_clock):
    owner.send("t", "stays")
    owner.post("/notifications/send", {"title": "t", "body": "repeats", "acknowledge": True})
    send_at(owner, moved_clock.ms + 60_000)
    service.work()
    kept = followed_id(bob, "key")
    if by == "the owner":
        assert owner.delete(f"{place('key', key_id(owner))}/{kept}").json == {"ok": True}
    else:
        assert bob.delete(f"/following/{kept}").json == {"ok": True}
    assert [one["body"] for one in bob.listed()] == ["stays"] and len(owner.listed()) == 3
    every(service, moved_clock, 70)
    owner.send("t", "after")
    service.work()
    assert sorted(bodies(phone)) == ["repeats", "stays"] and len(bob.listed()) == 1


@pytest.mark.parametrize("gone", [BOB, "owner@example.org"])
def test_deleting_an_account_ends_what_it_follows_and_what_follows_it(service, owner, hook, bob, gone):
    service.flask("account", "create", "admin@example.org")
    service.flask("account", "set", "admin@example.org", "--admin", "--password-stdin", stdin="a long password")
    hook.post({"t": "a", "b": "kept"})
    mute(bob, "alert", followed_id(bob), for_s=60)
    assert service.flask("account", "delete", gone, "--yes").exit_code == 0
    assert run("SELECT (SELECT count(*) FROM follower), (SELECT count(*) FROM mute)").fetchone() == (0, 0)
    left = bob if gone != BOB else owner
    assert [one["body"] for one in left.listed()] == ["kept"]
    if gone == BOB:
        assert hook.post({"t": "a"}).status_code == 200


# --- isolation ----------------------------------------------------------------------------------------------


def as_outsider(service, caller, email, ids):
    """What an account is answered on every door that takes these ids."""
    follower_id, followed_id, own_alert, their_alert = ids
    asked = [
        *(caller.get(place(what, their_alert)) for what in PATHS),
        *(caller.post(place(what, their_alert), {"email": "x@example.org"}) for what in PATHS),
        *(caller.delete(f"{place(what, their_alert)}/{follower_id}") for what in PATHS),
        caller.delete(f"{place('alert', own_alert)}/{follower_id}"),
        *(caller.post(f"/following/{id_}/accept") for id_ in (follower_id, followed_id)),
        *(caller.delete(f"/following/{id_}") for id_ in (follower_id, followed_id)),
        caller.get("/following"),
    ]
    commands = [
        ("accept", email, follower_id),
        ("leave", email, follower_id),
        ("decline", email, followed_id),
        ("remove", email, f"alert:{own_alert}", follower_id),
        ("followers", email, f"alert:{their_alert}"),
    ]
    shown = [(answer.status_code, answer.text) for answer in asked]
    shown += [(ran.exit_code, ran.output) for ran in (service.flask("follow", *command) for command in commands)]
    text = json.dumps(shown)
    for id_ in (follower_id, followed_id, their_alert):
        text = text.replace(id_, "ID")
    return text


def test_no_account_reaches_the_followers_or_invitations_of_others_on_any_door(service, owner, hook, bob):
    eve = service.caller(service.account("eve@example.org"))
    own_alert = service.alert(email="eve@example.org").id
    follower_id = followed_id(bob)
    invitation_id = invited(owner, "alert", hook.id, "cleo@example.org")["id"]
    rows = "SELECT id, email, follower_seq FROM follower ORDER BY seq"
    before = run(rows).fetchall()
    outsiders = {"eve@example.org": (eve, own_alert), BOB: (bob, service.alert(email=BOB).id)}
    for email, (caller, own) in outsiders.items():
        mine = follower_id if email != BOB else invitation_id
        known = as_outsider(service, caller, email, (mine, invitation_id, own, hook.id))
        unknown = as_outsider(service, caller, email, ("f" * 32, "e" * 32, own, "d" * 32))
        assert known == unknown, email
    assert run(rows).fetchall() == before


def test_a_follower_reaches_the_owners_notification_on_no_door(service, owner, hook, bob):
    hook.post({"t": "a", "b": "b"})
    theirs = owner.listed()[0]["id"]
    for call in (bob.get, bob.delete):
        assert call(f"/notifications/{theirs}").status_code == 404
    assert bob.post(f"/notifications/{theirs}/acknowledge").status_code == 404
    assert [one["id"] for one in owner.listed()] == [theirs]
