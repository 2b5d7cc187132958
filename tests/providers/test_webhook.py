"""Webhooks: what each service gets and in which form, signatures, what answers mean, and where none may lead."""

import base64
import hashlib
import hmac
import json
import re
from email.header import decode_header

import pycurl
import pytest

from providers import transport
from providers.chat_forms import FORMS
from providers.webhook import new_secret, signed
from tests.support.channels import add_webhook, device
from tests.support.listener import ignore, listening
from tests.support.rows import each

NASTY = "<!channel> *a* _b_ `c` [d](https://evil.example) @everyone & <b>x</b> ~s~ ||p|| > # h"


@pytest.fixture
def service(make_service, receiver, moved_clock):
    return make_service(CHANNEL_HOSTS=receiver.origin)


@pytest.fixture
def sent(owner, receiver):
    """Sends to a webhook of this preset; returns the request that its service gets."""

    def send(preset, path="/hook", body="It is *full*.", **more):
        add_webhook(owner, receiver.origin + path, preset=preset, role="always", minPriority=1)
        answer = owner.send(body=body, **more)
        assert answer.json["notification"]["status"] == "delivered", receiver.got
        (got,) = receiver.got
        return got

    return send


@pytest.fixture
def hooked(owner, receiver):
    """A webhook that gets everything."""
    return add_webhook(owner, f"{receiver.origin}/hook", role="always", minPriority=1)


@pytest.fixture
def everywhere(owner, receiver):
    """Sends to a webhook of each preset; returns the request that each one's service gets."""
    for preset in FORMS:
        add_webhook(owner, f"{receiver.origin}/{preset}", preset=preset, role="always", minPriority=1)

    def send(content):
        receiver.got.clear()
        assert owner.post("/notifications/send", content).json["notification"]["status"] == "delivered"
        got = {one.path[1:].partition("/")[0]: one for one in receiver.got}
        assert got.keys() == FORMS.keys() and len(receiver.got) == len(FORMS)
        return got.items()

    return send


