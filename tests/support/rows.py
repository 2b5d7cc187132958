"""Tables of rows that one test goes through: setting up a service anew for each row costs more than the row."""

import functools
import inspect

import pytest


def each(names, rows):
    """Like `pytest.mark.parametrize`, but one test checks all rows, and names every row that fails.

    It is for rows that leave nothing behind that the others see.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_values(names, row) for row in rows]

    def decorate(check):
        @functools.wraps(check)
        def check_all(**fixtures):
            faults = []
            for row in rows:
                try:
                    check(**fixtures, **row)
                except (Exception, pytest.fail.Exception) as fault:
                    fault.add_note(f"in the row {row!r:.1000}")
                    faults.append(fault)
            if faults:
                raise BaseExceptionGroup(f"{len(faults)} of {len(rows)} rows fail", faults)

        del check_all.__wrapped__  # pytest would ask for the columns as fixtures
        signature = inspect.signature(check)
        fixtures = [one for one in signature.parameters.values() if one.name not in names]
        check_all.__signature__ = signature.replace(parameters=fixtures)
        return check_all

    return decorate if rows else pytest.mark.skip(reason="there are no rows here")  # as of payloads that are absent


def _values(names, row):
    """A row as the arguments of the test."""
    return dict(zip(names, row if len(names) > 1 else [row], strict=True))
