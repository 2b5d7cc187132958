"""People: the accounts beside each other, for administrators alone; nothing of what anybody receives."""

from collections.abc import Callable

from flask import redirect, render_template

from core import accounts, deletion, mails, people, shown_once
from core.plans import PLANS
from dashboard import page
from dashboard.page import Page, Problem
from process import clock
from store.people import all_of_them
from web import guards
from web.context import current, request
from wire.errors import Refused

PEOPLE = "/app/people"
NEW = {"mail": "1"}  # the form of an invitation


def show_people(problem: Problem | None = None) -> str:
    """GET /app/people?invited: the accounts; the link of a new invitation is shown once, where it was made."""
    everybody = all_of_them()
    made = people.take_link(request.args.get("invited", ""), guards.session_token(), clock.now_ms())
    return render_template(
        "people.html",
        accounts=[one for one in everybody if people.state(one) != "invited"],
        invited=[one for one in everybody if people.state(one) == "invited"],
        made=made,
        plans=PLANS,
        can_mail=mails.can_mail(),
        is_mailed="mailed" in request.args,
        now=clock.now_ms(),
        problem=problem,
        typed=request.form if "plan" in request.form else NEW,
    )


def invite() -> Page:
    """POST /app/people: invites, and redirects to the page that shows the link, so that a reload makes no other."""
    sent, now, by_mail = request.form, clock.now_ms(), "mail" in request.form
    try:
        checked, me = accounts.checked_plan(sent.get("plan", "")), current().account.seq
        _, path = people.invite(sent.get("email", ""), checked, "administrator" in sent, now, me, by_mail)
    except Refused as refused:
        return show_people(Problem.of(refused)), 422
    invited = shown_once.keep(path, guards.session_token(), now)
    return redirect(f"{PEOPLE}?invited={invited}{'&mailed=1' * by_mail}", 303)


def withdraw(account_id: str) -> Page:
    """POST /app/people/{id}/withdraw: ends an invitation that nobody has used."""
    account = people.find(_seq(account_id))
    deletion.delete_account(account, current().account.seq, is_invitation=True)
    said = f"The invitation of {page.isolated(account.email)} was withdrawn. Its link no longer works."
    return page.back_to(PEOPLE, said)


def disable(account_id: str) -> Page:
    """POST /app/people/{id}/disable."""
    return _done(lambda: people.disable(_seq(account_id), clock.now_ms(), current().account.seq), "Account disabled.")


def enable(account_id: str) -> Page:
    """POST /app/people/{id}/enable."""
    said = "Account enabled. Its keys and devices work again; its browsers have to sign in."
    return _done(lambda: people.enable(_seq(account_id), clock.now_ms(), current().account.seq), said)


def set_administrator(account_id: str) -> Page:
    """POST /app/people/{id}/administrator: makes an administrator with `on=1`, an ordinary account without."""
    is_on = request.form.get("on") == "1"
    said = "Now an administrator." if is_on else "No longer an administrator."
    return _done(lambda: people.set_administrator(_seq(account_id), is_on, current().account.seq), said)


def show_delete(account_id: str, problem: Problem | None = None) -> str:
    """GET /app/people/{id}/delete: asks for the e-mail address, typed."""
    return render_template("delete_account.html", account=people.find(_seq(account_id)), problem=problem)


def delete(account_id: str) -> Page:
    """POST /app/people/{id}/delete: deletes the account whose e-mail address was typed, and everything it has."""
    account = people.find(_seq(account_id))
    if accounts.normalized(request.form.get("email", "")) != account.email:
        wrong = "This is not the account’s e-mail address. Nothing was deleted."
        return show_delete(account_id, Problem(wrong, "email")), 422
    said = f"{page.isolated(account.email)} was deleted."
    return _done(lambda: deletion.delete_account(account, current().account.seq), said)


def _seq(account_id: str) -> int:
    if not account_id.isascii() or not account_id.isdigit() or len(account_id) > 15:
        raise Refused(404)
    return int(account_id)


def _done(deed: Callable[[], None], said: str) -> Page:
    """Do it, and say so; say on the page why not if it is about the last administrator."""
    try:
        deed()
    except Refused as refused:
        if refused.status != 409:
            raise
        return show_people(Problem(refused.message)), 409
    return page.back_to(PEOPLE, said)
