"""Whatever is quiet, whenever clocks change: nothing is delivered twice or never."""

import random
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import push
from core import holding, local_time
from store.mutes import Mute
from tests.support.accounts import account_set
from tests.support.mutes import key_id
from tests.support.times import DAY_S, HOUR_S, MINUTE_S, local_ms

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo")
NIGHTS = ("2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2026-10-04", "2026-09-06")
EVENT = re.compile(r"event \d{3}")
STEPS = 70


# --- when a mute that comes again is in force -----------------------------------------------------------------


@given(
    cron=st.builds("{} {} * * {}".format, st.sampled_from((0, 30, 59)), st.integers(0, 23), st.sampled_from("*06")),
    for_s=st.integers(60, 86_340),
    zone=st.sampled_from(ZONES),
    night=st.sampled_from(NIGHTS),
    minutes=st.integers(-2_000, 2_000),
)
@settings(max_examples=60, deadline=None)
def test_a_mute_that_comes_again_is_in_force_from_each_run_on_for_its_time(cron, for_s, zone, night, minutes):
    at = local_ms(f"{night}T12:00", zone) + minutes * 60_000
    mute = Mute(1, "x", "all", 0, "hold", 1, at, None, cron, for_s, zone)
    runs, run = [], at - 10 * DAY_S * 1000
    while (run := local_time.next_run(cron, zone, run)) <= at + 8 * DAY_S * 1000:
        runs.append(run)
    covering = [run for run in runs if run <= at < run + for_s * 1000]
    end = holding.ends_at(mute, at)
    assert (end is not None) is bool(covering)
    begin, until = holding.window(mute, at)
    assert until - begin == for_s * 1000 and begin in runs and until > at
    if covering:
        assert end == until and begin in covering
    else:
        assert begin == min(run for run in runs if run > at)


# --- all of it together ---------------------------------------------------------------------------------------


class Day:
    """An account to which anything happens at random times; counts how often each event is to be pushed."""

    def __init__(self, service, owner, browser, moved_clock, chance):
        self.service, self.owner, self.browser, self.clock, self.chance = service, owner, browser, moved_clock, chance
        self.wanted, self.ids, self.mutes = {}, {}, []
        options = ((), ("--frequency", "15m"), ("--ignore-quiet-hours",))
        self.hooks = [service.alert(*more, name=f"Alert {place}") for place, more in enumerate(options)]

    def happens(self):
        name, priority = f"event {len(self.wanted):03}", self.chance.randint(2, 5)
        if self.chance.random() < 0.7:
            answer = self.chance.choice(self.hooks).post({"message": name, "priority": priority}).json
            self.ids[name] = answer["notificationId"]
        else:
            sent = {"title": "Sent", "body": name, "priority": priority}
            self.ids[name] = self.owner.post("/notifications/send", sent).json["notification"]["id"]
        self.wanted[name] = 1

    def mute(self):
        what = self.chance.choice(["all", "alert", "key"])
        id_ = {"all": None, "alert": self.chance.choice(self.hooks).id, "key": key_id(self.owner)}[what]
        again = {"cron": f"{self.chance.randint(0, 59)} {self.chance.randint(0, 23)} * * *"}
        more = again if self.chance.random() < 0.4 else {}
        sent = {"what": what, "id": id_, "forS": self.chance.randint(60, 5 * HOUR_S), **more}
        answer = self.owner.post("/mutes", sent | {"urgentPasses": self.chance.random() < 0.5})
        assert answer.status_code == 201, answer.json
        self.mutes.append(answer.json["mute"]["id"])

    def end(self):
        if self.mutes:
            self.owner.delete(f"/mutes/{self.mutes.pop(self.chance.randrange(len(self.mutes)))}")

    def snooze(self):
        if self.ids:
            name = self.chance.choice([*self.ids])
            path = f"/notifications/{self.ids[name]}"
            replaces = "snoozedUntil" in self.owner.get(path).json["notification"]
            answer = self.owner.post(f"{path}/snooze", {"forS": self.chance.randint(60, 3 * HOUR_S)})
            self.wanted[name] += answer.status_code == 200 and not replaces

    def quiet_hours(self):
        begin, end = (f"{self.chance.randint(0, 23):02}:{self.chance.choice('0345')}0" for _ in range(2))
        if begin != end:
            account_set("--quiet-hours", self.chance.choice([f"{begin}-{end}", f"sa,su {begin}-{end}"]))

    def works(self):
        self.service.work()
        self.service.work()

    def dies(self, monkeypatch):
        """The process is killed when it would push what has become due; its leases end."""

        def die(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(push, "send", die)
            for _ in range(2):
                with suppress(KeyboardInterrupt):
                    self.service.work()
        self.clock.advance(31)

    def pushed(self):
        return [name for one in self.browser.messages for name in EVENT.findall(one["notification"]["body"])]


@pytest.mark.parametrize("seed", range(2))
def test_each_event_is_pushed_once_and_once_more_for_each_snooze(
    service, owner, browser, moved_clock, monkeypatch, seed
):
    chance = random.Random(seed)
    account_set("--timezone", "Europe/Berlin", "--plan", "scale")
    moved_clock.set_wall(local_ms(("2026-10-24T12:00", "2026-03-28T12:00")[seed], "Europe/Berlin"))
    day = Day(service, owner, browser, moved_clock, chance)
    deeds = [day.happens, day.happens, day.happens, day.mute, day.end, day.snooze, day.snooze, day.quiet_hours]
    for _ in range(STEPS):
        chance.choice(deeds)()
        moved_clock.advance(chance.randint(1, 90) * MINUTE_S)
        if chance.random() < 0.08:
            moved_clock.set_wall(moved_clock.ms - chance.randint(1, 60 * MINUTE_S) * 1000)
        if chance.random() < 0.15:
            day.dies(monkeypatch)
        day.works()
    while day.mutes:
        day.end()
    account_set("--quiet-hours", "off")
    for _ in range(8):
        moved_clock.advance(HOUR_S)
        day.works()
    assert len(browser.messages) < len(day.pushed()) and max(day.wanted.values()) > 1  # there were digests, snoozes
    assert sorted(day.pushed()) == sorted(name for name, times in day.wanted.items() for _ in range(times))
    assert {one["status"] for one in owner.listed("?limit=100")} == {"delivered"}
