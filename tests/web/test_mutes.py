"""Mutes by the REST API: what is answered, listed and refused."""

from core import mutes
from tests.support.accounts import account_set
from tests.support.answers import error, refusal
from tests.support.mutes import key_id, mute, unmute
from tests.support.rows import each
from tests.support.times import DAY_MS, HOUR_S, NOW

YEAR_S = 366 * 86_400


def test_a_mute_is_answered_shown_and_listed_as_it_is(owner, moved_clock):
    muted = mute(owner)
    assert muted == {
        "id": muted["id"],
        "what": "all",
        "subject": None,
        "name": None,
        "mode": "hold",
        "urgentPasses": True,
        "until": moved_clock.ms + HOUR_S * 1000,
        "createdAt": moved_clock.ms,
    }
    assert owner.get(f"/mutes/{muted['id']}").json == {"ok": True, "mute": muted}
    assert owner.get("/mutes").json == {"ok": True, "mutes": [muted]}


def test_each_kind_of_sender_is_named_by_its_id(service, owner):
    ids = {
        "alert": service.alert(name="Disk").id,
        "key": key_id(owner),
        "heartbeat": owner.post("/heartbeats", {"name": "Backup", "periodS": 3600}).json["heartbeat"]["id"],
        "rule": owner.post("/rules", {"project": "p", "metric": "cpu", "when": "> 90"}).json["rule"]["id"],
    }
    names = {"alert": "Disk", "key": "test", "heartbeat": "Backup", "rule": "cpu"}
    made = [mute(owner, what, id_) for what, id_ in ids.items()]
    assert {one["what"]: (one["subject"], one["name"]) for one in made} == {
        what: (id_, names[what]) for what, id_ in ids.items()
    }
    assert owner.get("/mutes").json["mutes"] == made[::-1]
    for one in made:
        assert one["id"] not in ids.values()


def test_it_takes_a_time_in_place_of_a_duration(owner, moved_clock):
    until = moved_clock.ms + DAY_MS
    muted = mute(owner, until=until, mode="history", urgentPasses=False)
    assert (muted["until"], muted["mode"], muted["urgentPasses"]) == (until, "history", False)


def test_what_has_ended_is_neither_listed_nor_shown_nor_ended_again(owner, moved_clock):
    ended, timed = mute(owner), mute(owner, for_s=60)
    unmute(owner, ended)
    moved_clock.advance(60)
    assert owner.get("/mutes").json == {"ok": True, "mutes": []}
    for one in (ended, timed):
        for call in (owner.get, owner.delete):
            answer = call(f"/mutes/{one['id']}")
            assert (answer.status_code, answer.json) == (404, error(404, "NOT_FOUND"))


