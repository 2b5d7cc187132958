"""The rows of a notification: recorded for its receivers, or held; whom it replaces, and what begins with it.

Everything here is a part of a transaction; nothing is pushed. Must not know requests, wire names or providers'
formats.
"""

from core import alarms, buttons, digest_text, fetching, holding, local_time, pictures, retries, storage
from core.devices import awake
from core.holding import HELD_SENDERS, PUSH
from store import alarms as stored_alarms
from store import copies, deliveries, fallbacks, followers, held_notifications, notifications
from store import mutes as stored_mutes
from store.database import after_commit, is_writing
from store.followers import Follower
from store.mutes import HOLD
from store.senders import Owner, Receivers, Sender, Watch, find_receivers, own_key
from wire.errors import Refused
from wire.notification import MIN_PRIORITY, Content, Recorded

REPLACED = "Replaced by a newer notification."
MANY_A_DAY = 100_000  # notifications of an account: its owner is told

# --- before it is recorded ----------------------------------------------------------------------------------


def receivers_of(sender: Sender, now: int) -> Receivers:
    """The receivers; `Refused` (401) if the account or the sender's key is gone. Call in `transaction()`."""
    found = find_receivers(sender.account_seq, sender.key_seq, local_time.local_day(now, sender.time_zone), now)
    if not found.may_send:
        raise Refused(401)
    return found


def to_push_now(sender: Sender, priority: int | None, found: Receivers, now: int) -> Receivers | None:
    """The receivers to push a notification of this priority to; None if it is held.

    Of those in their quiet hours, and of all if a mute keeps it to the history, it says so. Call in `transaction()`.
    """
    fate = PUSH
    if found.has_mutes or type(sender) in HELD_SENDERS:
        mutes = stored_mutes.of_account(sender.account_seq) if found.has_mutes else ()
        fate = holding.fate(sender, priority, mutes, now)
        if fate == HOLD:
            return None
    found = awake(found, priority, sender.time_zone, now) if found.devices else found
    if fate == PUSH:
        return found
    quiet = (*found.devices, *found.quiet, *found.fallbacks)
    return found._replace(devices=[], quiet=quiet, fallbacks=(), is_kept=True)


# --- recording and holding ----------------------------------------------------------------------------------


def put(
    sender: Sender, content: Content, found: Receivers, pushed: Receivers | None, due_at: int, now: int
) -> Recorded:
    """A new notification: one that goes to `pushed`, is to be sent later, or (None) is held; call in `transaction()`.

    `found` is whom its account has. The background threads attempt it at `due_at`, unless the request that made it is
    faster.
    """
    status = "held" if pushed is None else first_status(pushed, content.priority)
    notification = _insert(sender, content, status, found, now)
    if pushed is not None:
        begin(notification, pushed, due_at, now)
    elif content.deliver_at is None:  # else `scheduled` releases it
        held_notifications.add(notification, sender)
    return notification


def begin(notification: Recorded, found: Receivers, due_at: int, now: int) -> None:
    """Begin the delivery of a stored notification to these receivers; call inside `transaction()`."""
    content = notification.content
    if found.devices:
        fetching.add_deliveries(notification.seq, found.devices, due_at, content.expires_at, now)
        buttons.add(notification, found.devices, now)
    if found.fallbacks:
        fallbacks.add(notification.seq, found.fallbacks, now)
    if found.quiet:
        deliveries.add_quiet(notification.seq, found.quiet, now)
    if content.acknowledge and found.is_kept:  # it can be acknowledged
        stored_alarms.end("expired", [notification.seq])
    elif content.acknowledge:
        stored_alarms.begin(seqs=[notification.seq], now=now)
    if due_at <= now:
        after_commit(retries.batches.due.set)


def tell(sender: Sender, content: Content, now: int, is_held: bool = False) -> None:
    """Notify the owner in the background, unless it is held; call inside `transaction()`.

    Quiet hours hold what a heartbeat or a rule tells, and nothing else; `is_held` holds it for a digest in any case.
    That goes to their followers, too.
    """
    found = receivers_of(sender, now)
    pushed = None if is_held else to_push_now(sender, content.priority, found, now)
    notification = put(sender, content.prefixed(), found, pushed, now, now)
    if isinstance(sender, Watch):
        copy(sender, notification, now)


