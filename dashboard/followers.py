"""Followers: the page Also notify of an alert, a heartbeat, a rule or a key; accepting, declining, leaving."""

from flask import redirect, render_template

from core import followers, subjects
from dashboard import page
from dashboard.home import address_of
from dashboard.page import Page, Problem
from process import clock
from web.context import current, request
from wire.errors import Refused


def show_followers(what: str, subject_id: str, problem: Problem | None = None) -> str:
    """GET /app/followers/{what}/{id}: the followers and who is invited."""
    found = followers.of_subject(current().account.seq, what, subject_id, clock.now_ms())
    one = subjects.find(current().account.seq, what, subject_id)
    ids = (one.project_id, one.metric_id) if what == "rule" else (one.id,)
    return render_template(
        "followers.html",
        name=subjects.name_of(one),
        what=what,
        back_to=address_of(what, *ids),
        followers=found,
        path=_address(what, subject_id),
        problem=problem,
    )


def invite(what: str, subject_id: str) -> Page:
    """POST /app/followers/{what}/{id} with `email`."""
    email, account_seq = request.form.get("email", ""), current().account.seq
    try:
        one, is_new = followers.invite(account_seq, what, subject_id, email, clock.now_ms())
    except Refused as refused:
        return show_followers(what, subject_id, Problem.of(refused)), 422
    said = "was invited. Their Home shows it for 30 days." if is_new else "was invited before."
    return page.back_to(_address(what, subject_id), f"{page.isolated(one.email)} {said}")


def remove(what: str, subject_id: str, follower_id: str) -> Page:
    """POST /app/followers/{what}/{id}/{followerId}/remove."""
    one = followers.remove(current().account.seq, what, subject_id, follower_id, clock.now_ms())
    return page.back_to(_address(what, subject_id), f"{page.isolated(one.email)} is no longer notified.")


def accept(followed_id: str) -> Page:
    """POST /app/following/{id}/accept."""
    followers.accept(current().account, followed_id, clock.now_ms())
    return redirect("/app/", 303)


def leave(followed_id: str) -> Page:
    """POST /app/following/{id}/leave: declines an invitation on Home, or leaves, on Settings."""
    left = followers.leave(current().account, followed_id, clock.now_ms())
    if not left.is_following:
        return redirect("/app/", 303)
    return page.back_to("/app/settings", f"You no longer follow {page.isolated(left.name)}.")


def _address(what: str, subject_id: str) -> str:
    return f"/app/followers/{what}/{subject_id}"
