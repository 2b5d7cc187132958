"""Mutes: what must not ring for a while. `core/holding.py` decides what they hold. Must not know requests."""

from collections.abc import Iterable
from typing import Any

from core import durations, holding, local_time, subjects
from models import Account
from process.clock import HOUR_MS
from store import followers
from store import mutes as stored
from store.database import AFTER_ALL, transaction
from store.followers import Followed
from store.mutes import ALL, EVERYTHING, HISTORY, HOLD, NO_SUBJECT, ListedMute, Mute
from store.senders import Subject
from store.subjects import SUBJECTS
from wire.errors import Refused, existing
from wire.notification import checked_time
from wire.validation import checked_choice, checked_flag, checked_seconds, checked_string

MAX_MUTES = 100  # of an account
MIN_FOR_S, MAX_FOR_S = 60, 366 * 86_400
FIELDS = ("what", "id", "forS", "until", "cron", "mode", "urgentPasses")
MODES = (HOLD, HISTORY)


# --- making, finding, ending --------------------------------------------------------------------------------


def create_mute(account: Account, sent: dict[str, Any], now: int) -> ListedMute:
    """A new mute, as the fields of the REST API say.

    `Refused` (400) names a wrong field, (404) when the account has no such alert, key, heartbeat or rule.
    """
    fields = {name: value for name, value in sent.items() if value is not None}
    mode = checked_choice(fields.get("mode", HOLD), "mode", MODES)
    passes = checked_flag(fields.get("urgentPasses", True), "urgentPasses")
    values = {"mode": mode, "urgent_passes": int(passes), **_times(fields, account.time_zone, now)}
    with transaction(account.seq):
        values |= _subject(account, fields)
        return find_mute(account.seq, _add(account.seq, values, now), now)


def _add(account_seq: int, values: dict[str, Any], now: int) -> str:
    """The id of a new mute with these columns; `Refused` (400) if there are too many. Call in `transaction()`."""
    if stored.count(account_seq) >= MAX_MUTES:
        stored.remove(account_seq, stored.ended(account_seq, now, MAX_MUTES))
    if stored.count(account_seq) >= MAX_MUTES:
        raise Refused(400, f"You already have {MAX_MUTES} mutes. End one first.")
    return stored.add(account_seq, values, now)


def of_account(account_seq: int, now: int) -> list[ListedMute]:
    """The account's mutes that have not ended, newest first."""
    return [one for one in stored.listed(account_seq) if one.mute.cron or holding.ends_at(one.mute, now)]


def find_mute(account_seq: int, id_: str, now: int) -> ListedMute:
    """The account's mute with that id; `Refused` (404) when it has none that has not ended."""
    return existing(next((one for one in of_account(account_seq, now) if one.mute.id == id_), None))


def end_mute(account_seq: int, id_: str, now: int) -> ListedMute:
    """End a mute; what it holds is released within a second."""
    with transaction(account_seq):
        found = find_mute(account_seq, id_, now)
        stored.remove(account_seq, [found.mute.seq])
    return found


def end_all(account_seq: int, what: str, id_: str | None, now: int) -> int:
    """End the mutes of one sender, or of everything; returns how many."""
    with transaction(account_seq):
        found = [one for one in of_account(account_seq, now) if (one.mute.what, one.subject_id) == (what, id_)]
        stored.remove(account_seq, [one.mute.seq for one in found])
    return len(found)


# --- an hour, at one press ----------------------------------------------------------------------------------


def mute_for_an_hour(account_seq: int, subject: Subject, now: int) -> None:
    """Mute it for an hour from now, unless it is muted longer; mutes that end sooner and are alike are replaced."""
    with transaction(account_seq):
        alike = [mute for mute in timed(account_seq, subject, now) if (mute.mode, mute.urgent_passes) == (HOLD, 1)]
        if any((mute.until or 0) >= now + HOUR_MS for mute in alike):
            return
        stored.remove(account_seq, [mute.seq for mute in alike])
        what, subject_seq = subject
        values = {"what": what, "subject_seq": subject_seq, "mode": HOLD, "urgent_passes": 1, "until": now + HOUR_MS}
        _add(account_seq, values, now)


def end_timed(account_seq: int, subject: Subject, now: int) -> None:
    """End the mutes of this subject that do not come again; what they hold is released within a second."""
    with transaction(account_seq):
        stored.remove(account_seq, [mute.seq for mute in timed(account_seq, subject, now)])


