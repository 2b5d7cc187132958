"""The page of a button, whose address a push carries, and the answer to a notification in the web app.

A button's page needs no signed-in owner: the token in its address permits the press.
"""

import re

from flask import flash, redirect, render_template

from core import answers
from dashboard import history, page
from dashboard.page import Page
from web.context import current, request
from wire.errors import Refused

POSITION = re.compile("[0-9]")


def show_button(token: str) -> Page:
    """GET /a/{token}: a page with the button or an undo. Opening it changes nothing: programs look at links, too."""
    return render_template("button.html", question=answers.find(token))


def press_button(token: str) -> Page | dict[str, bool]:
    """POST /a/{token}: a press, by a button on a device (answered with JSON) or in the page of the button.

    With `undo` in the query, a mute by this button ends.
    """
    undoes = "undo" in request.args
    answers.press(token, undoes)
    if page.is_wanted():
        return render_template("button.html", question=answers.find(token), is_pressed=not undoes)
    return {"ok": True}


def answer_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/answer with `position`, the place of the answer among the actions."""
    position = request.form.get("position", "")
    try:
        answers.answer(current().account, notification_id, int(position) if POSITION.fullmatch(position) else -1)
    except Refused as refused:
        if refused.status != 409:
            raise
        flash(refused.message, "error")
    return redirect(f"/app/notifications/{notification_id}{history.part_asked()}", 303)
