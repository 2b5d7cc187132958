"""What an event says where its alert has no template: fields, cards, lines; what each of many senders becomes."""

import json
import time

import pytest

from core.default_message import MAX_LINES, NO_TEXT, default_message
from tests.support.payloads import FOLDER
from tests.support.picture_files import ELSEWHERE
from tests.support.rows import each
from tests.support.sender_payloads import SENDERS
from wire.strict_json import parse_event

NAME = "Shop alert"


def said(payload):
    """What a payload says; text is raw JSON."""
    raw = payload if isinstance(payload, str) else json.dumps(payload)
    return default_message(parse_event(raw.encode()), NAME)


@each(
    "payload, title, body",
    [
        ({"Title": "t", "MESSAGE": "m"}, "t", "m"),
        ({"event": "e", "alertname": "a", "text": "x"}, "a", "x"),
        ({"summary": "s", "subject": "j", "details": "d", "reason": "r"}, "j", "r"),
        ({"data": {"title": "t", "message": "m"}, "id": 1}, "t", "m"),
        ({"id": 1, "Data": {"Title": "t"}, "more": [{"Reason": "r"}]}, "t", "r"),
        ({"name": "n", "data": {"title": "t"}, "a": 1}, "n", "a: 1\ndata.title: t"),
        ({"id": 1, "data": {"message": "m"}}, "", "m\nid: 1"),
        ({"title": "t", "id": 1, "data": {"message": "m"}}, "t", "m"),
        ({"user": {"name": "ana", "message": "m"}, "action": "x"}, "", "action: x\nuser.name: ana\nuser.message: m"),
        ({"a": 1, "repository": {"name": "r", "description": "d"}}, "r", "a: 1\nrepository.description: d"),
        ({"title": "t"}, "t", NAME),
        ({"title": NAME}, NAME, NO_TEXT),
        ({"title": "t", "message": "t"}, "t", NAME),
        ({"title": "t", "message": " ", "host": "nas"}, "t", "host: nas"),
        ({"title": "first\nsecond\nthird"}, "first", "second\nthird"),
        ({"message": ""}, "", NO_TEXT),
        ({"title": "", "message": "\n"}, "", NO_TEXT),
        ({}, "", NO_TEXT),
        ([], "", NO_TEXT),
        ([1, "a"], "", "items: 1, a"),
        ([3, {"title": "t", "text": "x"}, {"title": "u"}], "t", "x"),
        ({"title": 1, "message": True, "a": None, "b": [], "c": {}}, "", "title: 1\nmessage: true"),
        ({"message": "[1] done {2}"}, "", "[1] done {2}"),
        ({"data": '{"title": "t", "message": "m"}'}, "t", "m"),
        ({"message": ' {"text": "x"}'}, "", "x"),
        ({"state": '{"level": 3}', "a": 1}, "", "a: 1\nstate.level: 3"),
        ({"message": json.dumps({"Message": json.dumps({"detail": '{"title": "t", "text": "x"}'})})}, "t", "x"),
        ({"message": '{"a": 1'}, "", NO_TEXT),
    ],
)
def test_title_and_body_are_looked_for_at_the_top_and_one_level_down_and_in_texts_that_are_json(payload, title, body):
    assert said(payload)[:2] == (title, body)


@each(
    "payload, lines",
    [
        ('{"a": 9.90, "b": 1E+2, "c": false, "d": null, "e": " x\\n y "}', "a: 9.90 b: 1E+2 c: false e: x y"),
        ({"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": "g"}, "a: 1 f: g b.c: 2"),
        ({"a": [{"b": 1}, {"b": 2}], "c": ["x", "y", None]}, "c: x, y a.b: 1"),
        ({"a": {"b": {"c": {"d": 5}}, "x": []}}, "a.b.c.d: 5"),
        ({"url": "ftp:x", "at": "http://x", "b": "f" * 40, "c": 2}, "url: ftp:x c: 2 at: http://x b: " + "f" * 40),
        ({"a": '[{"b": 1}]', "c": '{"broken', "d": 1, "e": "data:image/jpeg;base64,/9j/"}, "d: 1"),
        ({"a": "x" * 1_000}, f"a: {'x' * 199}…"),
        ({f"k{place}": place for place in range(100)}, " ".join(f"k{place}: {place}" for place in range(MAX_LINES))),
    ],
)  # fmt: skip
def test_a_payload_without_title_or_body_becomes_lines_of_its_first_two_levels(payload, lines):
    assert said(payload).body.replace("\n", " ") == lines


@each(
    "payload, url",
    [
        ({"url": "https://a.example/x?y#z"}, "https://a.example/x?y#z"),
        ({"LINK": "http://b.example"}, "http://b.example"),
        ({"url": "/relative", "html_url": "https://c.example"}, "https://c.example"),
        ({"permalink": "https://d.example"}, "https://d.example"),
        ({"url": "javascript:alert(1)"}, None),
        ({"url": "https://" + "x" * 2_000}, None),
        ({"url": ["https://a.example"]}, None),
        ({"a": 1, "data": {"url": "https://a.example"}}, None),
    ],
)
def test_a_link_at_the_top_is_the_link(payload, url):
    assert said(payload).url == url