def timed(account_seq: int, subject: Subject, now: int) -> list[Mute]:
    """The mutes of this subject that are in force and do not come again, the one that ends last first."""
    found = [mute for mute in stored.of_account(account_seq) if mute.subject == subject and mute.cron is None]
    found = [mute for mute in found if holding.ends_at(mute, now) is not None]
    return sorted(found, key=lambda mute: mute.until or 0, reverse=True)


# --- fields -------------------------------------------------------------------------------------------------


def _times(fields: dict[str, Any], zone: str, now: int) -> dict[str, str | int]:
    """The columns that say when it is in force."""
    cron = fields.get("cron")
    if cron is None:
        if ("forS" in fields) == ("until" in fields):
            raise Refused(400, "Set either forS or until.", field="forS")
        return {"until": now + _for_s(fields) * 1000 if "forS" in fields else _until(fields["until"], now)}
    checked_string(cron, "cron")
    if "until" in fields or "forS" not in fields:
        raise Refused(400, "With cron, set forS, and not until.", field="forS")
    cron, for_s = local_time.checked_cron(cron, now), _for_s(fields)
    local_time.check_gaps(cron, for_s, zone, now)
    return {"cron": cron, "for_s": for_s}


def _for_s(fields: dict[str, Any]) -> int:
    return checked_seconds(fields["forS"], "forS", MIN_FOR_S, MAX_FOR_S)


def _until(value: Any, now: int) -> int:
    until = checked_time(value, "until")
    if not now < until <= now + MAX_FOR_S * 1000:
        raise Refused(400, "until must be in the future, at most 366 days ahead.", field="until")
    return until


# --- what is muted ------------------------------------------------------------------------------------------


def _subject(account: Account, fields: dict[str, Any]) -> dict[str, str | int]:
    """The columns that name what is muted."""
    what, id_ = fields.get("what"), fields.get("id")
    if what is None:
        raise Refused(400, "what is required.", field="what")
    checked_choice(what, "what", (ALL, *SUBJECTS))
    if (id_ is None) != (what == ALL):
        sentence = "id must be absent when what is all." if what == ALL else f"id is required: that of the {what}."
        raise Refused(400, sentence, field="id")
    if what == ALL:
        return {"what": ALL, "subject_seq": NO_SUBJECT}
    return {"what": what, "subject_seq": _seq(account, what, checked_string(id_, "id"))}


def subject_of(account: Account, text: str) -> Subject:
    """What a person names, as `named` takes it."""
    what, id_ = named(account, text)
    return EVERYTHING if id_ is None else (what, _seq(account, what, id_))


def named(account: Account, text: str, muted: Iterable[ListedMute] = ()) -> tuple[str, str | None]:
    """What a person names as `all`, or as `core/subjects.py` takes it, and its id.

    Also what the account follows, and what is `muted`, such as a key that was revoked.
    """
    if text == ALL:
        return ALL, None
    others = [(one.what, one.id, one.name) for one in _followed(account)]
    others += [(one.mute.what, one.subject_id, one.name) for one in muted if one.subject_id and one.name]
    return subjects.named(account.seq, text, beside=ALL, others=others)


def choices(account: Account) -> list[tuple[str, list[tuple[str, str]]]]:
    """The ids and names of all that the account can mute, by kind: what it has, and what it follows.

    What it follows goes by the id in the table of followers. The sender's own id stays hidden.
    """
    followed = _followed(account)
    return [
        (what, own + [(one.id, f"{one.name} ({one.owner})") for one in followed if one.what == what])
        for what, own in subjects.of_account(account.seq)
    ]


def _seq(account: Account, what: str, id_: str) -> int:
    """The seq of what the account has or follows by this id; `Refused` (404) if there is none."""
    seqs = [one.subject_seq for one in _followed(account) if (one.what, one.id) == (what, id_)]
    return seqs[0] if seqs else int(subjects.find(account.seq, what, id_).seq)


def _followed(account: Account) -> list[Followed]:
    return followers.followed(account=account.seq, email=account.email, since=AFTER_ALL)


def subject_words(one: ListedMute) -> str:
    """What is muted, in words: "everything", "the alert Disk"."""
    return "everything" if one.name is None else f"the {one.mute.what} {one.name}"


def time_words(mute: Mute, now: int) -> str:
    """When a mute is in force, in words: "until today 11:00", "Sundays at 02:00 for 2 h"."""
    if mute.cron is None or mute.for_s is None:
        return f"until {local_time.near_time(mute.until or 0, mute.time_zone, now)}"
    return f"{local_time.cron_words(mute.cron)} for {durations.in_words(mute.for_s)}"
