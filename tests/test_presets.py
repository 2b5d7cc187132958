"""Presets: whose payload is whose, and what a notification says without anyone writing a template."""

import json
from pathlib import Path

import pytest

import alerts
import placeholders
import presets
from jsonbody import parse_event
from models import Alert
from tests import pages
from tests.pages import everything
from tests.test_alert_pages import AlertPage

cheap_passwords, owner, stranger = pages.cheap_passwords, pages.owner, pages.stranger

FOLDER = Path(__file__).parents[2] / "shared" / "payloads" / "json"
PRESETS = {preset.id: preset for preset in presets.PRESETS}
SENDERS = {  # of a payload, by the beginning of its file's name
    "github-": "github",
    "gitlab-": "gitlab",
    "grafana-": "grafana",
    "alertmanager-": "alertmanager",
    "prometheus-targetdown": "alertmanager",
    "alerta-doc-prometheus": "alertmanager",
    "uptimekuma-": "uptime-kuma",
    "sentry-": "sentry",
    "stripe-": "stripe",
    "healthchecks-": "healthchecks",
    "gitea-": "gitea",
    "gogs-": "gitea",
    "netdata-custom": "netdata",
    "sonarr-": "sonarr-radarr",
    "radarr-download": "sonarr-radarr",
}
OTHER_FORMATS = {  # in which these senders speak to somebody else's service, or as their user wrote it
    "alertmanager-opsgenie", "alertmanager-slack", "healthchecks-discord", "healthchecks-googlechat",
    "healthchecks-msteams", "uptimekuma-custom", "uptimekuma-custom-no-ct", "uptimekuma-feishu",
    "uptimekuma-grafana-oncall", "uptimekuma-slack-plain", "uptimekuma-squadcast",
}  # fmt: skip
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
with_payloads = pytest.mark.skipif(not NAMES, reason="no payloads")
HOLDS = {  # what a person needs to read, in title or body
    "github-issues-opened": ["Codertocat/Hello-World", "Spelling error in the README file", "opened", "issue"],
    "github-pull_request-opened": ["Codertocat/Hello-World", "Update the README with new information.", "pull"],
    "github-push": ["Codertocat/Hello-World", "simple-tag"],
    "github-release-published": ["Codertocat/Hello-World", "0.0.1", "published"],
    "github-workflow_job-failure": ["linters", "failure"],
    "github-star-created": ["Codertocat/Hello-World", "Codertocat created"],
    "github-dependabot_alert-created": ["wolfy1339/pika-pack", "semver"],
    "gitlab-issue": ["gitlabhq/gitlab-test", "New API: create/update/delete file", "open"],
    "gitlab-pipeline": ["gitlab-org/gitlab-test", "master", "success"],
    "gitlab-job": ["release-tools-fake", "auto_deploy:start", "success"],
    "gitlab-push": ["mike/diaspora", "refs/heads/master"],
    "grafana-legacy-alerting": ["CPU alert", "boom!"],
    "grafana-unified-test": ["TestAlert"],
    "alertmanager-firing": ["FIRING", "InstanceDown", "web-1:9100"],
    "uptimekuma-down": ["Shop", "Down"],
    "sentry-event_alert": ["This is a test error!", "production"],
    "stripe-charge.succeeded": ["charge.succeeded", "2000", "USD"],
    "stripe-account.updated": ["account.updated"],
    "healthchecks-up": ["Nightly", "UP"],
    "gitea-issue_comment": ["gogits/hello-world", "unknwon created", "Problem", "Got it"],
    "gitea-pull_request": ["example/example", "opened update", "/pulls/2"],
    "gitea-release": ["example/example", "published example", "/releases/tag/example"],
    "gogs-push": ["unknwon/webhooks", "refs/heads/develop", "Add new feature", "/compare/"],
    "netdata-custom": ["vm WARNING: test_alarm", "a test alarm = new value", "it was CLEAR"],
    "sonarr-download": ["Download", "Westworld.S01E01.mkv"],
    "radarr-download": ["Download", "Interstellar.2014"],
}


def sender_of(name):
    return (
        None if name in OTHER_FORMATS else next((p for start, p in SENDERS.items() if name.startswith(start)), None)
    )


def payload_of(name):
    return parse_event((FOLDER / f"{name}.json").read_bytes())


def made(preset, payload):
    return alerts.rendered(alerts.Template("Name", preset.title or None, preset.body or None, "UTC"), payload)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_templates_of_a_preset_can_be_saved(preset):
    placeholders.check_template(preset.title)
    placeholders.check_template(preset.body)
    assert alerts.checked_templates(preset.title, preset.body) == (preset.title or None, preset.body or None)


@with_payloads
@pytest.mark.parametrize("name", NAMES)
def test_a_payload_is_recognized_as_its_senders_and_as_nobody_elses(name):
    recognized = presets.recognized(payload_of(name))
    assert (recognized and recognized.id) == sender_of(name)


@with_payloads
@pytest.mark.parametrize("name", [name for name in NAMES if sender_of(name)])
def test_a_preset_makes_a_whole_notification_of_its_senders_payload(name):
    text = made(PRESETS[sender_of(name)], payload_of(name))
    assert text.missing == () and text.title.strip() and text.body.strip()
    assert "{{" not in text.title + text.body


@with_payloads
@pytest.mark.parametrize("name", [name for name in HOLDS if name in NAMES])
def test_a_preset_tells_what_a_person_needs(name):
    text = made(PRESETS[sender_of(name)], payload_of(name))
    told = f"{text.title}\n{text.body}".lower()
    assert [words for words in HOLDS[name] if words.lower() not in told] == []


