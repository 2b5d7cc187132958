"""The states of heartbeats: changes by pings and deadlines, and the notifications about them.

Each change of state is one transaction with its notification, and happens only if the state is unchanged since it was
read: so two processes or a crash neither lose nor double one. Must not know requests.
"""

from core import durations, firing, maintenance
from core.backoff import Backoff
from core.local_time import local_time, next_run
from process import clock
from store import alarms, copies, deliveries, fallbacks, followers, heartbeats, mails, metric_rules, server_notes
from store.database import EVERYBODY, WriteFailed, transaction, writes_fail
from store.heartbeats import Beat, KeptPing, keep_ping
from wire.errors import existing
from wire.notification import LOW_PRIORITY, Content

LAST_ALIVE = "watched"  # the note of when a process was alive last
STEP_MS = 2_000  # a smaller step is the clock's usual correction
KEPT_PINGS = 60  # of a heartbeat: 30 runs with a start and an end
NOTED_EVERY_S = 30.0  # that the service is alive: a downtime may be overestimated by as much
ALIVE_MS = 40_000  # the process that wrote a newer note may live
FROZEN_S = 30.0  # a worker that is merely slow looks again sooner
BETWEEN_LOOKS_MS = 2_000
MARGIN_MS = 60_000  # by which a ping may come before it is expected

_backoff = Backoff("The deadline of a heartbeat could not be followed")
_began: tuple[int, float] | None = None  # wall clock (ms) and monotonic clock (s) at the first look
_looked: tuple[int, float] | None = None  # the same at the last look that succeeded
_noted: str | None = None  # the note as this process knows it
_noted_s = 0.0


# --- pings --------------------------------------------------------------------------------------------------


def note_ping(pinged: Beat, kind: str, exit_code: int | None, body: str) -> None:
    """Note a `success` or `fail`, or a `start` or `log`, which change no state; `Refused` (404) if it is gone."""
    with transaction(*copies.accounts_for(pinged)):
        now, beat = clock.now_ms(), existing(heartbeats.one(pinged.seq))
        keep_ping(beat.seq, KeptPing(kind, exit_code, body, now), KEPT_PINGS)
        if kind in ("success", "fail"):
            heartbeats.change(beat.seq, last_ping_at=now)
            if beat.state != "paused":
                _follow_ping(beat, kind, exit_code, now)


def _follow_ping(beat: Beat, kind: str, exit_code: int | None, now: int) -> None:
    if kind == "success":
        expect(beat, now)
        if beat.state == "down":
            _say_up(beat, now)
    elif beat.state != "down":
        code = "" if exit_code is None else f" with exit code {exit_code}"
        _go_down(beat, f"It reported a failure{code}.", now)


def expect(beat: Beat, now: int) -> None:
    """Make it up, and expect the next ping counting from now; call inside `transaction()`."""
    heartbeats.change_state(beat, "up", _next_deadline(beat, now), now)


def resume(account_seq: int, away_ms: int, now: int) -> None:
    """Expect pings and values anew after none could come for that long; call inside `transaction()`."""
    for beat in heartbeats.of_account(account_seq):
        if beat.deadline_at is not None:
            expect(beat, now)
    metric_rules.move(accounts=[account_seq], gap=away_ms, back=now, now=now)


def _next_deadline(beat: Beat, now: int) -> int:
    if beat.cron is not None:
        return next_run(beat.cron, beat.time_zone, now)
    return now + (beat.period_s or 0) * 1000


def _go_down(beat: Beat, why: str, now: int) -> None:
    if heartbeats.change_state(beat, "down", None, now, down_since=now):
        maintenance.tell(beat, True, Content(f"{beat.name} is down", why, priority=beat.priority))


def _say_up(beat: Beat, now: int) -> None:
    lasted_s = max(0, now - (beat.down_since or now)) // 1000
    body = f"It was down for {durations.short(lasted_s, 2)}."
    maintenance.tell(beat, False, Content(f"{beat.name} is up", body, priority=min(LOW_PRIORITY, beat.priority)))


# --- deadlines ----------------------------------------------------------------------------------------------


def check_due(_: int) -> bool:
    """Check heartbeats whose deadlines have passed, and rules; returns whether more is left.

    Nothing is checked while the length of the service's downtime is unknown. The time is read anew: the clock may
    have been set since the round of jobs began.
    """
    now = follow_clock()
    return now is not None and any([_backoff.each(now, heartbeats.due, _pass_deadline), firing.look_at_due(now)])


def _pass_deadline(seq: int, now: int) -> None:
    beat = heartbeats.one(seq)
    if beat is None or beat.deadline_at is None or beat.deadline_at > now:
        return  # a ping came, or another process did it
    expected_at = next_expected(beat)
    down_at = expected_at + beat.grace_s * 1000
    if down_at > now:
        heartbeats.change_state(beat, "late", down_at, now)
        return
    last = local_time(beat.last_ping_at or now, beat.time_zone)
    expected = local_time(expected_at, beat.time_zone)
    zones = {follower.time_zone for follower in followers.of_sender(*beat.subject)}
    zone = f" ({beat.time_zone})" if zones - {beat.time_zone} else ""  # who reads it may be elsewhere
    _go_down(beat, f"Last ping: {last}. The next was expected {expected}{zone}.", now)


def next_expected(beat: Beat) -> int:
    """When the ping of an up or late heartbeat is or was expected."""
    return (beat.deadline_at or 0) - (beat.grace_s * 1000 if beat.state == "late" else 0)


