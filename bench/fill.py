"""A large history like one that the product made, written directly with executemany."""

import random
import secrets
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from bench.measure import WORDS, Person, sentence

DAY_MS = 86_400_000
OLD_DAYS, RECENT_DAYS = (400, 370), (360, 0)  # a plan of 365 days prunes the first range
AT_ONCE = 20_000
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


def fill_metric(person: Person, metric: str, number: int) -> None:
    """Write so many values of a metric, spread over a year."""
    from store.database import run, transaction

    with transaction(person.seq):
        add = "INSERT INTO metric_series (account_seq, project_id, metric_id) VALUES (?, 'bench', ?)"
        run(add, (person.seq, metric))
        series = run("SELECT max(seq) FROM metric_series").fetchone()[0]
        run(
            "WITH RECURSIVE step (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step WHERE n < ? - 1)"
            " INSERT INTO metric (series_seq, metric_name, value, timestamp)"
            " SELECT ?, ?, n % 977 / 7.0, ? - n * ? FROM step",
            (number, series, metric, time.time_ns() // 1_000_000, 364 * DAY_MS // number),
        )


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
