"""Presets for what watches or runs machines, and for any other JSON; `presets` says how they are written."""

from core.preset import Preset, alerts_with, first_of

CRITICAL_IS_HIGH = (  # if an alert of the group is critical and fires
    '{{ alerts | where: "status", "firing" | where: "labels.severity", "critical" | map: "labels.severity" | first'
    ' | default: "" | replace: "critical", "high" }}'
)

GRAFANA = Preset(
    id="grafana",
    name="Grafana",
    icon="chart-line",
    color="#F46800",
    title="{{ title }}",
    body=f"{alerts_with('firing')}\n{alerts_with('resolved')}",
    steps=(
        "Open Alerting → Contact points and create a contact point.",
        "Integration: Webhook. URL: the address above.",
        "Test it, save it, and choose it in a notification policy.",
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
    priority=CRITICAL_IS_HIGH,
    url=first_of("alerts.0.panelURL", "alerts.0.dashboardURL", "alerts.0.generatorURL", "externalURL"),
    tag='{{ groupKey | default: "" | hash }}',
    resolved_when="status = resolved",
)
ALERTMANAGER = Preset(
    id="alertmanager",
    name="Alertmanager",
    icon="flame",
    color="#E6522C",
    title="[{{ status | upcase }}] "
    + first_of("commonLabels.alertname", "groupLabels.alertname", otherwise="Alerts"),
    body=f"{alerts_with('firing')}\n{alerts_with('resolved')}",
    steps=("In alertmanager.yml, add the receiver below and name it in a route.", "Reload Alertmanager."),
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
    priority=CRITICAL_IS_HIGH,
    url=first_of("alerts.0.generatorURL", "externalURL"),
    tag='{{ groupKey | default: "" | hash }}',
    resolved_when="status = resolved",
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
        "Open Settings → Notifications → Setup Notification.",
        "Type: Webhook. Post URL: the address above. Request body: Preset - application/json.",
        "Test, then save.",
    ),
    sample={"heartbeat": None, "monitor": {"name": "Shop"}, "msg": "It works"},
    marks=(("heartbeat", "monitor", "msg"),),
    tag='{{ monitor.id | default: "" }} {{ monitor.name | default: "" }}',
    resolved_when="heartbeat.status = 1",
)
HOME_ASSISTANT = Preset(
    id="home-assistant",
    name="Home Assistant",
    icon="house",
    color="#18BCF2",
    title='{{ title | default: "Home Assistant" }}',
    body="{{ message }}",
    steps=(
        "Add the lines below to configuration.yaml and restart Home Assistant.",
        "Automations can then call notify.pocketbell with a title and a message.",
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
        "Open Integrations and add a Webhook.",
        "For both events: method POST, the address above, header Content-Type: application/json, the body below.",
    ),
    sample={
        "check": "nightly backup",
        "status": "up",
        "details": {"name": "nightly backup", "tags": "prod"},
        "last_ping_body": "it works",
    },
    marks=(("check", "status", "last_ping_body"),),
    tag=first_of("details.uuid", "check"),
    resolved_when="status = up",
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
        "In /etc/netdata, run sudo ./edit-config health_alarm_notify.conf and add the lines below at the end.",
        "Test it as the user netdata: /usr/libexec/netdata/plugins.d/alarm-notify.sh test",
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
    tag="{{ host | hash }} {{ chart | hash }} {{ name | hash }}",
    resolved_when="status = CLEAR",
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
        "In Proxmox VE 8.3 or later, open Datacenter → Notifications → Add → Webhook.",
        "Method: POST. URL: the address above. Header: Content-Type, application/json. Body: see below.",
        "Test it, then choose it as a target in a notification matcher: default-matcher takes everything.",
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
        "Open Settings → Connect and add a Webhook.",
        "Choose the triggers. Webhook URL: the address above. Method: POST. Leave user name and password empty.",
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
    url=first_of("applicationUrl"),
)
OWN_JSON = Preset(
    id="json",
    name="Own JSON",
    icon="code",
    color="#3B82F6",
    title="",
    body="",
    steps=(
        "POST any JSON object to the address above.",
        "By default, the title comes from its title, subject or name, "
        "and the text from its message, body, text, msg or content.",
        "Send one, then use its fields to write your own message.",
    ),
    sample={"title": "Backup", "message": "finished in 42 s"},
)
