"""A notification that an owner writes in the web app, for now or later. Must not know requests."""

from collections.abc import Collection
from typing import NamedTuple

from core import delivery, local_time
from core.delivery import Sent
from models import Account, Device
from store.senders import Owner
from wire.errors import Refused
from wire.notification import Content, check_times, checked_priority, checked_url
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, checked_text


class Written(NamedTuple):
    """The fields as the owner typed them; an empty link or time means none."""

    title: str = ""
    text: str = ""
    priority: str = "normal"
    link: str = ""
    later: str = ""  # a date and a time of the account's zone


def ring(account: Account, written: Written, device_ids: Collection[str], now: int) -> Sent:
    """Send it to these devices of the account, as a request would; `Refused` (400) names a field, or `devices`."""
    content = _content(written, account.time_zone, now)
    known = {device.id for device in Device.of_account(account.seq)}
    chosen = known & set(device_ids)
    if known and not chosen:
        raise Refused(400, "Choose at least one device.", field="devices")
    return delivery.deliver(Owner.of(account), content, device_ids=None if chosen == known else chosen)


def _content(written: Written, zone: str, now: int) -> Content:
    content = Content(
        checked_text(written.title.strip(), "title", MAX_TITLE_CHARACTERS),
        checked_text(written.text.strip(), "text", MAX_BODY_CHARACTERS),
        priority=checked_priority(written.priority, "priority"),
        url=checked_url(written.link, "link") if written.link else None,
        deliver_at=_moment(written.later, zone) if written.later else None,
    )
    try:
        check_times(content, now)
    except Refused:
        raise Refused(400, "Choose a time in the future, at most a year ahead.", field="later") from None
    return content


def _moment(text: str, zone: str) -> int:
    try:
        return local_time.moment_ms(text, zone)
    except Refused:
        raise Refused(400, "Write the date and the time like 2026-11-21T07:00.", field="later") from None
