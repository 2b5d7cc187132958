"""Answers to a notification: presses of its buttons, of which the first counts. Must not know requests."""

from typing import NamedTuple

from core import alarms, long_poll, mutes
from core.buttons import ACKNOWLEDGE
from core.plans import history_begin
from models import Account, Alert, sha256_of
from process import clock
from store import buttons, copies, notifications
from store.buttons import GivenAnswer, PressedButton
from store.database import after_commit
from store.mutes import Mute
from store.senders import Subject
from wire.errors import Refused, existing
from wire.notification import Content

NO_BUTTON = "There is no such button: it may be older than a week, or its notification was deleted."


class Question(NamedTuple):
    """A button that can be pressed, and the state of its notification."""

    button: PressedButton
    given: GivenAnswer | None
    is_acknowledged: bool  # known of a button that acknowledges
    mute: Mute | None  # the longest of the alert, known of a button that mutes it

    @property
    def label(self) -> str:
        """The button's text."""
        position = self.button.position
        return ACKNOWLEDGE if position is None else self.button.content.actions[position]["label"]

    @property
    def is_to_mute(self) -> bool:
        """Whether it mutes the notification's alert."""
        position = self.button.position
        return position is not None and "mute" in self.button.content.actions[position]

    @property
    def alert(self) -> Subject:
        """What it mutes."""
        return "alert", self.button.alert_seq or 0

    @property
    def answer(self) -> str | None:
        """The label of the button that was pressed first, if one was."""
        return self.button.content.actions[self.given.position]["label"] if self.given else None


def find(token: str) -> Question:
    """The button with this token; `Refused` (404) if there is none or it has expired."""
    button = existing(buttons.pressed(sha256_of(token), clock.now_ms()), NO_BUTTON)
    seq = button.notification_seq
    is_acknowledged = button.position is None and bool(buttons.is_answered(seq))
    found = Question(button, buttons.answer_to(seq), is_acknowledged, None)
    if not found.is_to_mute:
        return found
    existing(Alert.first("seq = ?", button.alert_seq), "The alert that it mutes was deleted.")
    in_force = mutes.timed(button.account_seq, found.alert, clock.now_ms())
    return found._replace(mute=in_force[0] if in_force else None)


def press(token: str, undoes: bool) -> None:
    """Press this button, or undo that, if it mutes; `Refused`: (404) if it is gone, (409) if there is an answer."""
    found = find(token)  # first without the writers' lock: a guessed token must not delay them
    with copies.writing(found.button.account_seq, [found.button.notification_seq]):
        question = find(token)
        button = question.button
        if question.is_to_mute:
            change = mutes.end_timed if undoes else mutes.mute_for_an_hour
            change(button.account_seq, question.alert, clock.now_ms())
        elif button.position is None:
            alarms.acknowledge(button.account_seq, button.notification_seq, button.device_seq, clock.now_ms())
        else:
            _answer(button.account_seq, button.notification_seq, button.content, button.position, button.device_seq)


def answer(account: Account, notification_id: str, position: int) -> None:
    """Answer in the web app with the action at this place; `Refused`: (404, 400) without it, (409) if too late."""
    with copies.writing(account.seq, notifications.find_seqs(account.seq, [notification_id])):
        since = history_begin(account.plan, clock.now_ms())
        entry = existing(notifications.find(account.seq, notification_id, since))
        actions = entry.content.actions
        if not 0 <= position < len(actions) or "answer" not in actions[position]:
            raise Refused(400, "The notification has no such button.")
        _answer(account.seq, entry.seq, entry.content, position, None)


def _answer(account_seq: int, seq: int, content: Content, position: int, device_seq: int | None) -> None:
    """Take the first answer, which counts for all who have the notification; call in `copies.writing()`."""
    now = clock.now_ms()
    if not buttons.put_first_answer(seq, position, now, device_seq, None):
        raise Refused(409, "This was already answered.")
    after_commit(long_poll.note_change)
    group = copies.group(seqs=[seq])
    for one in group:
        buttons.put_first_answer(one.seq, position, now, device_seq, account_seq)  # its own has one already
        alarms.end_pushes(one.account_seq, one.seq, "It was answered before this device had it.", now)
    if content.acknowledge or len(group) > 1:  # a follower's copy may repeat where this one does not
        alarms.acknowledge(account_seq, seq, device_seq, now)