TIMED = {"what": "all", "forS": 60}
WRONG = [
    ({"forS": 60}, "what is required."),
    ({"what": "everything", "forS": 60}, "what must be all, alert, key, heartbeat or rule."),
    ({"what": 1, "forS": 60}, "what must be"),
    ({"what": ["all"], "forS": 60}, "what must be"),
    ({"what": "alert", "forS": 60}, "id is required"),
    ({"what": "alert", "id": 7, "forS": 60}, "id must be a string."),
    ({"what": "all", "id": "x", "forS": 60}, "id must be absent"),
    ({"what": "all"}, "Set either forS or until."),
    ({**TIMED, "until": NOW + DAY_MS}, "Set either forS or until."),
    *(
        ({"what": "all", "forS": value}, "forS must be")
        for value in (59, 0, -1, YEAR_S + 1, "60", 60.0, True, 10**30)
    ),
    ({"what": "all", "until": NOW}, "until must be in the future"),
    ({"what": "all", "until": NOW - 1}, "until must be in the future"),
    ({"what": "all", "until": NOW + YEAR_S * 1000 + 1}, "until must be in the future, at most 366 days ahead."),
    ({"what": "all", "until": NOW // 1000 + 86_400}, "until looks like seconds"),
    *(({"what": "all", "until": value}, "until must be") for value in ("tomorrow", 1.5, True, 10**30)),
    *(({**TIMED, "mode": value}, "mode must be hold or history.") for value in ("keep", "", 1, ["hold"], {})),
    *(({**TIMED, "urgentPasses": value}, "urgentPasses must be true or false.") for value in (1, "yes", [])),
    ({**TIMED, "urgentpasses": True}, "urgentpasses is not known"),
    *(({**TIMED, "cron": value}, "cron must be a string.") for value in (1, True, ["0 2 * * *"], {})),
    *(
        ({**TIMED, "cron": value}, f'"{value}" is not a cron expression, or never runs.')
        for value in ("", "daily", "0 2 * *", "60 2 * * *", "0 0 30 2 *", "@daily", "0 2 * * * *")
    ),
    ({**TIMED, "cron": "0 2 * * *", "until": NOW + DAY_MS}, "With cron, set forS, and not until."),
    ({"what": "all", "cron": "0 2 * * *", "until": NOW + DAY_MS}, "With cron, set forS, and not until."),
    ({"what": "all", "cron": "0 2 * * *"}, "With cron, set forS, and not until."),
    ({"what": "all", "cron": "0 2 * * *", "forS": 59}, "forS must be a whole number of seconds from 60"),
    *(
        ({"what": "all", "cron": cron, "forS": for_s}, f'"{cron}" comes again on {when}.')
        for cron, for_s, when in (
            ("*/5 * * * *", 361, "Sat 21 Nov 10:10, before it ends on Sat 21 Nov 10:11"),
            ("0 2,3 * * *", 2 * HOUR_S, "Sun 22 Nov 03:00, before it ends on Sun 22 Nov 04:00"),
            ("0 22 * * fri,sat", 25 * HOUR_S, "Sat 28 Nov 22:00, before it ends on Sat 28 Nov 23:00"),
            ("0 0 1 * *", 29 * 86_400, "Mon 01 Mar 00:00, before it ends on Tue 02 Mar 00:00"),
        )
    ),
]


def test_a_window_that_comes_too_early_is_named_in_the_accounts_time_zone(owner):
    account_set("--timezone", "Asia/Kolkata")
    answer = owner.post("/mutes", {"what": "all", "cron": "*/5 * * * *", "forS": 361})
    assert "comes again on Sat 21 Nov 15:40, before it ends on Sat 21 Nov 15:41." in refusal(answer)


@each("sent, sentence", WRONG)
def test_a_wrong_field_is_named_and_nothing_is_muted(pro, sent, sentence):
    assert refusal(pro.post("/mutes", sent)).startswith(sentence)
    assert pro.get("/mutes").json["mutes"] == []


def test_null_counts_as_absent(owner):
    sent = {"what": "all", "id": None, "forS": 60, "until": None, "mode": None, "urgentPasses": None}
    assert owner.post("/mutes", sent).status_code == 201


@each("cron, for_s", [("0 22,23 * * *", HOUR_S), ("0 0 * * *", 86_400), (" 0  2 * * SUN ", 60), ("0 0 1 1 *", 60)])
def test_windows_that_follow_each_other_are_taken_and_one_that_is_a_minute_long(owner, cron, for_s):
    muted = mute(owner, for_s=for_s, cron=cron)
    assert (muted["cron"], muted["until"] - muted["from"]) == (" ".join(cron.split()), for_s * 1000)
    unmute(owner, muted)


@each("for_s", [60, YEAR_S])
def test_the_shortest_and_the_longest_are_taken(owner, moved_clock, for_s):
    assert mute(owner, for_s=for_s)["until"] == moved_clock.ms + for_s * 1000


@each("what", ["alert", "key", "heartbeat", "rule"])
def test_what_is_not_there_or_is_anothers_is_not_found(service, owner, pro, what):
    theirs = {
        "alert": service.alert(email="pro@example.org").id,
        "key": key_id(pro),
        "heartbeat": pro.post("/heartbeats", {"name": "B", "periodS": 3600}).json["heartbeat"]["id"],
        "rule": pro.post("/rules", {"project": "p", "metric": "m", "when": "> 1"}).json["rule"]["id"],
    }[what]
    answers = [owner.post("/mutes", {"what": what, "id": id_, "forS": 60}) for id_ in (theirs, "x", "0" * 32)]
    assert {answer.status_code for answer in answers} == {404} and answers[0].json == answers[1].json


def test_an_account_has_at_most_100_and_ended_ones_do_not_count(pro, moved_clock, monkeypatch):
    assert mutes.MAX_MUTES == 100
    monkeypatch.setattr(mutes, "MAX_MUTES", 4)
    for _ in range(3):
        mute(pro, for_s=120)
    mute(pro, for_s=60)
    assert "4 mutes" in refusal(pro.post("/mutes", {"what": "all", "forS": 60}))
    moved_clock.advance(61)
    mute(pro)
    assert len(pro.get("/mutes").json["mutes"]) == 4
