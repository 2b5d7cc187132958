"""Maintenance, a mute that comes again: heartbeats and rules change in silence within it.

At its end their owner is told what still is so, as one digest with all that it held. Must not know requests.
"""

from itertools import groupby

from core import holding, recording
from core.holding import PUSH
from core.metric_rules import FIRING
from process import clock
from process.faults import log_fault
from store import copies, heartbeats, metric_rules, silent_changes
from store import mutes as stored_mutes
from store.database import transaction
from store.heartbeats import Beat
from store.metric_rules import Rule
from store.silent_changes import SilentChange
from wire.notification import DEFAULT_PRIORITY, MIN_PRIORITY, Content

PAUSED, WRONG = "paused", ("down", FIRING)


def tell(watch: Beat | Rule, is_wrong: bool, content: Content) -> None:
    """Notify the owner that a heartbeat or a rule changed, now or at the end of its maintenance.

    What changed in silence and was not told yet is told with it. Call inside `transaction()`.
    """
    now = clock.now_ms()  # read inside the transaction, so that times follow the order of the rows
    mutes = stored_mutes.of_account(watch.account_seq)
    if holding.is_maintained(watch.subject, mutes, now) or silent_changes.is_kept(*watch.subject):
        place, priority = (watch.account_seq, *watch.subject), content.priority or DEFAULT_PRIORITY
        silent_changes.keep(*place, not is_wrong, is_wrong, content.title, content.body, priority)
    else:
        recording.tell(watch, _tagged(watch, content), now)


def tell_ended(now: int) -> None:
    """Tell what changed in silence in maintenance that has ended, and is still so."""
    for account_seq, changes in groupby(silent_changes.everything(), key=lambda change: change.account_seq):
        try:
            mutes = stored_mutes.of_account(account_seq)
            if ended := [one for one in changes if not holding.is_maintained(one.subject, mutes, now)]:
                with transaction(*copies.accounts_of(account_seq)):
                    for change in ended:
                        _tell_ended(change)
        except Exception as error:  # the other accounts must not wait for this one
            log_fault("What changed during a maintenance could not be told", error)


def _tell_ended(noted: SilentChange) -> None:
    """Tell a change, unless another process was faster, or it has changed back; call inside `transaction()`."""
    one = heartbeats.one if noted.what == "heartbeat" else metric_rules.one
    now, watch = clock.now_ms(), one(noted.subject_seq)
    if watch is not None and watch.state == PAUSED:
        return  # when it is resumed
    change = silent_changes.take(noted.subject)
    if change is None or watch is None or change.is_wrong != (watch.state in WRONG):
        return
    if change.is_wrong == change.was_wrong:
        return
    content = _tagged(watch, Content(change.title, change.body, priority=change.priority))
    mutes = stored_mutes.of_account(watch.account_seq)
    is_due = holding.fate(watch, content.priority, mutes, now) == PUSH and content.priority != MIN_PRIORITY
    recording.tell(watch, content, now, is_held=is_due)  # what would be pushed now is, in one digest


def _tagged(watch: Beat | Rule, content: Content) -> Content:
    what, _ = watch.subject
    return content._replace(tag=f"{what} {watch.id}")
