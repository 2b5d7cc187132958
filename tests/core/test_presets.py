"""Presets: which sender a payload comes from, and what its notification says before anybody wrote a template."""

import json

import pytest

from core import alerts, message_templates, presets
from tests.support.payloads import NAMES, PRESETS, made, payload_of, sender_of, with_payloads
from tests.support.rows import each

HOLDS = {  # what a person needs to read, in title or body
    "github-issues-opened": ["Codertocat/Hello-World", "Spelling error in the README file", "opened", "issue"],
    "github-pull_request-opened": ["Codertocat/Hello-World", "Update the README with new information.", "pull"],
    "github-push": ["Codertocat/Hello-World", "Codertocat → refs/tags/simple-tag"],
    "github-create-tag": ["Codertocat/Hello-World", "→ simple-tag tag"],
    "github-deployment_status": ["created production success"],
    "github-ping": ["Octocoders/Hello-World", "Anything added dilutes everything else."],
    "github-release-published": ["Codertocat/Hello-World", "0.0.1", "published"],
    "github-workflow_job-failure": ["linters", "failure"],
    "github-star-created": ["Codertocat/Hello-World", "Codertocat created"],
    "github-dependabot_alert-created": ["wolfy1339/pika-pack", "semver"],
    "gitlab-issue": ["gitlabhq/gitlab-test", "New API: create/update/delete file", "open"],
    "gitlab-pipeline": ["gitlab-org/gitlab-test", "master", "success"],
    "gitlab-job": ["release-tools-fake", "auto_deploy:start", "success"],
    "gitlab-push": ["mike/diaspora", "refs/heads/master", "Merge branch"],
    "gitlab-tag_push": ["jsmith/example", "John Smith: tag_push refs/tags/v1.0.0"],
    "grafana-unified-test": ["TestAlert", "0 firing", "1 resolved: Notification test"],
    "alertmanager-firing": ["FIRING", "InstanceDown", "1 firing: Instance web-1:9100 down"],
    "alertmanager-disk-group": ["RESOLVED", "DiskFull", "0 firing", "4 resolved: Disk 92% full on db-2\nDisk 93%"],
    "uptimekuma-down": ["Shop", "Down"],
    "sentry-event_alert": ["This is a test error!", "production triggered: SentryCustomError"],
    "sentry-legacy-plugin": ["This is an example Python exception", "alerta5 alert: raven.scripts.runner in main"],
    "stripe-charge.succeeded": [
        "charge.succeeded",
        "(created by Stripe CLI)\n",
        "such as cents): 2000 USD succeeded",
    ],
    "stripe-checkout.session.completed": ["stripe@example.com\n", "such as cents): 3000 USD complete"],
    "stripe-account.updated": ["account.updated", "acct_1Fg9jUA3kq9o1aTc\n", "none"],
    "healthchecks-up": ["Nightly", "UP", "prod backup"],
    "gitea-issue_comment": ["gogits/hello-world", "unknwon created", "Problem", "Got it"],
    "gitea-pull_request": ["example/example", "opened update", "/pulls/2"],
    "gitea-release": ["example/example", "published example", "/releases/tag/example"],
    "gogs-push": ["unknwon/webhooks", "refs/heads/develop", "Add new feature", "/compare/"],
    "netdata-custom": ["vm WARNING: test_alarm", "a test alarm = new value", "it was CLEAR"],
    "sonarr-download": ["Download", "Westworld.S01E01.mkv"],
    "radarr-download": ["Download", "Interstellar.2014"],
}


@each("preset", PRESETS.values())
def test_the_templates_of_a_preset_can_be_saved(preset):
    message_templates.check_template(preset.title)
    message_templates.check_template(preset.body)
    saved = {column: text or None for column, text in preset.templates.items()}
    assert alerts.checked_templates(preset.templates) == saved


@with_payloads
@each("name", NAMES)
def test_a_payload_is_recognized_as_its_senders_and_as_nobody_elses(name):
    recognized = presets.recognized(payload_of(name))
    assert (recognized and recognized.id) == sender_of(name)


@with_payloads
@each("name", [name for name in NAMES if sender_of(name)])
def test_a_preset_makes_a_whole_notification_of_its_senders_payload(name):
    text = made(PRESETS[sender_of(name)], payload_of(name))
    assert text.missing == () and text.title.strip() and text.body.strip()
    assert "{{" not in text.title + text.body


@with_payloads
@each("name", [name for name in HOLDS if name in NAMES])
def test_a_preset_tells_what_a_person_needs(name):
    text = made(PRESETS[sender_of(name)], payload_of(name))
    told = f"{text.title}\n{text.body}".lower()
    assert [words for words in HOLDS[name] if words.lower() not in told] == []


