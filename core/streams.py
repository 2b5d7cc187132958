"""Streams of messages to polling devices: first the stored ones, then new ones; and their receipts.

A message counts as delivered when its connection has taken it. If the service dies in between, the device gets it
again when it reconnects, and recognizes its id. Must not know requests.
"""

from collections import deque
from collections.abc import Callable, Iterable

from core import fetching
from core.subscriptions import Stored, Topic, message_of, stored
from process import clock
from process.streams import Ended, Hub
from store import database, key_limits, notifications
from store import topics as found_topics
from store.database import AFTER_ALL
from store.senders import Caller
from wire import ntfy_stream
from wire.errors import Refused
from wire.ntfy_stream import Message, Wanted

SLACK_MS = 10_000  # a release is noted with the time at which its transaction began
MAX_REMEMBERED = 5_000

Writer = Callable[[Message], bytes]


class Subscription:
    """The messages of a connection's topics."""

    def __init__(self, subscribed: list[Topic], names: str, wanted: Wanted, write: Writer) -> None:
        now = clock.now_ms()
        self.topics, self.names, self.wanted, self.write = subscribed, names, wanted, write
        self.keys = [topic.device.seq for topic in subscribed]
        self.owners = {topic.device.account_seq for topic in subscribed}
        self.after = {account_seq: notifications.newest_seq(account_seq) for account_seq in self.owners}
        self.looked_at = now
        self.waiting = deque(stored(subscribed, wanted, now))
        self.most_waiting = len(self.waiting) + MAX_REMEMBERED  # a client that takes less ends, and asks again
        self.known = dict.fromkeys(map(_mark, self.waiting))  # messages that were written or wait for it
        self.repeating = set[int]()  # seqs of notifications with a repeat that may yet be the last
        since = now - SLACK_MS if wanted.since.word == "none" else AFTER_ALL
        for topic in subscribed:  # what has begun does not come again, and what repeats with its next repeat
            for found in found_topics.begun(topic.device, since, AFTER_ALL, (), now):
                if found.seq <= self.after[topic.device.account_seq]:  # the first look finds newer ones
                    if found.is_repeating:
                        self.repeating.add(found.seq)
                    self.known[_mark(Stored(topic, found))] = None
        self.written: Stored | None = None
        self.fetched = list[Stored]()
        self.is_open = False

    def next(self) -> bytes | None:
        """The next message as it is written; the first is the event `open`."""
        now = clock.now_ms()
        if not self.is_open:
            self.is_open = True
            return self.write(ntfy_stream.event("open", self.names, now))
        if self.waiting:
            one = self.waiting.popleft()
            message = message_of(one, self.wanted, now)
            if message is None:
                return b""
            self.written = one
            return self.write(message)
        if self.wanted.poll:
            raise Ended
        return None

    def taken(self) -> None:
        """The connection has taken the last message."""
        if self.written:
            self.fetched.append(self.written)
            self.written = None

    def keepalive(self) -> bytes:
        """The event `keepalive`."""
        return self.write(ntfy_stream.event("keepalive", self.names, clock.now_ms()))

    def look(self, newest: dict[int, int], now: int) -> None:
        """Find messages since the last look; `newest` has each account's newest seq before this look."""
        since = min(self.looked_at, now) - SLACK_MS
        for topic in self.topics:
            account_seq = topic.device.account_seq
            for found in found_topics.begun(topic.device, since, self.after[account_seq], self.repeating, now):
                one = Stored(topic, found)
                (self.repeating.add if found.is_repeating else self.repeating.discard)(found.seq)
                if _mark(one) not in self.known:
                    self.known[_mark(one)] = None
                    self.waiting.append(one)
        self.after |= {account_seq: newest[account_seq] for account_seq in self.after}
        self.looked_at = now
        for mark in list(self.known)[:-MAX_REMEMBERED]:
            del self.known[mark]

    def is_over(self) -> bool:
        """Whether too many messages wait in memory."""
        return len(self.waiting) > self.most_waiting


class Empty(Subscription):
    """An empty stream for a key's holder, of topics without a device, until the key ends or `confirm` refuses it."""

    def __init__(
        self, names: str, wanted: Wanted, write: Writer, owner: Caller, confirm: Callable[[], object]
    ) -> None:
        super().__init__([], names, wanted, write)
        self.owners, self.confirm = {owner.account_seq}, confirm
        self.ends_at = key_limits.expires_at(owner.key_seq)

    def next(self) -> bytes | None:
        """As of every subscription; that the key expires changes nothing in the database."""
        if self.ends_at is not None and clock.now_ms() >= self.ends_at:
            raise Ended
        return super().next()

    def is_over(self) -> bool:
        """Whether the key was revoked."""
        try:
            self.confirm()
        except Refused:
            return True
        return False


def _mark(one: Stored) -> tuple[int, int, str]:
    return one.topic.device.seq, one.found.seq, one.found.version


class Store:
    """The source of the streams' messages: the database, which any process may write."""

    def __init__(self) -> None:
        self.version = -1

    def look(self, subscriptions: list[Subscription], is_woken: bool) -> list[Subscription]:
        """Find new messages, unless woken only if the database has changed; returns the subscriptions to end."""
        version = database.version()
        if version == self.version and not is_woken:
            return []
        now = clock.now_ms()
        present = found_topics.present({key for one in subscriptions for key in one.keys})
        over = [one for one in subscriptions if one.is_over() or not present.issuperset(one.keys)]
        newest = {seq: notifications.newest_seq(seq) for one in subscriptions for seq in one.after}
        for one in subscriptions:
            if one not in over:
                one.look(newest, now)
        if not is_woken:  # else the others are still to be looked at
            self.version = version
        return over

    def settle(self, subscriptions: Iterable[Subscription]) -> None:
        """Note the messages that connections have taken; if that fails, the next call notes them."""
        if behind := [one for one in subscriptions if one.fetched]:
            taken = [(taken.topic.device, taken.found.seq) for one in behind for taken in one.fetched]
            fetching.note_fetched(taken, clock.now_ms())
            for one in behind:
                one.fetched.clear()

    def close(self) -> None:
        """Give this thread's connection to the database back."""
        self.version = -1
        database.give_back()


hub = Hub(Store())
