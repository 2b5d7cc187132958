"""The stored messages for a polling device since a time or an id. Must not know requests or connections."""

from typing import NamedTuple

import push
from core import buttons, fetching, pictures
from core.alarms import acknowledged_on
from models import sha256_of
from process import clock
from process.faults import log_fault
from providers.base import one_line, shown
from store import topics
from store.database import WriteFailed
from store.topics import FetchingDevice, Found
from wire import ntfy_stream
from wire.notification import DEFAULT_PRIORITY, LOW_PRIORITY, Content
from wire.ntfy import message_object
from wire.ntfy_stream import Message, Since, Wanted

NEWEST_OF_ALL = 50
ALL_OF_MS = 12 * 3_600_000
MAX_PENDING = 2_000  # in one go
MAX_POLLED_BYTES = 256_000  # of an answer: the app asks again for messages after the last


class Topic(NamedTuple):
    """A subscribed topic and its device."""

    name: str
    device: FetchingDevice


class Stored(NamedTuple):
    """A notification that is stored for the device of a topic."""

    topic: Topic
    found: Found


def known(names: list[str]) -> list[Topic]:
    """The topics that belong to a device: a topic is the credential of one."""
    found = {name: topics.device_of_topic(sha256_of(name).hex()) for name in dict.fromkeys(names)}
    return [Topic(name, device) for name, device in found.items() if device]


def stored(subscribed: list[Topic], wanted: Wanted, now: int) -> list[Stored]:
    """The wanted notifications for these topics, oldest first."""
    found = [Stored(topic, one) for topic in subscribed for one in _stored(topic.device, wanted, now)]
    found.sort(key=lambda one: _place(one.found))
    return found[-NEWEST_OF_ALL:] if wanted.since.word == "all" and not wanted.filters.id else found


def _stored(device: FetchingDevice, wanted: Wanted, now: int) -> list[Found]:
    since = wanted.since
    if since.word == "none":
        return []
    if wanted.filters.id:
        return topics.with_id(device, ntfy_stream.notification_id(wanted.filters.id), now)
    after = topics.before_newest(device.account_seq) or 0
    if since.id:
        return _since_id(device, since, after, now)
    found = topics.stored(device, since.time or now - ALL_OF_MS, after, 0, now)
    return found[-1:] if since.word == "latest" else found


def _since_id(device: FetchingDevice, since: Since, after: int, now: int) -> list[Found]:
    """Notifications after that message, and pending ones: a broken connection may have lost any of them."""
    last = topics.beginning(device.account_seq, since.id)
    if last is None:  # it was deleted, or is another service's
        return topics.stored(device, now - ALL_OF_MS, after, MAX_PENDING, now)
    found = topics.stored(device, last[0], after, MAX_PENDING, now)
    last = max([last, *(_place(one) for one in found if (one.id, one.version) == (since.id, since.version))])
    return [one for one in found if one.is_pending or _is_newer(one, since, last)]


def _is_newer(one: Found, since: Since, last: tuple[int, int]) -> bool:
    """Whether it began later, is a repeat that may have been missed, or another message of the same notification."""
    if one.id == since.id:
        return one.version != since.version
    return _place(one) > last or bool(one.is_repeating and one.repeats)


def _place(found: Found) -> tuple[int, int]:
    return found.begun_at, found.seq


def message_of(stored: Stored, wanted: Wanted, now: int) -> Message | None:
    """The notification as the app reads it, unless it was deleted, replaced or has expired, or is not wanted."""
    device, found = stored.topic.device, stored.found
    notification = topics.one(device, found.seq, now)
    if notification is None:
        return None
    content = _shown(notification.content, found)
    origin = push.provider_of(device.kind).server.public_url
    pressed = () if found.is_acknowledged else buttons.pushed(notification, device.id)
    actions = [
        ntfy_stream.action(place, one_line(one.label), one.url or f"{origin}/a/{one.token}", is_sent=bool(one.token))
        for place, one in enumerate(pressed)
    ]
    id_, attached = ntfy_stream.message_id(found.id, found.version), pictures.attachment(notification, origin)
    message = message_object(id_, found.begun_at, stored.topic.name, content, actions, attached)
    return message if wanted.filters.passes(message) else None


def _shown(content: Content, found: Found) -> Content:
    """The content as the app shows it: with where it was acknowledged, if it was, and then without a sound."""
    body, priority = shown(content.body), content.priority or DEFAULT_PRIORITY
    if found.is_acknowledged:
        body += f"\n\n{acknowledged_on(found.acknowledged_on, found.acknowledged_by)}"
        priority = LOW_PRIORITY
    return content._replace(title=shown(content.title), body=body, priority=priority, tag=content.tag or found.id)


def polled(subscribed: list[Topic], wanted: Wanted, write: ntfy_stream.Format, now: int) -> bytes:
    """The wanted messages that fit into an answer, oldest first; they are noted as delivered."""
    parts, given, size = list[bytes](), [], 0
    for one in stored(subscribed, wanted, now):
        message = message_of(one, wanted, now)
        if message is None:
            continue
        part = write.written(message).encode()
        size += len(part)
        if parts and size > MAX_POLLED_BYTES:
            break
        parts.append(part)
        given.append((one.topic.device, one.found.seq))
    if given:
        try:
            fetching.note_fetched(given, clock.now_ms())
        except WriteFailed as error:  # they stay pending, and are given again
            log_fault("The receipts of an app could not be written", error)
    return b"".join(parts)