@with_payloads
@each("name", [name for name in NAMES if sender_of(name)])
def test_the_text_of_a_preset_has_no_gaps(name):
    """It has no blank line, no line that begins with a space, and no two spaces where a word is missing."""
    text = made(PRESETS[sender_of(name)], payload_of(name))
    lines = text.body.rstrip().split("\n")
    assert text.title == text.title.strip()
    assert [line for line in lines if not line.strip() or line[0] == " " or "  " in line.strip()] == []


@each(
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
)
def test_a_payload_of_nobody_in_particular_is_not_recognized(payload):
    assert presets.recognized(payload) is None


@with_payloads
@pytest.mark.parametrize("name", [name for name in NAMES if sender_of(name)])
def test_the_order_of_the_presets_does_not_decide_whose_a_payload_is(monkeypatch, name):
    """Grafana sends everything that Alertmanager sends: where two presets fit, the longer mark decides."""
    monkeypatch.setattr(presets, "PRESETS", presets.PRESETS[::-1])
    assert presets.recognized(payload_of(name)).id == sender_of(name)


def group(*alerts, **more):
    return {
        "receiver": "hook",
        "groupKey": "1",
        "status": "firing",
        "groupLabels": {},
        "alerts": list(alerts),
        **more,
    }


def one_alert(status, labels=(), **annotations):
    return {"status": status, "labels": dict(labels), "annotations": annotations}


@each("preset", ["alertmanager", "grafana"])
@each(
    "alerts, body",
    [
        ([one_alert("firing", summary="a"), one_alert("resolved", summary="b")], "1 firing: a\n1 resolved: b"),
        ([one_alert("firing", summary="a", description="no"), one_alert("firing", summary="b")],
         "2 firing: a\nb\n0 resolved:"),
        ([one_alert("firing", description="a"), one_alert("resolved", description="b")],
         "1 firing: a\n1 resolved: b"),
        ([one_alert("firing", summary="", description="a")], "1 firing: a\n0 resolved:"),
        ([one_alert("resolved", [("job", "node")])], '0 firing:\n1 resolved: {"job":"node"}'),
        ([], "0 firing:\n0 resolved:"),
    ],
)  # fmt: skip
def test_firing_and_resolved_alerts_are_told_apart_by_summary_description_or_labels(preset, alerts, body):
    text = made(PRESETS[preset], group(*alerts, title="t"))
    assert "\n".join(" ".join(line.split()) for line in text.body.split("\n")) == body and text.missing == ()


@each(
    "labels, title",
    [
        ({"commonLabels": {"alertname": "Disk"}, "groupLabels": {"job": "node"}}, "[FIRING] Disk"),
        ({"commonLabels": {"job": "node"}, "groupLabels": {"job": "node"}}, "[FIRING] Alerts"),
        ({"groupLabels": {"alertname": "Disk"}}, "[FIRING] Disk"),
    ],
)
def test_a_group_of_alertmanager_has_the_name_that_its_alerts_share(labels, title):
    assert made(PRESETS["alertmanager"], group(one_alert("firing", summary="a"), **labels)).title == title


@each("share", [0, 0.5, 1])
def test_a_group_of_a_thousand_alerts_is_shown(share):
    firing = int(share * 1_000)
    alerts = [
        one_alert("firing" if n < firing else "resolved", summary=f"Pod worker-{n} restarts") for n in range(1_000)
    ]
    text = made(PRESETS["alertmanager"], group(*alerts))
    assert text.body.startswith(f"{firing} firing: ") and "{{" not in text.body and len(text.body) == 10_000


CREATED = {"ref": "feature", "ref_type": "branch", "sha": "5f3c1a2b", "repository": {"full_name": "a/b"}}
DELETED = {"ref": "feature", "ref_type": "branch", "pusher_type": "user", "repository": {"full_name": "a/b"}}


def test_a_branch_that_gitea_created_and_one_that_it_deleted_read_differently():
    """https://docs.gitea.com/usage/webhooks: an event's kind is in a header alone."""
    created, deleted = (made(PRESETS["gitea"], {**one, "sender": {"login": "ana"}}) for one in (CREATED, DELETED))
    assert created.body.rstrip() == "ana → feature branch\n5f3c1a2b"
    assert deleted.body.rstrip() == "ana → feature branch\ndeleted"


