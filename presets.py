"""Presets: for each well-known sender the look and the templates of an alert, its payloads' marks, the set-up there.

Pure. One template serves the events of a sender: what an event lacks is nothing, by `default: ""`.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """What an alert for a sender begins with.

    `marks` are paths of which a payload of the sender has all of one tuple. `steps` is how to set it up there, with a
    `snippet` to copy in which ADDRESS stands for the webhook address; `sample` is a short payload like its own.
    """

    id: str
    name: str
    icon: str
    color: str
    title: str
    body: str
    steps: tuple[str, ...]
    sample: dict[str, Any]
    marks: tuple[tuple[str, ...], ...] = ()
    snippet: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """What an alert takes over."""
        look = {"icon": self.icon, "color": self.color, "preset": self.id}
        return {**look, "title_template": self.title, "body_template": self.body}


def _some(*paths: str) -> str:
    """Those of these variables that an event has, one after the other."""
    return "".join(f'{{{{ {path} | default: "" }}}}' for path in paths)


GITHUB = Preset(
    id="github",
    name="GitHub",
    icon="git-branch",
    color="#24292F",
    title='{{ repository.full_name | default: "GitHub" }}',
    body='{{ sender.login | default: "GitHub" }} {{ action | default: "" }} '
    + _some("ref", "pull_request.title", "issue.title", "discussion.title", "release.tag_name", "forkee.full_name")
    + _some("workflow_run.name", "workflow_job.name", "deployment.environment", "pages.0.title", "member.login")
    + " "
    + _some("workflow_run.conclusion", "workflow_job.conclusion", "deployment_status.state", "review.state", "zen")
    + "\n"
    + _some("comment.body", "review.body", "head_commit.message", "alert.rule.description")
    + _some("alert.security_advisory.summary", "security_advisory.summary")
    + "\n"
    + _some("pull_request.html_url", "issue.html_url", "discussion.html_url", "release.html_url", "compare")
    + _some("workflow_run.html_url", "workflow_job.html_url", "forkee.html_url", "pages.0.html_url", "starred_at"),
    steps=(
        "In the repository: Settings, Webhooks, Add webhook.",
        "Payload URL: the address. Content type: application/json. No secret: the address is it.",
        "Choose the events, then Add webhook: GitHub sends a ping at once.",
    ),
    sample={
        "action": "opened",
        "repository": {"full_name": "octo/hello", "node_id": "R_1"},
        "sender": {"login": "octocat"},
        "issue": {"title": "It works"},
    },
    marks=(("repository.node_id", "sender.login"), ("zen", "hook_id"), ("security_advisory.ghsa_id",)),
)
GITLAB = Preset(
    id="gitlab",
    name="GitLab",
    icon="git-merge",
    color="#E24329",
    title="{{ object_kind | capitalize }} " + _some("project.path_with_namespace", "project_name"),
    body=_some("user_name", "user.name")
    + ": "
    + _some("build_name", "object_attributes.title")
    + " "
    + _some("ref", "object_attributes.ref")
    + " "
    + _some("object_attributes.action", "object_attributes.status", "build_status")
    + "\n"
    + _some("commits.0.title"),
    steps=(
        "In the project: Settings, Webhooks, Add new webhook.",
        "URL: the address. Choose the triggers, then Add webhook.",
        "Test: choose an event.",
    ),
    sample={
        "object_kind": "push",
        "user_name": "Ana",
        "ref": "refs/heads/main",
        "project": {"path_with_namespace": "octo/hello"},
        "commits": [{"title": "It works"}],
    },
    marks=(("object_kind",),),
)
GITEA = Preset(
    id="gitea",
    name="Gitea",
    icon="git-pull-request",
    color="#609926",
    title='{{ repository.full_name | default: "Gitea" }}',
    body='{{ sender.login | default: "Gitea" }} {{ action | default: "" }} '
    + _some("ref", "pull_request.title", "release.tag_name", "forkee.full_name", "page")
    + _some("workflow_run.display_title", "workflow_job.name")
    + " "
    + _some("workflow_run.conclusion", "workflow_job.conclusion", "issue.title")
    + "\n"
    + _some("comment.body", "review.content", "commits.0.message")
    + "\n"
    + _some("issue.html_url", "pull_request.html_url", "release.html_url", "compare_url", "forkee.html_url"),
    steps=(
        "In the repository: Settings, Webhooks, Add webhook, Gitea (Forgejo and Gogs: under their own name).",
        "Target URL: the address. Method: POST, application/json. No secret: the address is it.",
        "Choose the events, then Add webhook; on its page, Test delivery.",
    ),
    sample={
        "ref": "refs/heads/main",
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
    body='{{ message }}\n{{ commonAnnotations.summary | default: "" }}',
    steps=(
        "Alerting, Contact points, create a contact point.",
        "Integration: Webhook. URL: the address.",
        "Test, then save, and choose it in a notification policy.",
    ),
    sample={"title": "[FIRING:1] It works", "message": "from a shell", "orgId": 1, "alerts": [], "state": "alerting"},
    marks=(("alerts", "orgId", "title"), ("ruleName", "evalMatches")),
)
ALERTMANAGER = Preset(
    id="alertmanager",
    name="Alertmanager",
    icon="flame",
    color="#E6522C",
    title='[{{ status | upcase }}] {{ groupLabels.alertname | default: "Alertmanager" }} x{{ alerts | size }}',
    body='{{ alerts | map: "annotations.summary" | join: "\n" | default: "" }}',
    steps=("In alertmanager.yml, name a receiver like this one in a route:", "Reload Alertmanager."),
    sample={
        "receiver": "pocketbell",
        "groupKey": "1",
        "status": "firing",
        "groupLabels": {"alertname": "ItWorks"},
        "alerts": [{"annotations": {"summary": "from a shell"}}],
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
    title=_some("data.event.title", "data.issue.title", "data.metric_alert.title", "message"),
    body=_some("project_name", "data.event.environment", "data.issue.project.name", "data.description_text")
    + " "
    + _some("culprit", "data.event.culprit", "data.issue.culprit")
    + "\n"
    + _some("url", "data.event.web_url", "data.issue.web_url", "data.web_url"),
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
    body=_some("data.object.amount", "data.object.amount_total", "data.object.amount_due")
    + ' {{ data.object.currency | default: "" | upcase }} {{ data.object.status | default: "" }}\n'
    + _some("data.object.description", "data.object.customer_email", "data.object.email", "data.object.id"),
    steps=(
        "Developers, Webhooks, add a destination.",
        "Choose the events, then Webhook endpoint, with the address as its URL.",
        "Amounts come in the smallest unit of their currency, such as cents.",
    ),
    sample={
        "object": "event",
        "type": "charge.succeeded",
        "api_version": "2020-08-27",
        "data": {"object": {"object": "charge", "amount": 2000, "currency": "eur", "description": "It works"}},
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
    title="{{ check }} is {{ status | upcase }}",
    body='{{ tags | default: "" }} {{ last_ping_body | default: "" | truncate: 200 }}',
    steps=(
        "Integrations, Webhook, Add.",
        "For both events: Method POST, URL: the address, header Content-Type: application/json, the body below.",
    ),
    sample={"check": "nightly backup", "status": "up", "tags": "prod", "last_ping_body": "it works"},
    marks=(("check", "status", "last_ping_body"),),
    snippet='{"check": $NAME_JSON, "status": "$STATUS", "tags": "$TAGS", "last_ping_body": $BODY_JSON}',
)
NETDATA = Preset(
    id="netdata",
    name="Netdata",
    icon="gauge",
    color="#00AB44",
    title="{{ host }} {{ status }}: {{ name }}",
    body='{{ alarm }}\n{{ info | default: "" }}\n{{ chart }}, it was {{ old_status }}',
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
    title='{{ instanceName | default: "Sonarr, Radarr" }}: {{ eventType }}',
    body=_some("series.title", "movie.title")
    + ' {{ movie.year | default: "" }}{{ episodes | map: "title" | join: ", " | default: "" }}\n'
    + _some("message", "release.releaseTitle", "downloadStatus")
    + "\n"
    + _some("episodeFile.relativePath", "movieFile.relativePath")
    + "\n"
    + _some("series.path", "movie.folderPath"),
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
        "Without templates the title is its title, subject or name, the text its message, body, text or msg.",
        "Send one, then write the templates with what came.",
    ),
    sample={"title": "Backup", "message": "finished in 42 s"},
)
PRESETS = (
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
    """The preset that an alert was made from."""
    return BY_ID.get(preset_id or "", OWN_JSON)


def recognized(payload: dict[str, Any]) -> Preset | None:
    """Whose payload this is, as far as its fields tell."""
    fits = (preset for preset in PRESETS if any(all(_has(payload, path) for path in mark) for mark in preset.marks))
    return next(fits, None)


def _has(payload: Any, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(payload, dict) or key not in payload:
            return False
        payload = payload[key]
    return True