ICON = {"type": "image", "image_url": "https://x.example/icon.png", "alt_text": "ana"}
CONTEXT = {"type": "context", "elements": [ICON]}
PICTURE = {"type": "image", "image_url": ELSEWHERE, "alt_text": "the door"}
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "motion"}}


def embed(**fields):
    return {"embeds": [{"title": "t", **fields}]}


@each(
    "payload, image",
    [
        ({"title": "t", "message": "m", "Image": ELSEWHERE}, ELSEWHERE),
        ({"title": "t", "imageUrl": ELSEWHERE}, ELSEWHERE),
        ({"title": "t", "image": "octo/hello:latest", "image_url": ELSEWHERE}, ELSEWHERE),
        ({"title": "t", "image": "http://x.example/cam.jpg"}, None),
        ({"title": "t", "message": "m", "data": {"image": ELSEWHERE}}, None),
        ({"text": "m", "attachments": [{"image_url": ELSEWHERE}]}, ELSEWHERE),
        ({"text": "m", "attachments": [{"text": "n", "thumb_url": ELSEWHERE}]}, ELSEWHERE),
        ({"text": "m", "blocks": [CONTEXT, SECTION | {"accessory": PICTURE}]}, ELSEWHERE),
        ({"text": "m", "blocks": [SECTION, PICTURE]}, ELSEWHERE),
        (embed(thumbnail={"url": "https://x.example/small"}, image={"url": ELSEWHERE}), ELSEWHERE),
        (embed(thumbnail={"url": ELSEWHERE}), ELSEWHERE),
        (embed(image={"url": "attachment://poster.jpg"}, author={"icon_url": ELSEWHERE}), None),
        (embed(image=[ELSEWHERE], thumbnail={"url": 7}), None),
    ],
)
def test_an_address_of_a_picture_at_the_top_or_in_a_card_is_the_picture(payload, image):
    made = said(payload)
    assert made.image == image and ELSEWHERE not in made.title + made.body