def texts(value):
    """All strings in JSON."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in texts(one)]


# Signatures


def test_the_published_vector_of_standard_webhooks_is_signed_alike():
    headers = signed(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_secret_is_24_random_bytes_in_base64():
    secret = new_secret()
    assert secret.startswith("whsec_") and len(base64.b64decode(secret[6:])) == 24 and secret != new_secret()


def test_a_generic_webhook_gets_the_notification_signed_with_the_secret_of_the_201(
    owner, receiver, hooked, moved_clock
):
    sent = owner.post(
        "/notifications/send",
        {"title": "Disk", "body": "full", "priority": 5, "url": "https://example.com/a", "tag": "disk"},
    ).json["notification"]
    (got,) = receiver.got
    page = f"http://127.0.0.1:8000/app/notifications/{sent['id']}"
    assert got.json == {
        "id": sent["id"],
        "title": "MCP - Disk",
        "body": "full",
        "priority": 5,
        "createdAt": moved_clock.ms,
        "url": "https://example.com/a",
        "tag": "disk",
        "page": page,
        "actions": [],
    }
    assert (got.headers["webhook-id"], int(got.headers["webhook-timestamp"])) == (sent["id"], moved_clock.ms // 1000)
    content = f"{sent['id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(hooked["secret"].removeprefix("whsec_"))
    mac = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{mac}"


def test_another_try_honours_retry_after_with_the_same_id_and_its_own_time(
    owner, service, receiver, hooked, moved_clock
):
    receiver.answers["/hook"] = (429, b"", {"Retry-After": "120"})
    assert owner.send().json["notification"]["status"] == "pending"
    receiver.answers.clear()
    moved_clock.advance(119)
    service.work()
    assert len(receiver.got) == 1
    moved_clock.advance(2)
    service.work()
    first, second = receiver.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 121
    assert owner.listed()[0]["status"] == "delivered"


def test_a_repeat_and_acknowledged_have_ids_of_their_own(owner, service, receiver, hooked, moved_clock):
    id_ = owner.post("/notifications/send", {"title": "t", "body": "b", "acknowledge": True}).json["notification"][
        "id"
    ]
    moved_clock.advance(61)
    service.work()
    owner.post(f"/notifications/{id_}/acknowledge")
    service.work()
    ids = [one.headers["webhook-id"] for one in receiver.got]
    assert len({*ids}) == 3 and ids[0] == id_ and all(one.startswith(f"{id_}-") for one in ids[1:])


# Presets


def test_each_preset_is_named_in_the_refusal_of_another(owner):
    answer = owner.post("/devices", {"kind": "webhook", "url": "https://hooks.example.com/", "preset": "irc"})
    assert answer.status_code == 400
    assert answer.json["error"] == (
        "preset must be generic, slack, discord, mattermost, teams, telegram, matrix, gotify, ntfy or apprise."
    )


def test_slack_gets_blocks_that_read_no_markup(sent):
    got = sent("slack", title="*Disk* <b>", body="a & <!channel>").json
    assert got["text"] == "MCP - *Disk* &lt;b&gt;\na &amp; &lt;!channel&gt;"
    assert got["blocks"] == [
        {"type": "header", "text": {"type": "plain_text", "text": "MCP - *Disk* &lt;b&gt;"}},
        {"type": "section", "text": {"type": "plain_text", "text": "a &amp; &lt;!channel&gt;"}},
    ]


def test_discord_gets_an_embed_that_mentions_nobody(sent):
    got = sent("discord", title="Disk_1", body="**a** @everyone\nhttps://x.example/a_b_c/@d_e#f_g").json
    assert got["allowed_mentions"] == {"parse": []}
    (embed,) = got["embeds"]
    assert embed["title"] == r"MCP - Disk\_1"
    assert embed["description"] == "\\*\\*a\\*\\* @everyone\nhttps://x.example/a_b_c/@d_e#f_g"


def test_mattermost_gets_markdown_that_calls_nobody(sent):
    assert sent("mattermost", title="Disk", body="@channel *a* https://x.example/@d_e#f_g").json == {
        "text": "**MCP - Disk**\n@\u200bchannel \\*a\\* https://x.example/%40d_e#f_g"
    }


def test_teams_gets_an_adaptive_card_of_plain_runs(sent):
    got = sent("teams", title="Disk", body="*a*\nb").json
    (attachment,) = got["attachments"]
    assert got["type"] == "message"
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"], card["actions"]) == ("AdaptiveCard", "1.4", [])
    assert [block["inlines"][0]["text"] for block in card["body"]] == ["MCP - Disk", "*a*", "b"]


def test_telegram_gets_html_and_the_chat_that_its_address_names(sent):
    got = sent("telegram", "/bot1:A/sendMessage?chat_id=-100", title="a<b", body="<i>c</i> & d")
    assert got.path == "/bot1:A/sendMessage?chat_id=-100"
    assert got.json == {
        "chat_id": "-100",
        "text": "<b>MCP - a&lt;b</b>\n&lt;i&gt;c&lt;/i&gt; &amp; d\n".rstrip("\n"),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }


def test_matrix_gets_an_event_with_a_transaction_of_its_own(owner, sent):
    path = "/_matrix/client/v3/rooms/!a:b/send/m.room.message"
    got = sent("matrix", f"{path}?access_token=t", title="a<b", body="c\n@room")
    id_ = owner.listed()[0]["id"]
    assert (got.method, got.path) == ("PUT", f"{path}/{id_}?access_token=t")
    assert got.json == {
        "msgtype": "m.text",
        "body": "MCP - a<b\nc\n@room",
        "format": "org.matrix.custom.html",
        "formatted_body": "<strong>MCP - a&lt;b</strong><br>c<br>@room",
        "m.mentions": {},
    }


def test_gotify_gets_a_message_with_its_priorities(sent):
    assert sent("gotify", "/message?token=A", title="Disk").json == {
        "title": "MCP - Disk",
        "message": "It is *full*.",
        "priority": 5,
        "extras": {"client::display": {"contentType": "text/plain"}, "client::notification": {}},
    }


def test_ntfy_gets_the_text_as_its_body_and_the_rest_as_headers(sent):
    got = sent("ntfy", "/topic", title="Grüße\r\nPriority: 1", body="Öl\nleer")
    assert got.body.decode() == "Öl\nleer"
    ((title, charset),) = decode_header(got.headers["title"])
    assert title.decode(charset) == "MCP - Grüße Priority: 1"
    assert (got.headers["priority"], got.headers["content-type"]) == ("3", "text/plain; charset=utf-8")


def test_ntfy_which_refuses_a_fourth_button_gets_the_page_as_its_third(owner, receiver):
    add_webhook(owner, f"{receiver.origin}/topic", preset="ntfy", role="always")
    actions = [{"label": label, "answer": label} for label in "abc"]
    owner.post("/notifications/send", {"title": "t", "body": "b", "acknowledge": True, "actions": actions})
    *_, third = buttons = json.loads(receiver.got[0].headers["actions"])
    assert [one["label"] for one in buttons] == ["Acknowledge", "a", "More"] and "/notifications/" in third["url"]


def test_apprise_gets_title_body_and_type(sent):
    assert sent("apprise", "/notify/key", title="Disk", body="full").json == {
        "title": "MCP - Disk",
        "body": "full",
        "type": "info",
        "format": "text",
    }


def test_links_and_buttons_lead_to_pages_and_hostile_texts_stay_texts(everywhere):
    content = {
        "title": NASTY,
        "body": f"{NASTY}\r\n" * 50 + "😀שלום",
        "priority": 5,
        "url": "https://example.com/?a=1&b=)\"'",
        "actions": [{"label": "Ja|<x>", "answer": "yes"}, {"label": "Log", "url": "https://example.com/log"}],
    }
    for preset, got in everywhere(content):
        whole = json.dumps([texts(got.json), got.headers]) if preset != "ntfy" else json.dumps(got.headers)
        assert re.search(r"http://127\.0\.0\.1:8000/a/[A-Za-z0-9_-]{22}", whole), preset
        assert "https://example.com/log" in whole, preset
        if preset == "slack":
            assert "<!channel>" not in whole and "|Ja/&lt;x&gt;>" in whole
        if preset in ("telegram", "matrix"):
            formatted = got.json["text" if preset == "telegram" else "formatted_body"]
            assert "<b>x</b>" not in formatted and "&lt;b&gt;x&lt;/b&gt;" in formatted
            assert 'href="https://example.com/?a=1&amp;b=%29%22%27"' in formatted
        if preset in ("discord", "mattermost"):
            assert "[d](" not in whole and r"\\[d\\]\\(" in whole


@each("text, path", [("*<&", "a"), ("😀" * 99 + "\n", "漢" * 700)])
def test_the_longest_text_fits(everywhere, text, path):
    title, body = (text * 1_000)[:1_000], (text * 10_000)[:10_000]
    for preset, got in everywhere({"title": title, "body": body, "url": f"https://example.com/{path}"}):
        if preset == "discord":
            embed = got.json["embeds"][0]
            assert len(embed["title"]) <= 256 and len(embed["description"]) <= 4_096
        elif preset == "slack":
            assert all(len(block["text"]["text"]) <= 3_000 for block in got.json["blocks"])
            assert len(got.json["blocks"][0]["text"]["text"]) <= 150
        elif preset == "telegram":
            assert len(re.sub("<.*?>", "", got.json["text"])) <= 4_096
        elif preset == "teams":
            assert len(got.body) <= 28 * 1_024
        elif preset == "ntfy":
            assert len(got.body) <= 4_096 and len(got.headers["title"]) <= 1_400
        else:
            assert len(got.body) <= 65_000, preset


@each("preset, empty", [("slack", None), ("gotify", "message"), ("apprise", "body")])
def test_a_service_that_refuses_an_empty_text_gets_none(service, owner, receiver, preset, empty):
    add_webhook(owner, f"{receiver.origin}/{preset}", preset=preset, role="always", minPriority=1)
    service.alert("--title", "Down", "--body", "{{ why }}").post({"why": None})
    (got,) = receiver.at(f"/{preset}")
    assert got.json[empty] == "MCP - Down" if empty else [one["type"] for one in got.json["blocks"]] == ["header"]


# Answers


@each(
    "answer, status, stays",
    [
        ((200,), "delivered", True),
        ((204,), "delivered", True),
        ((400,), "failed", True),
        ((401,), "failed", True),
        ((404,), "failed", True),
        ((408,), "failed", True),
        ((428,), "failed", True),
        ((429,), "pending", True),
        ((500,), "pending", True),
        ((503,), "pending", True),
        ((301, b"", {"Location": "/other"}), "pending", True),
        ((307, b"", {"Location": "/other"}), "pending", True),
        ((410,), "failed", False),  # the last: there is no webhook any more
    ],
)
def test_what_an_answer_means(owner, receiver, hooked, answer, status, stays):
    receiver.got.clear()
    receiver.answers["/hook"] = answer
    assert owner.send().json["notification"]["status"] == status
    found = device(owner, hooked["id"])
    assert (found is not None) == stays
    if stays and status != "delivered":
        assert found["lastError"].startswith(f"The webhook answered {answer[0]}")
    assert len(receiver.got) == 1 and not receiver.at("/other")


@each(
    "body, reason",
    [
        (b"channel_is_archived", " (channel_is_archived)"),
        (b'{"ok": false, "description": "Bad Request: chat not found"}', " (chat not found)"),
        (b'{"errcode": "M_FORBIDDEN"}', " (M_FORBIDDEN)"),
        (b"<script>", ""),
    ],
)
def test_a_service_says_why_in_a_word(owner, receiver, hooked, body, reason):
    receiver.answers["/hook"] = (400, body)
    owner.send()
    assert device(owner, hooked["id"])["lastError"] == f"The webhook answered 400{reason}."


def test_the_pause_of_one_address_keeps_no_other_on_its_host_waiting(make_service, moved_clock):
    dead = "http://127.0.0.1:9/"  # nothing listens there
    service = make_service(CHANNEL_HOSTS="http://127.0.0.1:9")
    service.account()
    caller = service.caller()
    first = add_webhook(caller, f"{dead}one", role="always", minPriority=1)
    for _ in range(3):
        caller.send()
    add_webhook(caller, f"{dead}two", role="always", minPriority=1)
    caller.send()
    errors = {one["name"] + one["id"]: one["lastError"] for one in caller.get("/devices").json["devices"]}
    assert errors.pop(first["name"] + first["id"]).startswith("The webhook could not be reached")
    assert list(errors.values()) == ["The webhook could not be reached: no connection could be made."]


# Where none may lead


@each(
    "host",
    [
        *(
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.0.0.1.",
            "[::1]",
            "[fe80::1]",
        ),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"),
    ],
)
def test_a_private_address_in_any_form_is_refused(owner, host):
    for url in (f"https://{host}/x", f"https://{host}:8443/x"):
        answer = owner.post("/devices", {"kind": "webhook", "url": url})
        assert answer.status_code == 400
        assert answer.json["error"] == (
            "url is not permitted: use a public https address. The operator permits others with CHANNEL_HOSTS."
        ), url


NO_PLAIN_ONES = ["//a.example/", "https:///x", "https://a:b@a.example/", "https://a.example/#a"]


@each("url", NO_PLAIN_ONES)  # test_devices.py has many more of them
def test_what_is_no_plain_web_address_is_refused(owner, url):
    answer = owner.post("/devices", {"kind": "webhook", "url": url})
    assert answer.status_code == 400
    assert answer.json["error"] == "url must be a web address without spaces, a user name or a fragment (#)."


def test_the_services_own_addresses_are_refused_even_if_they_are_listed(make_service, moved_clock):
    listed = "http://127.0.0.1:8000,http://localhost:8000"
    service = make_service(CHANNEL_HOSTS=listed, BASE_URL="https://bell.example.org")
    service.account()
    here = ("http://127.0.0.1:8000/p/abc", "http://LOCALHOST:8000", "http://127.0.0.1.:08000/")
    for url in (*here, "https://bell.example.org/p/abc", "https://BELL.example.org.:443/p/abc"):
        answer = service.caller().post("/devices", {"kind": "webhook", "url": url})
        assert answer.status_code == 400
        assert answer.json["error"].startswith("url is an address of this service itself")


@each("host", ["localhost", "a.localhost", "ip6-localhost", "nowhere.invalid"])
def test_a_name_need_not_resolve_when_it_is_given_and_leads_nowhere_private_when_it_is_used(owner, host):
    with listening(ignore) as listener, listening(ignore, "::1") as listener6:
        for port in (listener.port, listener6.port):
            made = add_webhook(owner, f"https://{host}:{port}/x", role="always", minPriority=1)
            assert owner.send().json["notification"]["status"] == "pending"
            assert device(owner, made["id"])["lastError"].startswith("The webhook could not be reached")
            owner.delete(f"/devices/{made['id']}")
        assert (listener.connections, listener6.connections) == (0, 0)


def test_a_name_that_leads_elsewhere_once_it_was_looked_at_is_not_followed(owner, monkeypatch):
    with listening(ignore) as listener:
        url = f"https://rebound.example.com:{listener.port}/x"
        made = add_webhook(owner, url, role="always", minPriority=1)  # it leads to a public address now
        begin = transport._Exchange.begin

        def rebound(exchange, timeout_s):
            handle = begin(exchange, timeout_s)
            handle.setopt(pycurl.RESOLVE, [f"rebound.example.com:{listener.port}:127.0.0.1"])
            return handle

        monkeypatch.setattr(transport._Exchange, "begin", rebound)
        owner.send()
        assert listener.connections == 0
    assert device(owner, made["id"])["lastError"].startswith("The webhook could not be reached")


def test_a_listed_host_may_be_private_with_https_and_a_listed_origin_as_it_is(make_service, moved_clock):
    service = make_service(CHANNEL_HOSTS="10.0.0.7,*.lan,http://192.168.1.2:8080,http://nas:80")
    service.account()
    caller = service.caller()
    for url in ("https://10.0.0.7:8443/x", "https://chat.lan/x", "http://192.168.1.2:8080/x", "http://nas/x"):
        add_webhook(caller, url)
    for url in ("http://10.0.0.7/x", "http://chat.lan/x", "http://192.168.1.2/x", "https://192.168.1.2:8080/x"):
        assert caller.post("/devices", {"kind": "webhook", "url": url}).status_code == 400


def test_an_address_that_is_no_longer_permitted_gets_nothing_and_says_so(make_service, receiver, moved_clock):
    service = make_service(CHANNEL_HOSTS=receiver.origin)
    service.account()
    made = add_webhook(service.caller(), f"{receiver.origin}/hook", role="always", minPriority=1)
    caller = service.caller()
    service = make_service()
    caller.service = service
    assert caller.send().json["notification"]["status"] == "pending" and not receiver.got
    assert device(caller, made["id"])["lastError"] == (
        "Its address is not permitted: use a public https address. The operator permits others with CHANNEL_HOSTS."
    )


# Loops


@each("sent, out", [(None, "1"), ("0", "1"), ("1", "2"), ("2", "3"), ("x", "1"), ("-1", "1"), ("", "1")])
def test_each_service_adds_one_hop(owner, receiver, hooked, sent, out):
    receiver.got.clear()
    owner.send(headers={"X-Pocketbell-Hops": sent} if sent is not None else {})
    assert [one.headers["x-pocketbell-hops"] for one in receiver.got] == [out]


@each("hops", ["3", "4", "999999999"])
def test_what_came_through_three_services_is_stored_and_goes_to_no_webhook(owner, receiver, hooked, hops):
    answer = owner.send("Ring", headers={"X-Pocketbell-Hops": hops})
    assert answer.status_code == 200 and not receiver.got
    assert owner.listed("?limit=1")[0]["title"] == "MCP - Ring"


def test_a_picture_is_shown_where_a_service_can(everywhere):
    image = "https://example.com/cam.jpg"
    got = everywhere({"title": "Door", "body": "motion", "image": image})
    shown = {preset for preset, one in got if image in json.dumps([one.headers, one.body.decode()])}
    assert {*FORMS} - shown == {"telegram", "matrix", "apprise"}


def test_a_picture_that_a_service_cannot_fetch_does_not_make_it_refuse_the_message(owner, receiver):
    for preset in ("slack", "discord"):
        add_webhook(owner, f"{receiver.origin}/{preset}", preset=preset, role="always", minPriority=1)
    owner.post("/notifications/send", {"title": "Door", "body": "motion", "image": "https://nas/cam.jpg"})
    ((slack,), (discord,)) = (receiver.at(f"/{preset}") for preset in ("slack", "discord"))
    assert "nas" not in json.dumps(slack.json["blocks"]) and "image" not in discord.json["embeds"][0]


def test_events_ntfy_and_gotify_count_hops_alike(service, owner, receiver, hooked):
    hop = {"X-Pocketbell-Hops": "1"}
    service.alert().post({"title": "a"}, headers=hop)
    owner.request("POST", "/topic", data="b", headers=hop)
    owner.request("POST", "/gotify/message", {"message": "c"}, headers=hop)
    assert [one.headers["x-pocketbell-hops"] for one in receiver.got] == ["2", "2", "2"]


def test_a_digest_came_through_as_many_services_as_what_is_in_it(service, owner, receiver, hooked, moved_clock):
    alert = service.alert("--frequency", "1h")
    alert.post({"title": "a"}, headers={"X-Pocketbell-Hops": "2"})
    alert.post({"title": "b"})
    moved_clock.advance(3_700)
    service.work()
    assert [one.headers["x-pocketbell-hops"] for one in receiver.got] == ["3"]


def test_what_goes_to_no_webhook_is_no_part_of_the_digest_that_does(service, owner, receiver, hooked, moved_clock):
    alert = service.alert("--frequency", "1h")
    for title, hops in (("looped", "3"), ("a", "1"), ("b", "0")):
        alert.post({"title": title}, headers={"X-Pocketbell-Hops": hops})
    moved_clock.advance(3_700)
    service.work()
    assert [one.headers["x-pocketbell-hops"] for one in receiver.got] == ["2"]
    assert sorted(one["status"] for one in owner.listed()) == ["delivered", "delivered", "failed"]


def test_hops_are_in_no_answer_and_an_idempotency_key_does_not_count_them(owner):
    sent = [
        owner.send(headers={"Idempotency-Key": "k", **more}).json["notification"]
        for more in ({"X-Pocketbell-Hops": "1"}, {"X-Pocketbell-Hops": "2"}, {})
    ]
    assert sent[0] == sent[1] == sent[2] and "hops" not in sent[0]


def test_no_address_or_secret_is_logged(owner, receiver, hooked, caplog):
    receiver.answers["/hook"] = (500, b"hook")
    caplog.set_level("DEBUG")
    owner.send()
    assert "/hook" not in caplog.text and hooked["secret"] not in caplog.text