def test_a_comment_on_a_pull_request_of_gitea_names_it_once():
    """It comes with the issue and with the pull request."""
    of_both = {"title": "Fix", "html_url": "http://git/pulls/2"}
    comment = {"body": "Got it", "html_url": "http://git/pulls/2#issuecomment-1"}
    payload = {"action": "created", "issue": of_both, "pull_request": of_both, "comment": comment, "is_pull": True}
    text = made(PRESETS["gitea"], {**payload, "sender": {"login": "ana"}, "repository": {"full_name": "a/b"}})
    assert text.body.split() == ["ana", "created", "Fix", "http://git/pulls/2#issuecomment-1", "Got", "it"]


def test_a_deployment_of_github_actions_is_told_without_its_workflow():
    payload = {
        "action": "created",
        "sender": {"login": "ana"},
        "repository": {"full_name": "a/b"},
        "deployment": {"environment": "production"},
        "deployment_status": {"state": "success"},
        "workflow_run": {"name": "CI", "html_url": "http://git/runs/1", "conclusion": None},
    }
    assert made(PRESETS["github"], payload).body.rstrip() == "ana created production success\nhttp://git/runs/1"


def test_a_health_warning_of_sonarr_is_told_once():
    payload = {"eventType": "Health", "instanceName": "Sonarr", "level": "warning", "message": "No indexers"}
    assert made(PRESETS["sonarr-radarr"], payload)[:2] == ("Sonarr: Health", "No indexers \n")


def test_a_resolved_issue_of_sentry_says_so():
    issue = {"title": "KeyError", "culprit": "shop.views", "web_url": "https://s/1", "project": {"name": "shop"}}
    text = made(PRESETS["sentry"], {"action": "resolved", "data": {"issue": issue}})
    assert text[:2] == ("KeyError", "shop resolved: shop.views\nhttps://s/1")


def test_what_home_assistant_sends_by_its_rest_notifier_is_shown():
    """`notify.pocketbell` with and without a title: https://www.home-assistant.io/integrations/notify.rest"""
    preset = PRESETS["home-assistant"]
    assert made(preset, {"message": "m", "title": "t"})[:2] == ("t", "m")
    assert made(preset, {"message": "m"})[:2] == ("Home Assistant", "m")


HEALTHCHECKS = {  # a check as Healthchecks fills in $JSON, without what no template shows
    "name": 'the "nas"', "slug": "the-nas", "tags": 'prod "a\\b"', "desc": "runs at 02:00", "status": "down"
}  # fmt: skip


@each(
    "check, body, title, lines",
    [
        (HEALTHCHECKS, "said\nmore", 'the "nas" is DOWN', ['Tags: prod "a\\b"', "said", "more"]),
        (HEALTHCHECKS, "", 'the "nas" is DOWN', ['Tags: prod "a\\b"', "runs at 02:00"]),
        ({"name": "", "slug": "", "tags": "", "desc": ""}, "", "A check without a name is DOWN", ["Tags: none", ""]),
    ],
)
def test_the_set_up_of_healthchecks_makes_json_that_its_preset_shows(check, body, title, lines):
    """Healthchecks escapes what $NAME_JSON, $JSON and $BODY_JSON stand for, and nothing else."""
    sent = PRESETS["healthchecks"].snippet
    for name, value in {"$NAME_JSON": check["name"], "$JSON": check, "$BODY_JSON": body}.items():
        sent = sent.replace(name, json.dumps(value))
    payload = json.loads(sent.replace("$STATUS", "down"))
    assert presets.recognized(payload) is PRESETS["healthchecks"]
    text = made(PRESETS["healthchecks"], payload)
    assert (text.title, text.body.split("\n"), text.missing) == (title, lines, ())


# --- priority, link, tag, resolved --------------------------------------------------------------------------

FIELDS = {  # priority; how the link begins; whether there is a tag
    "github-issues-opened": (None, "https://github.com/Codertocat/Hello-World/issues/1", False),
    "github-pull_request-opened": (None, "https://github.com/Codertocat/Hello-World/pull/2", False),
    "github-workflow_job-failure": (None, "https://github.com/octo-org/octo-repo/runs/", True),
    "github-push": (None, "https://github.com/Codertocat/Hello-World/compare/", False),
    "gitea-pull_request": (None, "http://localhost:3000/example/example/pulls/2", False),
    "gogs-push": (None, "http://localhost:3000/unknwon/webhooks/compare/", False),
    "gitlab-issue": (None, "http://example.com/diaspora/issues/23", False),
    "grafana-unified-test": (2, "https://zuliptestingwh2.grafana.net/", True),
    "alertmanager-firing": (4, "http://prom.example.org/graph?g0.expr=up", True),
    "alertmanager-resolved": (2, "http", True),
    "uptimekuma-down": (None, None, True),
    "uptimekuma-up": (2, None, True),
    "uptimekuma-test": (None, None, False),
    "sentry-event_alert": (None, "https://sentry.io/organizations/lxyz/issues/123/events/def456/", True),
    "healthchecks-up": (2, None, True),
    "netdata-custom": (None, None, True),
}


