"""The presets for well-known senders, and whose payload something is. Pure.

One template serves all events of a sender: `default` goes on to what other events have instead. What may be empty
comes last in its line, and a line that may be empty comes last: so no event leaves a gap.
"""

from operator import itemgetter
from typing import Any

from core.preset import Preset, alerts_with, first_of

GITHUB = Preset(
    id="github",
    name="GitHub",
    icon="git-branch",
    color="#24292F",
    title=first_of("repository.full_name", "organization.login", otherwise="GitHub"),
    body=first_of("sender.login", "pusher.name", otherwise="GitHub")
    + " "
    + first_of("action", otherwise="→")
    + " "
    + first_of(
        *("pull_request.title", "issue.title", "discussion.title", "release.tag_name", "deployment.environment"),
        *("workflow_run.name", "workflow_job.name", "check_run.name", "forkee.full_name", "pages.0.title"),
        *("member.login", "alert.rule.description", "alert.security_advisory.summary", "security_advisory.summary"),
        *("ref", "zen", "starred_at"),
    )
    + " "
    + first_of(
        *("deployment_status.state", "workflow_run.conclusion", "workflow_job.conclusion", "check_run.conclusion"),
        *("review.state", "ref_type"),
    )
    + "\n"
    + first_of(
        *("comment.html_url", "review.html_url", "pull_request.html_url", "issue.html_url", "discussion.html_url"),
        *("release.html_url", "workflow_run.html_url", "workflow_job.html_url", "check_run.html_url"),
        *("forkee.html_url", "pages.0.html_url", "alert.html_url", "security_advisory.references.0.url", "compare"),
        *("repository.html_url",),
    )
    + "\n"
    + first_of("comment.body", "review.body", "head_commit.message"),
    steps=(
        "In the repository: Settings, Webhooks, Add webhook.",
        "Payload URL: the address. Content type: application/json. No secret: the address is it.",
        "Choose the events, then Add webhook: GitHub sends a ping at once.",
    ),
    sample={
        "action": "opened",
        "repository": {"full_name": "octo/hello", "node_id": "R_1"},
        "sender": {"login": "octocat"},
        "issue": {"title": "It works", "html_url": "https://github.com/octo/hello/issues/1"},
    },
    marks=(("repository.node_id", "sender.login"), ("zen", "hook_id"), ("security_advisory.ghsa_id",)),
)
GITLAB = Preset(
    id="gitlab",
    name="GitLab",
    icon="git-merge",
    color="#E24329",
    title=first_of("project.path_with_namespace", "project_name", "group.full_path", otherwise="GitLab"),
    body=first_of("user_name", "user.name", otherwise="GitLab")
    + ": {{ object_kind }} "
    + first_of(
        *("build_name", "object_attributes.title", "object_attributes.ref", "issue.title", "merge_request.title"),
        *("snippet.title", "tag", "environment", "ref"),
    )
    + " "
    + first_of("object_attributes.action", "object_attributes.status", "build_status", "status", "action")
    + "\n"
    + first_of("object_attributes.url", "deployable_url", "url", "project.web_url", "repository.homepage")
    + "\n"
    + first_of("object_attributes.note", "commits.0.title", "commit.message"),
    steps=(
        "In the project: Settings, Webhooks, Add new webhook.",
        "URL: the address. Choose the triggers, then Add webhook.",
        "Test: choose an event.",
    ),
    sample={
        "object_kind": "push",
        "user_name": "Ana",
        "ref": "refs/heads/main",
        "project": {"path_with_namespace": "octo/hello", "web_url": "http://127.0.0.1/octo/hello"},
        "commits": [{"title": "It works"}],
    },
    marks=(("object_kind",),),
)
GITEA = Preset(
    id="gitea",
    name="Gitea",
    icon="git-pull-request",
    color="#609926",
    title=first_of("repository.full_name", otherwise="Gitea"),
    body=first_of("sender.login", "pusher.login", otherwise="Gitea")
    + " "
    + first_of("action", otherwise="→")
    + " "
    + first_of(
        *("pull_request.title", "issue.title", "release.tag_name", "workflow_run.display_title"),
        *("workflow_job.name", "forkee.full_name", "page", "package.name", "ref"),
    )
    + " "
    + first_of("workflow_run.conclusion", "workflow_job.conclusion", "ref_type")
    + "\n"
    + first_of(
        *("comment.html_url", "pull_request.html_url", "issue.html_url", "release.html_url", "compare_url"),
        *("workflow_run.html_url", "workflow_job.html_url", "forkee.html_url", "package.html_url", "page"),
        *("action", "sha"),
        otherwise="deleted",  # a created branch or tag has its sha, a deleted one nothing of all this
    )
    + "\n"
    + first_of("comment.body", "review.content", "head_commit.message", "commits.0.message"),
    steps=(
        "In the repository: Settings, Webhooks, Add webhook, Gitea (Forgejo and Gogs: under their own name).",
        "Target URL: the address. Method: POST, application/json. No secret: the address is it.",
        "Choose the events, then Add webhook; on its page, Test delivery.",
    ),
    sample={
        "ref": "refs/heads/main",
        "compare_url": "http://127.0.0.1:3000/octo/hello/compare/1...2",
        "repository": {"full_name": "octo/hello", "stars_count": 0},
        "sender": {"login": "ana", "username": "ana"},
        "commits": [{"message": "It works"}],
    },
    marks=(("repository.stars_count", "sender.username"),),
)
GRAFANA = Preset(
    id="grafana",
    name="Grafana",
    icon="chart-line",
    color="#F46800",
    title="{{ title }}",
    body=f"{alerts_with('firing')}\n{alerts_with('resolved')}",
    steps=(
        "Alerting, Contact points, create a contact point.",
        "Integration: Webhook. URL: the address.",
        "Test, then save, and choose it in a notification policy.",
    ),
    sample={
        "receiver": "pocketbell",
        "status": "firing",
        "orgId": 1,
        "alerts": [{"status": "firing", "labels": {}, "annotations": {"summary": "from a shell"}}],
        "groupKey": "1",
        "title": "[FIRING:1] It works",
        "message": "**Firing**",
    },
    marks=(("alerts", "groupKey", "orgId", "title"),),
)
ALERTMANAGER = Preset(
    id="alertmanager",
    name="Alertmanager",
    icon="flame",
    color="#E6522C",
    title="[{{ status | upcase }}] "
    + first_of("commonLabels.alertname", "groupLabels.alertname", otherwise="Alerts"),
    body=f"{alerts_with('firing')}\n{alerts_with('resolved')}",
    steps=("In alertmanager.yml, name a receiver like this one in a route:", "Reload Alertmanager."),
    sample={
        "receiver": "pocketbell",
        "groupKey": "1",
        "status": "firing",
        "groupLabels": {"alertname": "ItWorks"},
        "commonLabels": {"alertname": "ItWorks"},
        "alerts": [
            {"status": "firing", "labels": {"alertname": "ItWorks"}, "annotations": {"summary": "from a shell"}}
        ],
    },
    marks=(("alerts", "groupKey", "receiver"),),
    snippet="receivers:\n  - name: pocketbell\n    webhook_configs:\n      - url: ADDRESS",
)
UPTIME_KUMA = Preset(
    id="uptime-kuma",
    name="Uptime Kuma",
    icon="heart-pulse",
    color="#2E9E5B",
    title='{{ monitor.name | default: "Uptime Kuma" }}',
    body="{{ msg }}",
    steps=(
        "Settings, Notifications, Setup Notification.",
        "Type: Webhook. Post URL: the address. Request body: Preset - application/json.",
        "Test, then save.",
    ),
    sample={"heartbeat": None, "monitor": {"name": "Shop"}, "msg": "It works"},
    marks=(("heartbeat", "monitor", "msg"),),
)
SENTRY = Preset(
    id="sentry",
    name="Sentry",
    icon="bug",
    color="#6C5FC7",
    title=first_of(
        *("data.event.title", "data.error.title", "data.issue.title", "data.description_title"),
        *("data.metric_alert.title", "message"),
        otherwise="Sentry",
    ),
    body=first_of(
        *("project_name", "data.issue.project.name", "data.project_slug", "data.event.environment"),
        *("data.triggered_rule",),
        otherwise="Sentry",
    )
    + " "
    + first_of("action", otherwise="alert")
    + ": "
    + first_of(
        *("culprit", "data.event.culprit", "data.error.culprit", "data.issue.culprit", "data.description_text"),
        *("data.comment",),
        otherwise="no details",
    )
    + "\n"
    + first_of("url", "data.event.web_url", "data.error.web_url", "data.issue.web_url", "data.web_url"),
    steps=(
        "Settings, Developer Settings, make an internal integration.",
        "Webhook URL: the address. Switch Alert Rule Action on, and choose issue events if you want them.",
        "In an alert rule, the action is: send a notification via your integration.",
    ),
    sample={"project_name": "shop", "culprit": "a shell", "message": "It works", "event": {"event_id": "1"}},
    marks=(("installation.uuid", "data"), ("project_name", "culprit", "event.event_id")),
)
STRIPE = Preset(
    id="stripe",
    name="Stripe",
    icon="credit-card",
    color="#635BFF",
    title="Stripe: {{ type }}",
    body=first_of(
        *("data.object.description", "data.object.customer_email", "data.object.customer_details.email"),
        *("data.object.email", "data.object.id", "id"),
    )
    + "\nAmount (smallest unit, such as cents): "
    + first_of("data.object.amount", "data.object.amount_total", "data.object.amount_due", otherwise="none")
    + ' {{ data.object.currency | default: "" | upcase }} '
    + first_of("data.object.status"),
    steps=(
        "Developers, Webhooks, add a destination.",
        "Choose the events, then Webhook endpoint, with the address as its URL.",
        "Stripe sends amounts in the smallest unit of the currency: 4900 is 49.00 EUR, but 4900 JPY.",
    ),
    sample={
        "object": "event",
        "type": "charge.succeeded",
        "api_version": "2020-08-27",
        "data": {
            "object": {
                "object": "charge",
                "amount": 4900,
                "currency": "eur",
                "description": "It works",
                "status": "succeeded",
            }
        },
    },
    marks=(("data.object.object", "type", "api_version"),),
)
HOME_ASSISTANT = Preset(
    id="home-assistant",
    name="Home Assistant",
    icon="house",
    color="#18BCF2",
    title='{{ title | default: "Home Assistant" }}',
    body="{{ message }}",
    steps=(
        "In configuration.yaml, as below. Restart Home Assistant.",
        "Automations then call notify.pocketbell with a title and a message.",
    ),
    sample={"title": "Front door", "message": "It works"},
    snippet="notify:\n  - platform: rest\n    name: pocketbell\n    method: POST_JSON\n    title_param_name: title\n"
    "    resource: ADDRESS",
)
HEALTHCHECKS = Preset(
    id="healthchecks",
    name="Healthchecks",
    icon="activity",
    color="#22BC66",
    title=first_of("check", "details.slug", otherwise="A check without a name") + " is {{ status | upcase }}",
    body="Tags: "
    + first_of("details.tags", "tags", otherwise="none")
    + '\n{{ last_ping_body | default: details.desc | default: "" | truncate: 200 }}',
    steps=(
        "Integrations, Webhook, Add.",
        "For both events: Method POST, URL: the address, header Content-Type: application/json, the body below.",
    ),
    sample={
        "check": "nightly backup",
        "status": "up",
        "details": {"name": "nightly backup", "tags": "prod"},
        "last_ping_body": "it works",
    },
    marks=(("check", "status", "last_ping_body"),),
    snippet='{"check": $NAME_JSON, "status": "$STATUS", "details": $JSON, "last_ping_body": $BODY_JSON}',
)
NETDATA = Preset(
    id="netdata",
    name="Netdata",
    icon="gauge",
    color="#00AB44",
    title="{{ host }} {{ status }}: {{ name }}",
    body='{{ alarm }}\n{{ chart }}, it was {{ old_status }}\n{{ info | default: "" }}',
    steps=(
        "In /etc/netdata: sudo ./edit-config health_alarm_notify.conf. At its end, write the lines below.",
        "Test, as the user netdata: /usr/libexec/netdata/plugins.d/alarm-notify.sh test",
    ),
    sample={
        "host": "nas",
        "status": "WARNING",
        "old_status": "CLEAR",
        "name": "disk_space_usage",
        "chart": "disk_space._srv",
        "alarm": "disk space usage = 91%",
        "info": "It works",
    },
    marks=(("host", "status", "old_status", "alarm", "chart"),),
    snippet=r"""SEND_CUSTOM="YES"
DEFAULT_RECIPIENT_CUSTOM="pocketbell"
custom_sender() {
  local field text json=""
  for field in host status old_status name chart alarm info; do
    text="${!field//\\/\\\\}"
    text="${text//\"/\\\"}"
    json+=",\"${field}\":\"${text//[[:cntrl:]]/ }\""
  done
  [ "$(docurl -X POST -d "{${json:1}}" ADDRESS)" = 200 ]
}""",
)
PROXMOX_VE = Preset(
    id="proxmox-ve",
    name="Proxmox VE",
    icon="server",
    color="#E57000",
    title="{{ title }}",
    body="{{ message }}",
    steps=(
        "Proxmox VE 8.3 or later. Datacenter, Notifications, Add, Webhook.",
        "Method: POST. URL: the address. Header: Content-Type, application/json. Body: as below.",
        "Test. Then name it as a target in a notification matcher: default-matcher takes everything.",
    ),
    sample={
        "title": "vzdump backup status (pve1): backup successful",
        "message": "It works",
        "severity": "info",
        "timestamp": 1795255200,
        "fields": {"hostname": "pve1", "type": "vzdump"},
    },
    marks=(("title", "message", "severity", "timestamp", "fields"),),
    snippet='{"title": "{{ escape title }}", "message": "{{ escape message }}", "severity": "{{ severity }}", '
    '"timestamp": {{ timestamp }}, "fields": {{ json fields }}}',
)
SONARR_RADARR = Preset(
    id="sonarr-radarr",
    name="Sonarr, Radarr",
    icon="tv",
    color="#35C5F4",
    title=first_of("instanceName", otherwise="Sonarr, Radarr") + ": {{ eventType }}",
    body=first_of(
        *("series.title", "movie.title", "message", "release.releaseTitle", "series.path", "movie.folderPath"),
        otherwise="no details",
    )
    + ' {{ episodes | map: "title" | join: ", " | default: movie.year | default: "" }}\n'
    + first_of("episodeFile.relativePath", "movieFile.relativePath", "release.releaseTitle", "downloadStatus"),
    steps=(
        "Settings, Connect, add, Webhook.",
        "Choose the triggers. Webhook URL: the address. Method: POST. No user name, no password.",
        "Test, then save.",
    ),
    sample={
        "eventType": "Download",
        "instanceName": "Sonarr",
        "series": {"title": "It works", "path": "/tv/It works"},
        "episodes": [{"seasonNumber": 1, "episodeNumber": 1, "title": "Pilot"}],
        "episodeFile": {"relativePath": "Season 1/It works - S01E01.mkv"},
    },
    marks=(("eventType", "series"), ("eventType", "movie"), ("eventType", "instanceName")),
)
OWN_JSON = Preset(
    id="json",
    name="Own JSON",
    icon="code",
    color="#3B82F6",
    title="",
    body="",
    steps=(
        "POST any JSON object to the address.",
        "Without templates the title is its title, subject or name; "
        "the text is its message, body, text, msg or content.",
        "Send one, then write the templates with what came.",
    ),
    sample={"title": "Backup", "message": "finished in 42 s"},
)
PRESETS = (  # as the page lists them; of two that recognize a payload equally well, the first wins
    GITHUB,
    GITLAB,
    GITEA,
    GRAFANA,
    ALERTMANAGER,
    UPTIME_KUMA,
    SENTRY,
    STRIPE,
    HOME_ASSISTANT,
    HEALTHCHECKS,
    NETDATA,
    PROXMOX_VE,
    SONARR_RADARR,
    OWN_JSON,
)
BY_ID = {preset.id: preset for preset in PRESETS}


def of(preset_id: str | None) -> Preset:
    """The preset with that id, from which an alert was made; without one, that for any JSON."""
    return BY_ID.get(preset_id or "", OWN_JSON)


def recognized(payload: dict[str, Any]) -> Preset | None:
    """The preset of the sender of this payload, as far as its fields tell.

    The longest mark that the payload has decides, because it says most: Grafana's payloads look like Alertmanager's
    with some fields more. Among marks of the same length, the first preset in `PRESETS` wins.
    """
    fits = [
        (len(mark), preset)
        for preset in PRESETS
        for mark in preset.marks
        if all(_has(payload, path) for path in mark)
    ]
    return max(fits, key=itemgetter(0), default=(0, None))[1]


def _has(payload: Any, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(payload, dict) or key not in payload:
            return False
        payload = payload[key]
    return True