@each(
    "sender, title, body, url",
    [
        ("Slack text", "", "Build *12* failed: #12 & more", "https://ci.example/12"),
        ("Slack attachment", "shop #7 failed", "Deploy\nexit 1\nBranch: main", "https://ci.example/7"),
        ("Slack blocks", "CPU high", "*web-1* is at 97 %\nSince 10:00", "https://mon.example/1"),
        ("Discord", "Disk full", "<@1>\n98 % on nas\nPath: /srv", "https://nas.example"),
        ("Teams MessageCard", "Backup failed", "nas\ntonight\nno space", "https://b.example"),
        ("Teams MessageCard of text", "Build", "Failed\nLog", "https://ci.example/1"),
        ("Teams Adaptive Card", "Backup failed", "Job: daily\nno space", "https://b.example/1"),
        ("Google Chat", "Backup failed", "nas\nJob\nno space", "https://b.example"),
        ("Google Chat before v2", "Backup failed", "Path: /srv", "https://b.example"),
        ("Gitea", "It breaks", "on start", None),
        ("Docker Hub", "shop", "push_data.pushed_at: 1\npush_data.tag: 7\nrepository.description: Sells", None),
        ("PagerDuty", "CPU high", "event.id: 01", None),
        ("PagerDuty Events API", "CPU high", "event_action: trigger\ndedup_key: d\npayload.source: web-1", None),
        ("Opsgenie", "", "CPU high\naction: Create\nintegrationName: hook", None),
        ("Better Stack", "shop.example", "data.id: 1\ndata.type: incident\ndata.attributes.cause: Status 500", None),
        ("Cal.com", "30 min with Ana", "triggerEvent: BOOKING_CREATED", None),
        ("Typeform", "", "event_id: 01\nevent_type: form_response\nform_response.form_id: x", None),
        ("Shopify", "#1001", "id: 1\nemail: ana@example.org\ntotal_price: 9.90", None),
        ("Checkmk", "UP -> DOWN", "host: web-1\noutput: no answer\nstate: DOWN", None),
        ("GCP", "CPU of web-1 is high", "version: 1.2\nincident.incident_id: 0\nincident.state: open", None),
        ("GCP Pub/Sub", "", "subscription: projects/p/subscriptions/s", None),
        ("Graylog", "", "Errors: count() > 5", None),
        ("New Relic", "CPU > 90 on web-1", "id: 1\npriority: CRITICAL\nstate: ACTIVATED", None),
        ("TeamCity", "", "eventType: BUILD_FINISHED\npayload.id: 7\npayload.number: 12", None),
        ("Jenkins", "shop", "url: job/shop/\nbuild.number: 12\nbuild.phase: FINALIZED", None),
        ("Diun", "", "diun_version: 4\nhostname: nas\nstatus: new", None),
        ("Argo CD", "", "Deployment exceeded its deadline", None),
        ("Woodpecker", "push", "Fix it", None),
        ("Frigate", "", "type: new\nbefore.id: 1\nafter.id: 1", None),
        ("Frigate review", "", "type: new\nbefore.id: 1\nafter.camera: door", None),
        ("AWS SNS", "ALARM: CPU in EU", "Type: Notification", None),
        ("AWS SNS confirmation", "", "You have chosen to subscribe.\nVisit it", None),
        ("AWS EventBridge", "", "version: 0\nid: 1\ndetail-type: EC2 Instance State-change Notification", None),
        ("Azure Event Grid", "/blobs/a.txt", "id: 1", None),
        ("Prometheus", "web-1 down", "for 5 min", None),
        ("Plex", "media.play", "user: true\nowner: true\nAccount.id: 1", None),
        ("Seerr", "Dune (2021)", "Paul goes to a desert.", None),
        ("Tautulli", "Tautulli (nas)", "ana started Pilot", None),
        ("Gatus", "", "Health check for web failed", None),
        ("UptimeRobot", "", "monitorID: 1\nmonitorFriendlyName: Shop\nalertType: 1", None),
        ("Twilio", "", "Are you there?", None),
        ("Duplicati", "", "Duplicati Backup report for nas", None),
        ("Mattermost", "", "#### Build failed\n| a | b |", None),
        ("Stripe", "", "id: evt_1\nobject: event\ntype: charge.succeeded", None),
        ("Jira", "", "timestamp: 1\nwebhookEvent: jira:issue_created\nuser.displayName: Ana", None),
        ("Linear", "It breaks", "action: create\ntype: Issue\ndata.id: 1", "https://linear.example/SHOP-3"),
        ("Zabbix", "Problem: CPU high", "web-1 at 97 %", None),
        ("Statuspage", "Slow API", "page.id: 1", None),
        ("Traefik Hub", "", "x", None),
        ("Uptime Kuma by form", "Shop", "[Shop] [Down] 503", None),
        ("Healthchecks by query", "", "n: Nightly\ns: down", None),
        ("Event Grid by Teams", "Blob created", "Shop alert", None),
        ("Feishu", "Down", "Shop is down", None),
        ("Apprise", "Backup", "done", None),
    ],
)  # fmt: skip
def test_a_senders_event_says_what_happened(sender, title, body, url):
    made = said(SENDERS[sender])
    assert (made.title, made.url) == (title, url) and made.body.startswith(body)


def test_the_default_message_contains_no_json():
    for name, payload in SENDERS.items():
        assert not any(mark in f"{said(payload)}" for mark in ('{"', "[{", "{'")), name


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no payloads in {FOLDER}")
def test_the_default_message_of_a_real_payload_contains_no_json():
    for path in sorted((FOLDER / "json").glob("*.json")):
        title, body, *_ = said(path.read_text(encoding="utf-8"))
        assert '{"' not in title + body and "[{" not in title + body and body.strip(), path.name


HOSTILE = [  # made for their test alone: every worker reads this file
    ("deep", lambda: '{"a":' * 63 + "1" + "}" * 63),
    ("deep cards", lambda: '{"attachments":' + '[{"blocks":' * 31 + "[]" + "}]" * 31 + "}"),
    ("keys", lambda: json.dumps({f"K{number}": {"Title": ""} for number in range(10_000)})),
    ("objects", lambda: json.dumps({"a": [{"b": {}}] * 25_000})),
    ("cards", lambda: json.dumps({"attachments": [{"text": "x", "fields": [{"title": "a", "value": "b"}]}] * 4_000})),
    ("texts that begin as JSON", lambda: json.dumps({f"a{number}": "{" for number in range(30_000)})),
    ("a long text that begins as JSON", lambda: json.dumps({"a": "{" * 99_999, "message": "[" * 200_000})),
    ("links", lambda: json.dumps({"text": "<http://a" * 27_000})),
    ("more links", lambda: json.dumps({"blocks": [], "text": "[](http://" * 25_000})),
    ("tags", lambda: json.dumps({"attachments": [{"text": "<a " * 80_000}]})),
    ("numbers", lambda: json.dumps(list(range(40_000)))),
    ("spaces", lambda: json.dumps({"title": " " * 225_000, "a": " " * 22_500})),
]


@each("name, made", HOSTILE)
def test_building_a_message_from_a_hostile_payload_costs_a_few_times_its_parsing(name, made):
    raw = made().encode()
    start = time.process_time()
    payload = parse_event(raw)
    parsed = time.process_time()
    default_message(payload, NAME)
    assert time.process_time() - parsed < 0.05 + 5 * (parsed - start)
