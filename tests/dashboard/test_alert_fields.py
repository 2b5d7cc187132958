"""Priority, link, tag and condition on the alert's page: the form, the preview, tests, replays, presets."""

import json

from core import presets
from models import Alert
from store.database import EVERYBODY, transaction
from tests.support.accounts import account_set
from tests.support.alert_page import facts_of
from tests.support.pages import Page
from tests.support.payloads import NAMES, PRESETS, sample, sender_of
from tests.support.rows import each

DRAFT = {
    "title": "{{ what }}",
    "body": "b",
    "priority": "{{ level }}",
    "url": "https://x.example/{{ id }}",
    "tag": "{{ key }}",
    "resolved": "state = ok",
}
COLUMNS = ("priority_template", "url_template", "tag_template", "resolved_when")
EVENT = {"what": "disk", "level": "urgent", "id": 7, "key": "k", "state": "bad"}
AT_ONCE, HISTORY = "Delivered right away.", "Saved to History only."
HELD, COLLECTED = "Held until today 11:00 (quiet hours).", "Held until today 11:00 (digest)."


def saved(alert):
    return {name: getattr(alert.row, name) for name in COLUMNS}


def previewed(alert, payload, **draft):
    """What the page says of a draft on a payload."""
    told = alert.preview(payload=json.dumps(payload), **DRAFT | draft)
    assert told["error"] == ""
    return facts_of(told)


def test_the_fields_are_saved_and_shown_again(alert):
    page, names = alert.owner.done(alert.path, DRAFT), ("priority", "url", "tag", "resolved")
    assert list(saved(alert).values()) == ["{{ level }}", "https://x.example/{{ id }}", "{{ key }}", "state = ok"]
    assert [page.value(name) for name in names] == [DRAFT[name] for name in names]
    alert.owner.post(alert.path, DRAFT | dict.fromkeys(names, " "))
    assert set(saved(alert).values()) == {None}


@each(
    "event, facts",
    [
        ({}, {"priority": "urgent", "url": "https://x.example/7", "tag": "k", "arrival": AT_ONCE}),
        ({"level": 3}, {"url": "https://x.example/7", "tag": "k", "arrival": AT_ONCE}),
        ({"level": "min"}, {"priority": "min", "url": "https://x.example/7", "tag": "k", "arrival": HISTORY}),
        ({"state": "ok"}, {"priority": "low", "resolved": "resolved", "url": "https://x.example/7", "tag": "k",
                           "arrival": AT_ONCE}),
        ({"id": "../a&b"}, {"priority": "urgent", "tag": "k", "arrival": AT_ONCE,
                            "url": "none, because the result is not an http or https address"}),
        ({"key": None}, {"priority": "urgent", "url": "https://x.example/7", "arrival": AT_ONCE,
                         "tag": "none, because a value is missing or empty"}),
    ],
)  # fmt: skip
def test_the_preview_shows_the_fields(alert, event, facts):
    assert previewed(alert, EVENT | event) == facts


def test_the_preview_names_missing_variables_of_the_fields(alert):
    told = alert.preview(payload='{"ky": 1}', **DRAFT)
    assert told["meant"] == {"what": None, "level": None, "id": None, "key": "ky"}
    assert told["url"].startswith("none") and told["tag"].startswith("none")


@each(
    "option, level, arrival",
    [
        ("--follow-quiet-hours", "urgent", HELD), ("--urgent-passes-quiet-hours", "urgent", AT_ONCE),
        ("--follow-quiet-hours", "min", HISTORY),
    ],
)  # fmt: skip
def test_the_preview_says_whether_it_would_be_held_now(alert, option, level, arrival):
    account_set("--quiet-hours", "09:00-11:00")
    alert.hook.set(option)
    assert previewed(alert, EVENT | {"level": level})["arrival"] == arrival


@each("minutes", [0, 59])  # after the first that is collected
def test_the_preview_says_that_a_frequency_collects_it(alert, moved_clock, minutes):
    alert.hook.set("--frequency", "1h")
    alert.hook.post(EVENT)
    moved_clock.advance(60 * minutes)
    assert [previewed(alert, EVENT | {"level": n})["arrival"] for n in (3, 4)] == [COLLECTED, AT_ONCE]


def test_without_a_request_the_preview_says_nothing_of_what_a_sample_lacks(alert):
    told = alert.preview(**DRAFT)
    assert facts_of(told) == {"arrival": AT_ONCE}


def test_whether_urgent_ones_repeat_is_saved_and_previewed(alert):
    urgent = DRAFT | {"priority": "urgent"}
    assert alert.preview(**urgent, repeats="1")["repeats"] == "repeats until acknowledged"
    assert alert.preview(**urgent)["repeats"] == ""
    page = alert.owner.done(alert.path, urgent | {"repeats": "1"})
    assert alert.row.repeats_urgent == 1 and page.chosen("repeats") == "1"
    alert.owner.post(alert.path, urgent)  # a form without it leaves it
    alert.settings()
    assert alert.row.repeats_urgent == 1
    assert previewed(alert, EVENT)["repeats"] == "repeats until acknowledged"
    assert "repeats" not in previewed(alert, EVENT | {"state": "ok"}) | previewed(alert, EVENT, repeats="0")
    alert.owner.post(alert.path, urgent | {"repeats": "0"})
    assert alert.row.repeats_urgent == 0


