"""Making an alert from a preset, and the preset that a payload proposes."""

from models import Alert
from tests.support.alert_page import AlertPage
from tests.support.pages import joined
from tests.support.payloads import PRESETS, sample, sender_of, with_payloads
from tests.support.rows import each
from tests.support.tables import everything


def test_every_preset_is_offered(owner):
    offered = [radio["value"] for radio in owner.page("/app/alerts/new").all("input") if radio.get("type") == "radio"]
    assert {preset.id for preset in PRESETS.values()} <= set(offered)


@each("preset", PRESETS.values())
def test_an_alert_is_made_from_a_preset(owner, preset):
    assert owner.post("/app/alerts/new", {"preset": preset.id, "name": ""}).status_code == 303
    row = Alert.get(Alert.name == preset.name)
    assert (row.icon, row.color, row.preset) == (preset.icon, preset.color, preset.id)
    assert {column: getattr(row, column) or "" for column in preset.templates} == preset.templates


@each("preset", list(PRESETS.values())[::4])
def test_the_page_of_an_alert_from_a_preset_has_its_name_icon_and_steps(owner, preset):
    page = owner.done("/app/alerts/new", {"preset": preset.id, "name": ""})
    assert page.texts_of("h1") == [preset.name]
    assert f"#{preset.icon}" in "".join(use["href"] for use in page.all("use"))
    assert [step for step in preset.steps if joined([step]) not in page.texts_of("li")] == []


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
        assert "Nothing was saved" in owner.done(f"{alert.path}/preset", form).said("alert")[0]
    assert everything() == before


def test_a_proposed_preset_does_not_replace_templates_that_were_saved_meanwhile(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"zen": "Keep it logically awesome.", "hook_id": 1})
    assert proposed(alert.page) == ["Use the message for GitHub"]
    owner.done(alert.path, {"title": "My own", "body": ""})
    assert "Nothing was saved" in owner.done(f"{alert.path}/preset", {"preset": "github"}).said("alert")[0]
    assert (alert.row.title_template, alert.row.icon) == ("My own", "bell")


def test_a_proposed_preset_leaves_an_icon_and_a_colour_that_were_chosen(service, owner):
    alert = AlertPage(service, owner)
    alert.post({"zen": "Keep it logically awesome.", "hook_id": 1})
    alert.settings(icon="rocket", color="#ff0000")
    owner.done(f"{alert.path}/preset", {"preset": "github"})
    assert (alert.row.preset, alert.row.icon, alert.row.color) == ("github", "rocket", "#ff0000")


def proposed(page):
    return [text for text in page.texts_of("button") if text.startswith("Use the message for")]


@with_payloads
@each("name", ["github-push", "gitlab-push", "grafana-unified-test", "uptimekuma-down"])
def test_a_preset_is_proposed_from_the_last_payload_and_taken_by_one_form(service, owner, name):
    preset, alert = PRESETS[sender_of(name)], AlertPage(service, owner)
    assert proposed(alert.page) == []
    alert.post(data=sample(name))
    page = alert.page
    assert proposed(page) == [f"Use the message for {preset.name}"]
    (action,) = page.forms("/preset")
    page = owner.done(action, page.hidden(action))
    assert proposed(page) == [] and alert.row.title_template == preset.title and alert.row.preset == preset.id
    assert alert.row.name == "Backups"


@with_payloads
def test_a_preset_is_not_proposed_again_after_its_title_was_changed(service, owner):
    alert = AlertPage(service, owner)
    alert.post(data=sample("github-push"))
    alert.do("preset", preset="github")
    owner.done(alert.path, {"title": "My own {{ repository.name }}", "body": "{{ ref }}"})
    assert proposed(alert.page) == []
