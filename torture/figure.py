"""What a measurement says: one row of the table."""

from typing import NamedTuple


class Figure(NamedTuple):
    """What was done, what must be, what was seen, and whether that holds (None: it could not be tried here)."""

    what: str
    must: str
    seen: str
    holds: bool | None