# --- the clock, and the service's own downtime --------------------------------------------------------------


def follow_clock() -> int | None:
    """Note that the service is alive, and move the deadlines when it was away or the wall clock was set.

    Returns the time; None while nothing may be judged: because writing fails, or the service was started again within
    ALIVE_MS. Of several processes, one moves the deadlines, and all else that follows the clock.
    """
    global _began, _looked, _noted, _noted_s
    now, now_s = clock.now_ms(), clock.monotonic_s()
    _began = _began or (now, now_s)
    step_ms = _step_ms(_looked, now, now_s) if _looked else 0
    is_steady = _looked is not None and abs(step_ms) <= STEP_MS and now_s < _looked[1] + FROZEN_S
    is_steady &= not writes_fail()
    gap_ms = 0
    if not is_steady or now_s >= _noted_s + NOTED_EVERY_S:
        try:
            account_seqs = [] if is_steady else sorted({*heartbeats.account_seqs(), *metric_rules.account_seqs()})
            with transaction(EVERYBODY, *account_seqs):
                made_up_ms = 0 if is_steady else _make_up(account_seqs, now, step_ms)
                if made_up_ms is None:
                    return None
                gap_ms = made_up_ms
                server_notes.put(LAST_ALIVE, str(now))
        except WriteFailed:  # it was logged when it first failed
            return None
        _noted, _noted_s = str(now), now_s
    if not _looked:  # whether the clock was set forward while nothing ran cannot be told
        step_ms = min(gap_ms, max(0, _step_ms(_began, now, now_s)))
    _looked = now, now_s
    if gap_ms:
        _follow_step(step_ms)
    return now


def _step_ms(since: tuple[int, float], now: int, now_s: float) -> int:
    """By how much the wall clock was set since both clocks showed this."""
    return now - since[0] - round((now_s - since[1]) * 1000)


def _make_up(account_seqs: list[int], now: int, step_ms: int) -> int | None:
    """Move these accounts' times by the gap since the service was last alive, and return it if it is known.

    Other accounts got their first heartbeat or rule after the gap.
    """
    global _noted
    noted = server_notes.find(LAST_ALIVE)
    gap_ms = _gap_ms(noted, now)
    if gap_ms:
        _move_deadlines(account_seqs, gap_ms, now)
        if abs(step_ms) > STEP_MS:
            heartbeats.move_down_since(account_seqs, step_ms)
            metric_rules.move_firing_since(account_seqs, step_ms)
    elif gap_ms is None:
        _noted = noted
    return gap_ms


def _follow_step(step_ms: int) -> None:
    """Move what is due after the wall clock was set by so much: if back (below 0), it would come too late.

    If the clock was set forward, repeats end later: nobody has heard them meanwhile.
    """
    if step_ms < -STEP_MS:
        deliveries.bring_forward(-step_ms)
        fallbacks.bring_forward(-step_ms)
        mails.bring_forward(-step_ms)
    if abs(step_ms) > STEP_MS:
        alarms.follow_clock(-step_ms)


def _gap_ms(noted: str | None, now: int) -> int | None:
    """For how long no process was alive, or the step of the clock; None while that is unknown.

    If another process has changed this process's note, it is alive if its note is new. A process that has just
    started waits to see whether a new note changes.
    """
    if noted is None:
        return 0
    if _looked and noted == _noted:
        return now - _looked[0]
    gap_ms = now - int(noted)
    if abs(gap_ms) >= ALIVE_MS:
        return gap_ms
    return 0 if _looked or _noted not in (None, noted) else None


def _move_deadlines(account_seqs: list[int], gap_ms: int, now: int) -> None:
    """Move these accounts' deadlines after a downtime or a step of the clock.

    Heartbeats and metrics that have pinged or sent since have correct deadlines.
    """
    back_at = now - BETWEEN_LOOKS_MS if _looked else clock.began_at
    for beat in heartbeats.expected():
        if beat.account_seq in account_seqs and not back_at <= (beat.last_ping_at or 0) <= now:
            heartbeats.change_state(beat, *_moved(beat, gap_ms, now), now)
    metric_rules.move(accounts=account_seqs, gap=gap_ms, back=back_at, now=now)


def _moved(beat: Beat, gap_ms: int, now: int) -> tuple[str, int]:
    """The state and the deadline after the gap.

    A ping that was expected during the downtime may have come in vain, so the next one counts; but only once since
    the last ping, or a service that restarts each night would never notify. Cron expressions follow the wall clock.
    """
    expected_at, is_cron = next_expected(beat), beat.cron is not None
    may_have_come = gap_ms > 0 and expected_at <= now + MARGIN_MS and not _was_moved_on(beat, expected_at)
    if may_have_come or (is_cron and expected_at > now):
        return "up", _next_deadline(beat, now)
    deadline_at = beat.deadline_at or 0
    if not is_cron or (gap_ms > 0 and beat.state == "late"):
        return beat.state, deadline_at + gap_ms
    return beat.state, max(deadline_at, now)


def _was_moved_on(beat: Beat, expected_at: int) -> bool:
    """Whether an expected ping was passed over already since the last one."""
    last_ping_at = beat.last_ping_at or expected_at
    if beat.cron is not None:
        return expected_at > next_run(beat.cron, beat.time_zone, last_ping_at)
    return expected_at >= last_ping_at + 2 * (beat.period_s or 0) * 1000
