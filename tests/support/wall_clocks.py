"""Wall clocks of 2026 in thirteen zones, followed minute by minute, to compare local times with."""

from array import array
from datetime import UTC, datetime
from functools import cache

from hypothesis import strategies as st

from tests.support.times import MINUTE_MS, utc

MINUTES_A_DAY = 1_440
YEAR = datetime(2026, 1, 1, tzinfo=UTC)
YEAR_MINUTES = 365 * MINUTES_A_DAY
TWO_DAYS = array("H", range(MINUTES_A_DAY)) * 2

# Minutes ahead of UTC when the year begins; the moments (UTC) at which the clocks are set, and by how many minutes.
ZONES = {
    "UTC": (0, {}),
    "Europe/Berlin": (60, {"2026-03-29T01:00": 60, "2026-10-25T01:00": -60}),
    "Europe/Dublin": (0, {"2026-03-29T01:00": 60, "2026-10-25T01:00": -60}),
    "Africa/Cairo": (120, {"2026-04-23T22:00": 60, "2026-10-29T21:00": -60}),
    "Asia/Kathmandu": (345, {}),
    "Australia/Lord_Howe": (660, {"2026-04-04T15:00": -30, "2026-10-03T15:30": 30}),
    "Pacific/Chatham": (825, {"2026-04-04T14:00": -60, "2026-09-26T14:00": 60}),
    "Pacific/Kiritimati": (840, {}),
    "Pacific/Marquesas": (-570, {}),
    "America/Santiago": (-180, {"2026-04-05T03:00": -60, "2026-09-06T04:00": 60}),
    "America/New_York": (-300, {"2026-03-08T07:00": 60, "2026-11-01T06:00": -60}),
    "America/St_Johns": (-210, {"2026-03-08T05:30": 60, "2026-11-01T04:30": -60}),
    "Antarctica/Troll": (0, {"2026-03-29T01:00": 120, "2026-10-25T01:00": -120}),
}
EDGES = [(zone, edge) for zone, (_, edges) in ZONES.items() for edge in edges]
TIMES = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(60)]


def minute_of_year(text):
    return (utc(text) - round(YEAR.timestamp() * 1000)) // MINUTE_MS


def moment(minute):
    return round(YEAR.timestamp() * 1000) + minute * MINUTE_MS


@cache
def wall_clock(zone):
    """What a wall clock shows at each minute of the year: it runs on, and is set when the zone's offset changes."""
    ahead, edges = ZONES[zone]
    set_at = {minute_of_year(edge): by for edge, by in edges.items()}
    shown, seen = ahead % MINUTES_A_DAY, array("H")
    for minute in sorted({*set_at, YEAR_MINUTES}):
        runs_for = minute - len(seen)
        seen += (TWO_DAYS[shown : shown + MINUTES_A_DAY] * (runs_for // MINUTES_A_DAY + 1))[:runs_for]
        shown = (shown + runs_for + set_at.get(minute, 0)) % MINUTES_A_DAY
    return seen


near_edges = st.sampled_from(EDGES).flatmap(
    lambda one: st.tuples(st.just(one[0]), st.integers(-2_000, 2_000).map(lambda by: minute_of_year(one[1]) + by))
)
any_time = st.tuples(st.sampled_from(list(ZONES)), st.integers(10_000, YEAR_MINUTES - 10_000))
moments = st.one_of(near_edges, any_time)  # (zone, minute of the year)