def test_placeholders_of_the_fields_that_can_never_be_filled_are_reported_and_not_said_to_be_shown(alert):
    draft = DRAFT | {"title": "t", "priority": "{{ a", "url": "{{ b", "tag": "{{ c"}
    why = "the closing }} is missing."
    assert alert.preview(**draft)["unfilled"] == [[draft[name], why] for name in ("priority", "url", "tag")]
    said = alert.owner.done(alert.path, draft).said("status")[0]
    assert f"cannot be filled: {why}" in said and "shown" not in said


# --- preview = delivered ------------------------------------------------------------------------------------


@each("name", {sender_of(name): name for name in NAMES if sender_of(name)}.values())
def test_the_preview_of_a_presets_templates_is_what_is_delivered(alert, name):
    preset, payload = PRESETS[sender_of(name)], sample(name)
    with transaction(EVERYBODY):
        alert.row.change(**{column: text or None for column, text in preset.templates.items()})
    draft = {"title": preset.title, "body": preset.body, "priority": preset.priority, "url": preset.url}
    told = alert.preview(payload=payload.decode(), tag=preset.tag, resolved=preset.resolved_when, **draft)
    assert alert.post(data=payload).json["status"] == "delivered"
    (row, *_) = alert.owner.service.caller().listed()
    words = {1: "min", 2: "low", None: "", 4: "high", 5: "urgent"}
    delivered = (row["title"], words[row.get("priority")], row.get("url", ""), row.get("tag", ""))
    links = [told[name] if not told[name].startswith("none,") else "" for name in ("url", "tag")]
    assert (f"MCP - {told['title']}", told["priority"], *links) == delivered


def test_a_test_has_priority_and_link_and_neither_replaces_nor_repeats(alert, browser):
    alert.owner.post(alert.path, DRAFT | {"repeats": "1"})
    first = alert.post(EVENT).json["notificationId"]
    alert.owner.post(alert.path, {**DRAFT, "test": "1"})
    tried, event = alert.owner.service.caller().listed()
    assert (tried["priority"], tried["url"]) == (5, "https://x.example/7")
    assert not {"tag", "acknowledge"} & set(tried) and event["id"] == first and {"tag", "acknowledge"} <= set(event)
    assert "replacedBy" not in alert.owner.service.caller().get(f"/notifications/{first}").json["notification"]


def test_a_replayed_request_sets_all_fields(alert):
    alert.owner.post(alert.path, DRAFT | {"repeats": "1"})
    alert.post(EVENT)
    alert.owner.post(f"{alert.path}/replay")
    replayed, first = alert.owner.service.caller().listed()
    assert {**replayed, "id": 0} == {**first, "id": 0} and replayed["tag"] == "k"


def test_a_notifications_page_explains_a_field_with_a_missing_variable(alert):
    alert.owner.post(alert.path, DRAFT)
    alert.post({"what": "disk"})
    (row,) = alert.owner.page("/app/notifications").rows()
    text = " ".join(alert.owner.page(f"/app/notifications/{row}").text.split())
    assert "A priority, link or tag that uses them was left out" in text


def test_a_test_with_the_least_priority_does_not_say_that_there_is_no_device(alert, browser):
    page = Page(alert.owner.post(alert.path, {**DRAFT, "priority": "min", "payload": "{}", "test": "1"}).text)
    assert page.said("status")[0] == "Test saved to History. No device received it." and browser.messages == []


# --- presets ------------------------------------------------------------------------------------------------


def made_from(owner, preset):
    path = owner.post("/app/alerts/new", {"preset": preset}).location
    return Alert.get(Alert.id == path.rpartition("/")[2])


def test_an_alert_older_than_the_fields_of_its_preset_is_still_proposed_another_preset(owner):
    alert = made_from(owner, "grafana")
    with transaction(EVERYBODY):
        alert.change(**dict.fromkeys(COLUMNS))
    event = PRESETS["alertmanager"].sample
    assert owner.service.client.post(f"/p/{alert.short_code}", json=event).status_code == 200
    page = owner.page(f"/app/alerts/{alert.id}")
    assert "The last request looks like Alertmanager." in " ".join(page.text.split())
    owner.done(f"/app/alerts/{alert.id}/preset", {"preset": "alertmanager"})
    changed = Alert.get(Alert.seq == alert.seq)
    assert changed.tag_template == presets.of("alertmanager").tag != ""


def test_a_preset_is_not_proposed_if_the_owner_wrote_a_field(alert):
    assert alert.post(PRESETS["alertmanager"].sample).status_code == 200
    for field in COLUMNS:
        with transaction(EVERYBODY):
            alert.row.change(**dict.fromkeys(COLUMNS) | {field: "a = b"})
        assert "The last request looks like" not in alert.page.text, field