def first_status(found: Receivers, priority: int | None = None) -> str:
    """The status of a notification before its first attempt."""
    if priority == MIN_PRIORITY or found.is_kept:
        return "delivered"  # it is only for the history
    if found.devices:
        return "pending"
    return "failed" if found.last_was_dead else "delivered"  # also with devices in their quiet hours alone


def _insert(sender: Sender, content: Content, status: str, found: Receivers, now: int) -> Recorded:
    """Insert and count a notification; at `MANY_A_DAY`, notify the owner."""
    day = local_time.local_day(now, sender.time_zone)
    notification = notifications.record(sender, content, status, day, now)
    if content.tag is not None:
        _replace_earlier(sender, content.tag, notification.seq, now)
    if content.acknowledge:
        stored_alarms.add(notification.seq, sender.account_seq)
    if found.today == MANY_A_DAY - 1:
        owner = Owner(sender.account_seq, sender.time_zone, sender.email)
        body = "History shows which key or alert sends so many. Revoke the key or switch the alert off."
        tell(owner, Content(f"{MANY_A_DAY:,} notifications today", body), now)
    return notification


def _replace_earlier(sender: Sender, tag: str, seq: int, now: int) -> None:
    """End the deliveries, schedules and repeats of the earlier notifications with this tag that the sender reaches.

    In a digest that is held, the newer notification takes the place of an earlier one. A digest that a device has
    still to get leaves the earlier one out.
    """
    if isinstance(sender, Follower):  # what is his own stays, whatever tags others use
        place = {"account": sender.account_seq, "what": sender.what, "subject": sender.subject_seq}
        replaced = copies.replace_earlier(by=seq, tag=tag, **place)
    else:
        replaced = notifications.replace_earlier(sender.account_seq, tag, seq, own_key(sender))
    if not replaced:
        return
    earlier = [earlier for earlier, _ in replaced]
    held = [earlier for earlier, status in replaced if status == "held"]
    digest_text.leave_pending(sender.account_seq, held, REPLACED, now)
    deliveries.end(seqs=earlier, error=REPLACED, now=now)
    held_notifications.put_behind(held, seq)
    notifications.settle_all([earlier for earlier, status in replaced if status == "pending"])
    notifications.end_scheduled(earlier)
    stored_alarms.end("cancelled", earlier)


# --- copies for followers -----------------------------------------------------------------------------------


def copy(sender: Sender, original: Recorded, now: int, picture: bytes | None = None) -> None:
    """Give the followers of a sender a notification of their own, which the retries push; call in `transaction()`.

    Without those whose account the transaction does not name: they have accepted since it began.
    """
    content = original.content._replace(missing=())  # what an event lacks is the owner's to mend
    made = list[int]()
    for follower in followers.of_sender(*sender.subject):
        if not is_writing(follower.account_seq):
            continue
        one = _copied(follower, content, now)
        if one:
            made.append(one.seq)
            if picture is not None:
                pictures.keep(follower, one, picture)
        elif content.tag is not None:
            _replace_earlier(follower, content.tag, original.seq, now)
    copies.add(made, original.seq, sender.account_seq, sender.subject)


def _copied(follower: Follower, content: Content, now: int) -> Recorded | None:
    """A follower's notification; None if he is passed over: he is disabled, or has as much as he may have."""
    day = local_time.local_day(now, follower.time_zone)
    found, is_later = find_receivers(follower.account_seq, None, day, now), content.deliver_at is not None
    if not follower.is_enabled or storage.is_full(follower.account_seq, found.stored_bytes):
        return None
    content = alarms.within_room(follower.account_seq, content)
    pushed = None if is_later else to_push_now(follower, content.priority, found, now)
    if (is_later or (pushed and pushed.devices)) and storage.has_full_backlog(follower.account_seq):
        return None
    return put(follower, content, found, pushed, now, now)
