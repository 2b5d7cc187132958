"""Mail addresses as devices: confirming one, ending its mails, a test.

A token in each mail's links permits the first two. Must not know requests.
"""

from core import devices, mail_limits, mails
from models import Account, Device
from providers import is_mailed
from store import mails as stored
from store.database import transaction
from wire.errors import Refused, existing

MAX_TOKEN_CHARACTERS = 64


def find(token: str) -> Device:
    """The mail address that this token belongs to; `Refused` (404) if there is none."""
    return existing(_with_token(token), "This link no longer works: the address was removed.")


def confirm(token: str, now: int) -> Device:
    """Confirm the address: from now on it gets notifications. `Refused` (404) if it is gone, or the link too old."""
    with transaction(find(token).account_seq):
        device = find(token)
        if device.confirm_by is not None and now > device.confirm_by:
            sentence = "This link no longer works: it is older than 7 days. Ask for a new one under Devices."
            raise Refused(404, sentence)
        return device.change(confirm_by=None)


def stop(token: str, now: int) -> None:
    """Remove the address, which gets no more mails; nothing happens if it is gone."""
    device = _with_token(token)
    if device is not None:
        devices.remove_device(device.account_seq, device.id, now)


def _with_token(token: str) -> Device | None:
    return stored.device_with_token(token) if token.isascii() and len(token) <= MAX_TOKEN_CHARACTERS else None


def ask_again(account: Account, device_id: str, now: int) -> None:
    """Mail another link that confirms the address; `Refused` (404) if there is none, (429) after too many mails."""
    with transaction(account.seq):
        device = Device.find(account.seq, device_id)
        if device is None or device.confirm_by is None:
            raise Refused(404)
        devices.ask_to_confirm(device, now)


def test(account: Account, device_id: str, now: int) -> bool:
    """Mail a test to a device that gets mails; False if it is no such one. `Refused` (429) after too many mails."""
    with transaction(account.seq):
        device = Device.find(account.seq, device_id)
        if device is None or not is_mailed(device.kind) or device.confirm_by is not None:
            return False
        mail_limits.check(account.seq, now)
        mails.add(account.seq, "test", now, device.seq)
    return True
