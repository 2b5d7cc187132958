"""Deleting: a notification, a part of the history, metrics, the account.

Many rows are deleted in pieces, so that requests need not wait. A deleted notification is pushed no more. Must not
know requests or commands; raises `Refused` with a sentence.
"""

import math
from collections.abc import Callable
from functools import partial

from core import digest_text, people
from core.local_time import day_bounds
from core.pieces import ROWS, for_each_account, in_pieces
from models import Account, ApiKey, Device
from process import clock
from store import copies, custom_metrics, held_notifications, idempotency_keys, metric_rules, notifications
from store import people as stored_people
from store.database import AFTER_ALL, EVERYBODY, WriteFailed, transaction
from wire.errors import Refused

DELETE_SOME = (idempotency_keys.delete_some, Device.delete_some, ApiKey.delete_some)  # rows of an account


def delete_notification(account_seq: int, notification_id: str, own_key: int | None = None) -> None:
    """Delete a notification, also from its digest; `Refused` (404) if there is none, or `own_key` did not send it."""
    if not delete_several(account_seq, [notification_id], own_key):
        raise Refused(404)


def delete_several(account_seq: int, notification_ids: list[str], own_key: int | None = None) -> int:
    """Delete these notifications in one transaction; returns how many the account still had."""
    with copies.writing(account_seq, notifications.find_seqs(account_seq, notification_ids, own_key)):
        seqs = notifications.find_seqs(account_seq, notification_ids, own_key)
        _delete(account_seq, seqs)
    return len(seqs)


def delete_found(account_seq: int, find: Callable[[int], list[int]]) -> None:
    """Delete the account's notifications that `find` finds, which takes how many it may return, in pieces."""

    def piece() -> int:
        with transaction(account_seq):
            seqs = find(ROWS)
            _delete_rows(account_seq, seqs)
        return len(seqs)

    _repeated(piece)


def delete_history(account: Account, day: str) -> int:
    """Delete notifications from before a day (YYYY-MM-DD) in the account's time zone; returns how many."""
    begin, _ = day_bounds(day, account.time_zone)
    return _delete_notifications(account.seq, begin)


def delete_metrics(account: Account, project_id: str, metric_id: str | None) -> int:
    """Delete a metric, or with None its whole project; returns how many values. `Refused` (404) if there is none."""
    deleted = _delete_values(account.seq, project_id, metric_id)
    if not deleted:
        what = f'metric "{metric_id}" in the project' if metric_id is not None else "project"
        raise Refused(404, f'There is no {what} "{project_id}".')
    with transaction(account.seq):
        metric_rules.begin_anew(account=account.seq, project=project_id, metric=metric_id, now=clock.now_ms())
    return deleted


def delete_account(account: Account, by: int | None = None, is_invitation: bool = False) -> None:
    """Delete an account and all it has, as `by` asks (core/people.py), or only an invitation that nobody has used.

    Its keys, addresses, sessions and devices are void at once. After an interruption, the next call goes on.
    """
    with people.changing(account.seq, by) as found:
        people.check_stays(found, is_deleted=True)
        if is_invitation:
            people.check_invited(found)
        stored_people.end_access(account.seq)
    try:
        _delete_notifications(account.seq, AFTER_ALL)
        _delete_values(account.seq, None, None)
        in_pieces(partial(_delete_rest, account.seq), math.inf)
    except WriteFailed as failure:
        raise _partly(failure) from failure


def _delete_rest(account_seq: int) -> bool:
    """Delete some of what is left, with rows that requests have written in the meantime, or the account at last.

    Returns whether more is left.
    """
    with transaction(EVERYBODY, account_seq):
        stored_people.end_access(account_seq)
        _delete_rows(account_seq, notifications.before(account_seq, 0, AFTER_ALL, ROWS))
        custom_metrics.remove(
            account_seq, custom_metrics.of_project(account=account_seq, project=None, metric=None, limit=ROWS)
        )
        if any(delete_some(account_seq, ROWS) == ROWS for delete_some in DELETE_SOME):
            return True
        stored_people.delete_rest(account_seq)
    return False


def _partly(failure: WriteFailed) -> Refused:
    """The refusal of a deletion that failed half-way."""
    why = failure.__cause__ or failure
    return Refused(500, f"Only a part was deleted: {why}. Run the command again to delete the rest.")


def _delete_notifications(account_seq: int, before: int) -> int:
    """Delete the account's notifications made before that time, and its digests; returns how many notifications."""
    last = deleted = 0

    def piece() -> int:
        nonlocal last, deleted
        seqs = notifications.before(account_seq, last, before, ROWS)
        if seqs:
            with copies.writing(account_seq, seqs):
                deleted += notifications.count_without_digests(seqs)
                _delete(account_seq, seqs)
            last = seqs[-1]
        return len(seqs)

    _repeated(piece)
    return deleted


def _delete(account_seq: int, seqs: list[int]) -> None:
    """Delete these notifications of the account, and the copies of them that still wait; call in `copies.writing()`.

    A copy that neither repeats nor is held is its follower's own.
    """
    copied = [(copy.account_seq, copy.seq) for copy in copies.waiting(seqs=seqs)]
    for_each_account([*copied, *((account_seq, seq) for seq in seqs)], _delete_rows)


def _delete_rows(account_seq: int, seqs: list[int]) -> None:
    """Delete these notifications of the account, and take them out of their digests; call inside `transaction()`."""
    rewritten = held_notifications.digests_of(seqs)
    held_notifications.settle_replaced(seqs)
    notifications.delete_all(account_seq, seqs)
    for digest_seq in rewritten:
        digest_text.leave_out(account_seq, digest_seq)


def _delete_values(account_seq: int, project_id: str | None, metric_id: str | None) -> int:
    def piece() -> int:
        places = custom_metrics.of_project(account=account_seq, project=project_id, metric=metric_id, limit=ROWS)
        with transaction(account_seq):
            custom_metrics.remove(account_seq, places)
        return len(places)

    return _repeated(piece)


def _repeated(piece: Callable[[], int]) -> int:
    """Repeat a piece of work until it finds fewer rows than a whole piece; returns the number of all rows.

    `Refused` (500) if it fails after some rows were deleted.
    """
    done = 0

    def is_more() -> bool:
        nonlocal done
        rows = piece()
        done += rows
        return rows == ROWS

    try:
        in_pieces(is_more, math.inf)
    except WriteFailed as failure:
        if not done:
            raise
        raise _partly(failure) from failure
    return done
