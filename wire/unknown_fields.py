"""`warnings`: the fields of a request that are not known and look mistyped. Pure; kept short for hostile requests."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

MAX_LOOKED_AT = 100  # fields
MAX_WARNINGS = 5
MAX_NAME = 24  # characters of a name that may be mistyped
MAX_KEPT = 2_000  # names whose meaning is kept: senders send the same ones again and again
MIN_SHORT, MIN_LONG = 3, 5  # letters of a word in which one letter, in which two may be wrong


def warnings(sent: Iterable[str], known: tuple[str, ...]) -> list[str]:
    """A sentence for each field that is one or two letters from a `known` one, in whatever case."""
    unknown = (name for name in islice(sent, MAX_LOOKED_AT) if len(name) <= MAX_NAME and name not in known)
    meant = ((name, _meant(name, known)) for name in unknown)
    told = (f"{name} is not known; did you mean {field}?" for name, field in meant if field)
    return list(islice(told, MAX_WARNINGS))


@lru_cache(maxsize=MAX_KEPT)
def _meant(name: str, known: tuple[str, ...]) -> str | None:
    near = [(_distance(name.lower(), field.lower()), field) for field in known]
    distance, field = min(near)
    shorter = min(len(name), len(field))
    most = (shorter >= MIN_SHORT) + (shorter >= MIN_LONG)
    return field if distance <= most else None


def _distance(word: str, other: str) -> int:
    """How many letters must be added, dropped, changed or swapped with their neighbour: Damerau and Levenshtein's."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            steps = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                steps = min(steps, older[j - 2] + 1)
            row.append(steps)
    return row[-1]