@with_payloads
@pytest.mark.parametrize("name", [name for name in HOLDS if name in NAMES])
def test_the_text_of_a_preset_is_tidy(name):
    """No words run into each other, no title that ends in a space."""
    text = made(PRESETS[sender_of(name)], payload_of(name))
    assert text.title == text.title.strip()
    assert not [bad for bad in ("CLI)succeeded", "mainauto_deploy", ".mkv/") if bad in text.body]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"message": "x"},
        {"title": "t", "message": "m"},
        {"check": {"name": "disk"}, "client": {"name": "web-1"}, "status": 2},
        {"alerts": [], "title": "x"},
        {"repository": {"full_name": "a/b"}, "sender": {"login": "x"}},
        {"data": {}, "type": "x"},
        {"repository": None, "sender": "x", "object_kin": 1},
        {"monitor": None, "msg": "x"},
    ],
    ids=str,
)
def test_a_payload_of_nobody_in_particular_is_not_recognized(payload):
    assert presets.recognized(payload) is None


def test_what_home_assistant_sends_by_its_rest_notifier_is_shown():
    """`notify.pocketbell` with and without a title: https://www.home-assistant.io/integrations/notify.rest"""
    preset = PRESETS["home-assistant"]
    assert made(preset, {"message": "m", "title": "t"})[:2] == ("t", "m")
    assert made(preset, {"message": "m"})[:2] == ("Home Assistant", "m")


def test_the_set_up_of_healthchecks_makes_json_that_its_preset_shows():
    preset = PRESETS["healthchecks"]
    body = preset.snippet.replace("$NAME_JSON", '"the \\"nas\\""').replace("$STATUS", "down").replace("$TAGS", "prod")
    body = body.replace("$BODY_JSON", '"said"')
    text = made(preset, json.loads(body))
    assert (text.title, text.missing) == ('the "nas" is DOWN', ()) and "prod" in text.body


# --- on the pages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_an_alert_is_made_from_a_preset(owner, preset):
    page = owner.page("/app/alerts/new")
    assert preset.id in [radio["value"] for radio in page.all("input") if radio.get("type") == "radio"]
    page = owner.done("/app/alerts/new", {"preset": preset.id, "name": ""})
    row = Alert.get()
    assert page.texts_of("h1") == [preset.name] == [row.name]
    assert (row.icon, row.color, row.preset) == (preset.icon, preset.color, preset.id)
    assert (row.title_template or "", row.body_template or "") == (preset.title, preset.body)
    assert f"#{preset.icon}" in "".join(use["href"] for use in page.all("use"))
    assert [step for step in preset.steps if pages.joined([step]) not in page.texts_of("li")] == []


def test_an_alert_is_called_as_its_owner_wants(owner):
    assert owner.done("/app/alerts/new", {"preset": "grafana", "name": " Home "}).texts_of("h1") == ["Home"]


def test_a_name_that_is_too_long_is_refused_and_kept(owner):
    page = owner.refused("/app/alerts/new", {"preset": "grafana", "name": "x" * 101})
    assert page.value("name") == "x" * 101 and Alert.select().count() == 0
    (chosen,) = [radio["value"] for radio in page.all("input") if "checked" in radio]
    assert chosen == "grafana"


def test_a_preset_that_is_not_proposed_is_refused(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"zen": "Keep it logically awesome.", "hook_id": 1})
    before = everything()
    for form in ({"preset": "nothing"}, {}, {"preset": "<b>"}, {"preset": "grafana"}):
        assert "nothing was done" in owner.done(f"{alert.path}/preset", form).said("alert")[0]
    assert everything() == before


def test_a_proposed_preset_does_not_replace_templates_that_were_saved_meanwhile(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"zen": "Keep it logically awesome.", "hook_id": 1})
    assert proposed(alert.page) == ["Take the templates for GitHub"]
    owner.done(alert.path, {"title": "My own", "body": ""})
    assert "nothing was done" in owner.done(f"{alert.path}/preset", {"preset": "github"}).said("alert")[0]
    assert (alert.row.title_template, alert.row.icon) == ("My own", "bell")


def test_a_proposed_preset_leaves_an_icon_and_a_colour_that_were_chosen(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"zen": "Keep it logically awesome.", "hook_id": 1})
    alert.settings(icon="rocket", color="#ff0000")
    owner.done(f"{alert.path}/preset", {"preset": "github"})
    assert (alert.row.preset, alert.row.icon, alert.row.color) == ("github", "rocket", "#ff0000")


def proposed(page):
    return [text for text in page.texts_of("button") if text.startswith("Take the templates for")]


@with_payloads
@pytest.mark.parametrize("name", ["github-push", "gitlab-push", "grafana-unified-test", "uptimekuma-down"])
def test_a_preset_is_proposed_from_the_last_payload_and_taken_by_one_form(service, owner, name):
    preset, alert = PRESETS[sender_of(name)], AlertPage(service, owner)
    assert proposed(alert.page) == []
    alert.post(data=(FOLDER / f"{name}.json").read_bytes())
    page = alert.page
    assert proposed(page) == [f"Take the templates for {preset.name}"]
    (action,) = page.forms("/preset")
    page = owner.done(action, page.hidden(action))
    assert proposed(page) == [] and alert.row.title_template == preset.title and alert.row.preset == preset.id
    assert alert.row.name == "Backups"


@with_payloads
def test_who_changed_a_presets_title_is_not_asked_to_take_the_preset_again(service, owner):
    alert = AlertPage(service, owner)
    alert.post(data=(FOLDER / "github-push.json").read_bytes())
    alert.do("preset", preset="github")
    owner.done(alert.path, {"title": "My own {{ repository.name }}", "body": "{{ ref }}"})
    assert proposed(alert.page) == []


def test_of_an_unknown_senders_payload_no_preset_is_proposed(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"a": 1})
    assert proposed(alert.page) == []
