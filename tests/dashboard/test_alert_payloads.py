"""The last payload of an alert and its recent requests: kept, shown, sent again, forgotten."""

import re
from unittest.mock import ANY

import pytest

from core import alerts
from dashboard.alert_page import laid_out
from store.alert_events import find_payload
from store.database import run
from tests.support.accounts import account_set
from tests.support.alert_page import KEPT_BYTES, AlertPage, in_history
from tests.support.pages import only_id, signed_in
from tests.support.rows import each
from tests.support.times import HOUR_S, MINUTE_S

# --- the last payload ---------------------------------------------------------------------------------------


def number_kept():
    return run("SELECT count(*) FROM alert_payload").fetchone()[0]


DIGITS = '{"a":9.90,"b":1E5,"c":-0,"d":12345678901234567890123456789,"e":1.0e-7,"f":"ü🔥","g":[true,null,{}]}'


def test_the_last_payload_is_kept_and_shown_digit_for_digit(alert):
    alert.post({"before": 1})
    alert.post(data=DIGITS)
    assert alert.kept == DIGITS
    (text,) = [text for text in alert.tab("activity").texts_of("code") if "ü🔥" in text]
    assert re.sub(r"\s", "", text) == DIGITS


@each("character", ["x", "ü", "🔥"])
def test_a_payload_of_64_kb_is_kept_and_a_larger_one_not(alert, character):
    room = KEPT_BYTES - len('{"a":""}')
    fits = character * (room // len(character.encode()))
    alert.post({"a": fits})
    assert alert.kept == f'{{"a":"{fits}"}}'
    alert.post({"a": fits + character})
    assert (alert.kept, number_kept()) == (None, 1)
    page = alert.tab("activity")
    assert "larger than 64 KB" in page.text and "x" * 100 not in page.text
    assert not page.forms("/replay")


def test_a_payload_that_was_refused_replaces_nothing(alert):
    alert.post({"a": 1})
    assert alert.post(data='{"a": 1e400}').status_code == 400
    assert alert.kept == '{"a":1}'


def test_a_payload_that_made_no_notification_is_not_kept(alert):
    alert.switch(False)
    alert.post({"a": 1})
    assert alert.kept is None


def test_a_payload_can_be_deleted_by_its_owner(alert):
    alert.post({"a": "secret"})
    page = alert.do("forget")
    assert "Last request deleted." in page.text and "secret" not in page.main and number_kept() == 0


def test_a_payload_is_not_kept_when_its_owner_does_not_want_it(alert):
    alert.post({"a": 1})
    form = {"name": "x", "icon": "bell", "color": "#3b82f6", "frequency": "instant"}
    assert alert.owner.post(f"{alert.path}/settings", form).status_code == 303
    assert number_kept() == 0
    assert alert.post({"a": 2}).status_code == 200
    assert number_kept() == 0
    alert.settings()
    alert.post({"a": 3})
    assert alert.kept == '{"a":3}'


def test_a_payload_goes_with_its_alert(alert):
    alert.post({"a": 1})
    alert.owner.post(f"{alert.path}/delete")
    assert number_kept() == 0


def test_a_payload_is_in_no_log(alert, caplog):
    caplog.set_level(0)
    alert.post({"a": "topsecret"})
    alert.preview("{{ a }}", "", '{"a": "topsecret", }')
    alert.preview("{{ a }}")
    alert.owner.post(f"{alert.path}/replay")
    alert.post(data='{"a": "topsecret" broken')
    assert "topsecret" not in caplog.text


def test_each_alert_keeps_its_own_payload_and_requests(service, owner):
    first, second = AlertPage(service, owner, name="A"), AlertPage(service, owner, name="B")
    first.post({"a": "of the first"})
    second.post({"a": "of the second"})
    assert "of the first" in first.page.main and "of the first" not in second.page.main
    assert len(first.seen) == len(second.seen) == 1


# --- sending it again ---------------------------------------------------------------------------------------


def test_the_last_payload_is_sent_again_with_the_templates_as_they_are_now(service, alert, browser, moved_clock):
    alert.post(data='{"cost": 9.90}')
    kept = find_payload(alert.row.seq)
    moved_clock.ms += 60_000
    alert.owner.post(alert.path, {"title": "Paid {{ cost }}", "body": "now"})
    page = alert.do("replay")
    assert page.texts_of("h1") == ["Paid 9.90"] and in_history(alert.owner) == ("Paid 9.90", "now")
    assert len(browser.messages) == 2 and alert.row.notification_count == 2
    assert service.caller().get("/stats").json["stats"]["totalNotificationsAllTime"] == 2
    assert find_payload(alert.row.seq) == kept  # with the time at which the sender's request came


def test_a_replayed_payload_is_held_by_quiet_hours(alert, browser):
    alert.post({"a": 1})
    account_set("--quiet-hours", "09:00-11:00")
    assert "held" in alert.do("replay").text and len(browser.messages) == 1


def test_an_alert_that_is_off_sends_nothing_again(alert):
    alert.post({"a": 1})
    alert.switch(False)
    page = alert.refused("replay")
    assert page.said("alert") == ["Switch the alert on first."] and alert.row.notification_count == 1


def test_the_last_payload_is_sent_again_even_if_the_address_changes_meanwhile(alert, monkeypatch):
    alert.post({"title": "again"})
    rendered = alerts.rendered

    def rendered_while_rotated(*args):
        alerts.rotate_code(1, alert.row.id)
        return rendered(*args)

    monkeypatch.setattr(alerts, "rendered", rendered_while_rotated)
    alert.owner.post(f"{alert.path}/replay")
    assert alert.row.notification_count == 2


def test_a_payload_that_is_not_kept_cannot_be_replayed(alert):
    assert alert.refused("replay").said("alert") == ["There is no saved request to send again."]
    alert.post({"a": "x" * KEPT_BYTES})
    assert alert.refused("replay").said("alert") == ["There is no saved request to send again."]


# --- recent requests ----------------------------------------------------------------------------------------


def test_recent_requests_are_shown_with_their_answers_newest_first(make_service, push_service, moved_clock):
    service = make_service(WEBPUSH_HOSTS=push_service.origin, MAX_BODY_BYTES="1024")
    alert = AlertPage(service, signed_in(service))
    assert "Nothing yet" in alert.tab("activity").main
    alert.post({"a": 1})
    alert.owner.enable(push_service.browser())
    alert.post({"a": 1})
    account_set("--quiet-hours", "09:00-11:00")
    alert.post({"a": 1})
    alert.switch(False)
    alert.post({"a": 1})
    alert.switch(True)
    sentence = alert.post(data="[1").json["error"]
    assert alert.post({"a": "x" * 2000}).status_code == 413
    taken = ["200 inactive", "200 held", "200 delivered", "200 stored, no device"]
    assert alert.seen == [ANY, f"400 {sentence}", *taken]
    assert alert.seen[0].startswith("413 ") and alert.seen[0].endswith(".")


def test_a_request_that_no_device_gets_for_its_priority_is_shown_as_not_pushed(service, alert, browser):
    alert.owner.post(f"/app/devices/{only_id(service)}", {"minPriority": "high"})
    alert.post({"a": 1})
    assert alert.seen == ["200 stored, not pushed"]


def test_a_request_beyond_60_a_minute_is_shown_with_the_reason_and_equal_ones_as_one(alert):
    for _ in range(60):  # thirty are shown
        assert alert.post({"a": 1}).status_code == 200
    for _ in range(7):
        assert alert.post({"a": 1}).status_code == 429
    assert alert.seen == ["429 more than 60 a minute (7 times)", *["200 stored, no device"] * 29]


@pytest.mark.parametrize("others, words", [(0, "all alerts of this account"), (2, "all alerts together")])
def test_a_request_beyond_a_limit_of_all_alerts_is_shown_with_the_reason(make_service, moved_clock, others, words):
    service = make_service(INGEST_PER_MINUTE="3")
    alert = AlertPage(service, signed_in(service))
    for number in range(others):
        assert service.alert(email=service.account(f"{number}@example.org")).post({}).status_code == 200
    for _ in range(3 - others):
        alert.post({"a": 1})
    alert.post({"a": 1})
    assert alert.seen[0].startswith(f"429 too many for {words}")


def test_equal_refusals_are_counted_together_only_if_consecutive(alert):
    for body in ("[1", "[1", '{"a": 1}', "[1", "{"):
        alert.post(data=body)
    assert [seen[:3] for seen in alert.seen] == ["400", "400", "200", "400"] and alert.seen[3].endswith("(2 times)")


def test_equal_refusals_count_as_one_with_the_time_of_the_last(alert, moved_clock):
    alert.post(data="[1")
    moved_clock.advance(2 * HOUR_S)
    alert.post(data="[1")
    moved_clock.advance(10 * MINUTE_S)
    assert "(2 times)10 min ago" in alert.tab("activity").section("Recent requests")


def test_recent_requests_hold_nothing_of_a_payload(alert):
    bodies = ('{"a": "topsecret" x', '{"topsecret": NaN}', '{"topsecret": 1e400}', "[topsecret", "<topsecret>")
    assert [alert.post(data=body).status_code for body in bodies] == [400] * 5
    assert "topsecret" not in alert.page.text and len(alert.seen) >= 4


def test_an_answered_challenge_is_shown_and_the_page_still_waits(alert):
    alert.post({"type": "url_verification", "challenge": "x"})
    assert alert.seen == ["200 challenge answered"]
    assert "the last request made no notification (challenge answered)" in alert.tab("connect").text


def test_a_recent_request_leads_to_its_notification_as_long_as_that_is_there(alert):
    made = alert.post({"title": "Disk <b>"}).json["notificationId"]
    alert.post(data="[1")
    (link,) = alert.tab("activity").row_links()
    assert link.attributes["href"] == f"/app/notifications/{made}" and link.text.startswith("Disk <b>")
    alert.owner.post(f"/app/notifications/{made}/delete")
    assert made not in alert.owner.get(f"{alert.path}?tab=activity").text and len(alert.seen) == 2


@each(
    "compact, lines",
    [
        ('{"a":[1.5,{"b":",{[:\\"]"}],"c":{}}',
         ["{", '  "a": [', "    1.5,", "    {", '      "b": ",{[:\\"]"', "    }", "  ],", '  "c": {}', "}"]),
        ("{}", ["{}"]),
    ],
)  # fmt: skip
def test_the_last_request_is_laid_out(compact, lines):
    assert laid_out(compact) == "\n".join(lines)


def test_a_deep_payload_is_laid_out_without_a_page_of_spaces():
    deep = '{"a":' * 60 + "1" + "}" * 60
    assert len(laid_out(deep)) < 10 * len(deep)
