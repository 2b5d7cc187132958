"""A large history like one that the product made, written directly with executemany."""

import json
import random
import secrets
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from bench.measure import WORDS, Person, sentence
from process.clock import DAY_MS

OLD_DAYS, RECENT_DAYS = (400, 370), (360, 0)  # a plan of 365 days prunes the first range
AT_ONCE, VALUES_AT_ONCE = 20_000, 100_000  # in one transaction
RARE = {"zebraquux": 3, "quetzalcoatl": 2_000}  # so many of a million rows contain the word
COMMON = WORDS[0]
COUNT = """INSERT INTO notification_day (account_seq, day, notification_count)
    SELECT account_seq, date(created_at / 1000, 'unixepoch'), count(*) FROM notification GROUP BY 1, 2
    UNION ALL SELECT account_seq, '', count(*) FROM notification GROUP BY 1"""


class Share(NamedTuple):
    """An account's part of the history."""

    person: Person
    rows: int
    old: int  # how many of the rows are older than a year
    alerts: list[int]  # every second row belongs to one of these alerts


def fill(shares: list[Share]) -> float:
    """Write the notifications of all accounts, mixed in time; return the seconds that it took."""
    from store import database, sqlite
    from store.database import EVERYBODY, run, transaction

    began = time.monotonic()
    sqlite._writer.opened().execute("PRAGMA synchronous = OFF")
    rows = _in_time(shares)
    while batch := list(islice(rows, AT_ONCE)):
        with transaction(EVERYBODY):
            sqlite.connection().executemany(
                "INSERT INTO notification (id, account_seq, api_key_seq, alert_seq, title, body, status, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, 'delivered', ?)",
                batch,
            )
    with transaction(EVERYBODY):
        run(COUNT)
    run("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()  # the next connection syncs as the product does
    return time.monotonic() - began


def fill_metrics(owners: list[Person], metrics: list[str], number: int, step_ms: int) -> None:
    """Write so many values of each account's metrics in the order of their arrival, one every `step_ms`."""
    from store import database, sqlite
    from store.database import EVERYBODY, run, transaction

    begin = time.time_ns() // 1_000_000 - number * step_ms
    sqlite._writer.opened().execute("PRAGMA synchronous = OFF")
    with transaction(EVERYBODY):
        first_series = run("SELECT coalesce(max(seq), 0) + 1 FROM metric_series").fetchone()[0]
        run(
            "INSERT INTO metric_series (account_seq, project_id, metric_id)"
            " SELECT a.value, 'bench', m.value FROM json_each(?) a CROSS JOIN json_each(?) m",
            (json.dumps([owner.seq for owner in owners]), json.dumps(metrics)),
        )
    at_once = VALUES_AT_ONCE // (len(metrics) * len(owners))
    for first in range(0, number, at_once):
        with transaction(EVERYBODY):
            run(
                "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
                " INSERT INTO metric (series_seq, metric_name, value, unit, timestamp)"
                " SELECT s.seq, 'Temperature', 20 + (i * 7919 + s.seq * 31) % 1000 / 100.0, '°C', ? + i * ?"
                " FROM n CROSS JOIN metric_series s WHERE s.seq >= ?",
                (first, min(first + at_once, number), begin, step_ms, first_series),
            )
    run("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def _in_time(shares: list[Share]) -> Iterator[tuple[object, ...]]:
    """The rows of all accounts, sorted by time."""
    now, chance = time.time_ns() // 1_000_000, random.Random(1)
    texts = [(f"MCP - {sentence(chance, 4)}", sentence(chance, 26)) for _ in range(5_000)]
    for is_old, days in ((True, OLD_DAYS), (False, RECENT_DAYS)):
        owners = [share for share in shares for _ in range(share.old if is_old else share.rows - share.old)]
        chance.shuffle(owners)
        begin, end = (now - one * DAY_MS for one in days)
        for place, share in enumerate(owners):
            at = begin + (end - begin) * place // len(owners)
            title, body = texts[chance.randrange(len(texts))]
            alert = chance.choice(share.alerts) if place % 2 and share.alerts else None
            id_ = f"{at:012x}{secrets.token_hex(10)}"
            yield (id_, share.person.seq, None if alert else 1, alert, title, _marked(body, place), at)


def _marked(body: str, place: int) -> str:
    """The body with a number that makes it unique, and sometimes a rare word."""
    for word, of_a_million in RARE.items():
        if place % (1_000_000 // of_a_million) == 777 % (1_000_000 // of_a_million):
            return f"{body} {word} {place}."
    return f"{body} {place}."
