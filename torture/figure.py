"""The result of a measurement: one row of the table."""

from typing import NamedTuple


class Figure(NamedTuple):
    """What was done, what must be, what was seen, and whether that holds (None if it was not tried)."""

    what: str
    must: str
    seen: str
    holds: bool | None