@with_payloads
@each("name", [name for name in FIELDS if name in NAMES])
def test_a_preset_sets_what_its_sender_tells(name):
    content, (priority, link, has_tag) = made(PRESETS[sender_of(name)], payload_of(name)), FIELDS[name]
    assert (content.priority, content.url is not None, content.tag is not None) == (
        priority,
        link is not None,
        has_tag,
    )
    assert link is None or content.url.startswith(link)


ENDED = {  # what the sender's next event changes, and a change that makes it another's
    "alertmanager": ({"status": "resolved"}, {"groupKey": "2"}),
    "grafana": ({"status": "resolved"}, {"groupKey": "2"}),
    "uptime-kuma": ({"heartbeat": {"status": 1}}, {"monitor": {"id": 2, "name": "Shop"}}),
    "healthchecks": ({"status": "up"}, {"details": {"uuid": "2"}}),
    "netdata": ({"status": "CLEAR", "old_status": "WARNING"}, {"chart": "disk_space._home"}),
    "sentry": ({"action": "resolved"}, {"data": {"issue": {"id": "2", "title": "KeyError"}}}),
}
BEGAN = {
    "alertmanager": group(one_alert("firing", summary="a")),
    "grafana": group(one_alert("firing", summary="a"), title="t", orgId=1),
    "uptime-kuma": {"heartbeat": {"status": 0}, "monitor": {"id": 1, "name": "Shop"}, "msg": "down"},
    "healthchecks": {"check": "nas", "status": "down", "details": {"uuid": "1"}, "last_ping_body": ""},
    "netdata": PRESETS["netdata"].sample,
    "sentry": {"action": "created", "data": {"issue": {"id": "1", "title": "KeyError"}}},
}


@each("preset", ENDED)
def test_what_ends_something_has_its_tag_and_is_low(preset):
    ends, others = ENDED[preset]
    began, ended, other = (made(PRESETS[preset], BEGAN[preset] | more) for more in ({}, ends, others))
    assert began.tag == ended.tag != other.tag and began.tag and other.tag
    assert (began.priority, ended.priority, other.priority) == (None, 2, None)


@each("preset", ["alertmanager", "grafana"])
@each(
    "severities, status, priority",
    [
        (["critical"], "firing", 4), (["warning", "critical"], "firing", 4), (["warning"], "firing", None),
        ([], "firing", None), (["critical"], "resolved", None),
    ],
)  # fmt: skip
def test_a_group_with_a_critical_alert_that_fires_is_high(preset, severities, status, priority):
    alerts = [
        one_alert(status, {"severity": one}.items()) | {"startsAt": "2026-11-21T06:14:43.748432698Z"}
        for one in severities
    ]
    assert made(PRESETS[preset], group(*alerts, title="t")).priority == priority


def test_two_monitors_of_uptime_kuma_with_one_number_have_tags_of_their_own():
    """Two installations number their monitors alike."""
    shop, mail = ({"heartbeat": None, "monitor": {"id": 1, "name": name}, "msg": ""} for name in ("Shop", "Mail"))
    assert made(PRESETS["uptime-kuma"], shop).tag != made(PRESETS["uptime-kuma"], mail).tag


def test_states_of_a_run_of_github_replace_each_other_and_its_jobs_do_not():
    run = {"workflow_run": {"html_url": "https://github.com/a/b/actions/runs/1"}}
    jobs = [{"workflow_job": {"html_url": f"https://github.com/a/b/actions/runs/1/job/{n}"}} for n in (1, 2)]
    tags = [made(PRESETS["github"], {"action": action, **one}).tag for action in ("a", "b") for one in (run, *jobs)]
    assert tags[:3] == tags[3:] and len(set(tags)) == 3


def test_a_metric_alert_of_sentry_that_is_resolved_replaces_it_and_no_issue_with_its_number():
    alert = {"data": {"metric_alert": {"id": "1", "title": "Errors"}}}
    critical, resolved = (made(PRESETS["sentry"], {"action": action, **alert}) for action in ("critical", "resolved"))
    issue = made(PRESETS["sentry"], {"action": "created", "data": {"issue": {"id": "1", "title": "KeyError"}}})
    assert critical.tag == resolved.tag != issue.tag and critical.tag and resolved.priority == 2
