"""Long work on the database in short pieces, between which other writers get their turn.

Must not know what the work is.
"""

import threading
from collections.abc import Callable

from process import clock

ROWS = 500  # of one piece, which keeps writers waiting for about 10 ms
PAUSE_S = 0.01  # between two pieces
BUDGET_S = 1.0  # for a job in one round of the background worker

_never = threading.Event()


def in_pieces(piece: Callable[[], bool], budget_s: float = BUDGET_S) -> bool:
    """Call `piece`, one short transaction each time, until it answers that nothing is left or the time is up.

    Returns whether anything is left.
    """
    ends_s = clock.monotonic_s() + budget_s
    while piece():
        if clock.monotonic_s() >= ends_s:
            return True
        _never.wait(PAUSE_S)
    return False
