"""Long work on the database in short pieces, between which other writers get their turn. Must not know the work."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from process import clock
from store import engine
from store.database import transaction

ROWS = 500  # of one piece, which keeps writers waiting for about 10 ms
PAUSE_S = 0.01  # between two pieces
BUDGET_S = 1.0  # for a job in one round of the background worker

Found = TypeVar("Found")

_never = threading.Event()


def in_pieces(piece: Callable[[], bool], budget_s: float = BUDGET_S) -> bool:
    """Call `piece`, a short transaction, until nothing is left or the time is up; whether anything is left."""
    engine.make_way()
    ends_s = clock.monotonic_s() + budget_s
    while piece():
        if clock.monotonic_s() >= ends_s:
            return True
        _never.wait(PAUSE_S)
    return False


def for_each_account(found: Iterable[tuple[int, Found]], write: Callable[[int, list[Found]], object]) -> bool:
    """Write rows that were found with their accounts, in a transaction for each account; whether there were any."""
    of_account = defaultdict[int, list[Found]](list)
    for account_seq, one in found:
        of_account[account_seq].append(one)
    for account_seq, rows in of_account.items():
        with transaction(account_seq):
            write(account_seq, rows)
    return bool(of_account)
