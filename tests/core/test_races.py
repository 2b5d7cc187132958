"""What must hold when several processes serve one database: two of them race, with eight threads each."""

import threading
import time
from collections import defaultdict

import pytest

from core import accounts, delivery, followers, heartbeats, recording
from models import Account
from process import clock
from store import database, notifications
from store.database import AFTER_ALL, run, transaction
from store.senders import Owner, find_receivers
from tests.support.racer import OWNER, Racers, send_event
from tests.support.times import HOUR_S
from wire.notification import Content

THREADS = 2 * Racers.THREADS


@pytest.fixture(scope="module")
def racers():
    started = Racers()
    yield started
    started.close()


@pytest.fixture
def race(racers, make_service, moved_clock):
    """Runs a race on a new service, which is `race.service`, and returns what each thread did."""
    moved_clock.set_wall(time.time_ns() // 1_000_000)  # the processes that race have a clock that nobody moves
    service = make_service()

    def run_race(name, **given):
        return racers.race(service, name, **given)

    run_race.service = service
    return run_race


@pytest.fixture
def account(race):
    race.service.account()
    return Account.find(OWNER)


ADD_DEVICE = "INSERT INTO device (id, account_seq, kind, token, name, created_at) VALUES (?, ?, ?, ?, '', 0)"


def add_device(account_seq, kind, token):
    run(ADD_DEVICE, (f"the device {token}", account_seq, kind, token))


def count(table, condition="1 = 1"):
    return run(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]


def test_a_set_up_link_makes_one_account(race):
    token = accounts.make_setup_link(clock.now_ms()).rpartition("/")[2]
    made = [email for email in race("set_up", token=token) if email]
    assert (len(made), count("account")) == (1, 1)


def test_reading_the_list_from_the_top_misses_none_while_others_send(race, account):
    seen, over = dict[int, int](), threading.Event()

    def read():
        """Read what is new since the last look, again and again."""
        is_last = False
        while not is_last:
            is_last = over.is_set()
            newest = max(seen, default=0)
            rows = notifications.page(account.seq, AFTER_ALL, 0, 10_000).rows
            seen.update({seq: created_at for seq, _, _, created_at, *_ in rows if seq > newest})
        database.give_back()

    reader = threading.Thread(target=read)
    sent = race("send", times=20, meanwhile=reader.start)
    over.set()
    reader.join()
    assert sum(sent) == len(seen) == count("notification") == 20 * THREADS
    times = [at for _, at in sorted(seen.items())]
    assert times == sorted(times)


def test_an_idempotency_key_makes_one_notification(race, account):
    keys = [f"key-{number}" for number in range(40)]
    race("send_with_keys", keys=keys)
    assert (count("notification"), count("idempotency_key")) == (40, 40)


def test_a_definition_that_all_put_at_once_is_made_once(race, account):
    sent = {
        "alert": {"name": "Disk"},
        "heartbeat": {"name": "Backup", "periodS": 60},
        "rule": {"project": "shop", "metric": "cpu", "when": "> 90"},
    }
    assert sorted(name for made in race("put_definitions", sent=sent) for name in made) == [
        "alert",
        "heartbeat",
        "rule",
    ]
    assert [count(table) for table in ("alert", "heartbeat", "metric_rule")] == [1, 1, 1]


BOUNDS = [("add_devices", "device", 20), ("add_heartbeats", "heartbeat", 100), ("send_alarms", "alarm", 20)]


@pytest.mark.parametrize("name, table, most", BOUNDS)
def test_an_account_has_no_more_than_it_may_have(race, account, name, table, most):
    assert (sum(race(name, times=most // THREADS + 2)), count(table)) == (most, most)


@pytest.fixture
def due(race, account):
    """Retries that are due: the seqs of notification and device of each."""
    long_ago = clock.now_ms() - HOUR_S * 1000
    with transaction(account.seq):
        for number in range(8):
            add_device(account.seq, "webpush", f"https://push.example.com/{number}")
        for _ in range(8):
            recording.tell(Owner.of(account), Content("title", "body"), long_ago)
    return run("SELECT notification_seq, device_seq FROM delivery").fetchall()


def test_batches_on_the_same_devices_do_not_deadlock(race, due):
    assert race("settle", due=due[::9], times=5) == [5] * THREADS


def test_a_retry_is_claimed_once(race, due):
    assert sum(race("claim", due=due)) == len(due) == 64


def test_each_account_gets_one_digest_of_what_was_held(race):
    for number in range(20):
        race.service.account(f"{number}@example.org")
    seqs = [account.seq for account in Account.all()]
    for account in Account.all():
        for _ in range(3):
            with transaction(account.seq):
                found, now = find_receivers(account.seq), clock.now_ms()
                recording.put(Owner.of(account), Content("title", "body"), found, None, now, now)
    race("release_digests")
    digests = run("SELECT account_seq FROM notification WHERE is_digest = 1").fetchall()
    assert sorted(seq for (seq,) in digests) == sorted(seqs)
    assert count("held", "digest_seq IS NULL") == 0


def test_what_was_to_be_sent_later_is_released_once(race, account):
    at = clock.now_ms()
    for _ in range(50):
        delivery.deliver(Owner.of(account), Content("title", "body", deliver_at=at + 60_000))
    with transaction(account.seq):
        run("UPDATE notification SET deliver_at = ?", (at - 1,))
        add_device(account.seq, "ntfy", "topic")
    while count("notification", "status = 'held'"):  # on a busy machine, a round releases only some
        before = count("delivery", "attempts = 0")
        race("release_scheduled")
        assert count("delivery", "attempts = 0") > before
    assert count("delivery", "attempts = 0") == 50


def test_each_missed_deadline_notifies_once(race, account):
    now = clock.now_ms()
    for number in range(20):
        heartbeats.create_heartbeat(account, {"name": f"Job {number}", "period": "1h"}, now)
    with transaction(account.seq):
        run("UPDATE heartbeat SET state = 'late', last_ping_at = 0, deadline_at = ?", (now - 1,))
    race("pass_deadlines")
    told = run("SELECT title, count(*) FROM notification GROUP BY title").fetchall()
    assert dict(told) == {f"MCP - Job {number} is down": 1 for number in range(20)}


def household(race, account):
    """Four accounts that follow an alert of the owner."""
    service, alert = race.service, race.service.alert(email=OWNER)
    for number in range(4):
        follower = Account.find(service.account(f"{number}@example.org"))
        one, _ = followers.invite(account.seq, "alert", alert.id, follower.email, clock.now_ms())
        followers.accept(follower, one.id, clock.now_ms())
    return alert.id


def test_the_first_answer_of_anybody_is_that_of_all(race, account):
    alert = household(race, account)
    buttons = tuple({"label": name, "answer": name} for name in "abc")
    for _ in range(20):
        content = Content("Deploy?", "now", actions=buttons, acknowledge=(60, 3_600))
        send_event(account, alert, content)
    groups = defaultdict(list)
    for original, email, id_ in run(
        "SELECT coalesce(c.original_seq, n.seq), a.email, n.id FROM notification n JOIN account a"
        " ON a.seq = n.account_seq LEFT JOIN notification_copy c ON c.notification_seq = n.seq ORDER BY n.seq"
    ).fetchall():
        groups[original].append((email, id_))
    assert [len(ids) for ids in groups.values()] == [5] * 20
    first = [one for thread in race("answer_copies", asked=list(groups.values())) for one in thread]
    assert sorted(place for place, *_ in first) == list(range(20))
    found = (
        "SELECT DISTINCT r.position FROM answer r JOIN notification n ON n.seq = r.notification_seq WHERE n.id = ?"
    )
    for place, _, position in first:
        ids = list(groups.values())[place]
        assert {run(found, (id_,)).fetchall()[0][0] for _, id_ in ids} == {position}
    assert (count("answer"), count("alarm", "state <> 'acknowledged'")) == (100, 0)
    named = "SELECT count(*) FROM alarm WHERE by_account_seq IS NULL"
    assert run(named).fetchone() == (20,)


def test_following_and_leaving_while_events_come_leaves_nothing_half_done(race, account):
    alert = household(race, account)
    race("follow_and_send", subject=alert, times=6)
    copies = run("SELECT notification_seq, original_seq, what FROM notification_copy").fetchall()
    assert len(copies) == len({seq for seq, *_ in copies}) == count("notification", f"account_seq <> {account.seq}")
    assert {original for _, original, _ in copies} <= {
        seq for (seq,) in run("SELECT seq FROM notification").fetchall()
    }
    each = run("SELECT account_seq, count(*) FROM notification WHERE replaced_by IS NULL GROUP BY 1").fetchall()
    assert {number for _, number in each} == {1}
    counted = run("SELECT account_seq, notification_count FROM notification_day WHERE day = ''").fetchall()
    assert dict(counted) == dict(run("SELECT account_seq, count(*) FROM notification GROUP BY 1").fetchall())
