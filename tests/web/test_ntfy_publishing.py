"""Publishing by ntfy's addresses: what a request says, what is stored and answered, who may."""

import base64
import email.header
import json

import pytest

from models import Account
from tests.support.accounts import PRO, account_set
from tests.support.ntfy_publishing import KEPT, LINK, NOW, VIEW, assert_stored, ntfy_error, publish, stored
from tests.support.rows import each
from tests.support.times import utc
from wire.ntfy import MAX_ANSWER_BYTES


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode()


def basic(user, password):
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


# --- the parameters -----------------------------------------------------------------------------------------


@each("method, path", [("POST", "/backups"), ("PUT", "/backups"), ("POST", "/Api"), ("PUT", "/-_9")])
def test_the_body_of_a_post_or_put_to_a_topic_is_the_message_and_the_topic_its_title(pro, method, path):
    answer = publish(pro, path, " finished in 42 s\n", method)
    assert_stored(answer, title=f"MCP - {path[1:]}", body="finished in 42 s", priority=None, tag=None, tags=())
    assert answer.json == {
        "id": pro.listed()[0]["id"],
        "time": NOW // 1_000,
        "event": "message",
        "topic": path[1:],
        "title": f"MCP - {path[1:]}",
        "message": "finished in 42 s",
    }


@each("verb", ["publish", "send", "trigger"])
def test_a_get_publishes_its_query(pro, verb):
    answer = publish(pro, f"/backups/{verb}?title=Backup&message=a%5Cnb&priority=low&tags=x,y", None, "GET")
    assert_stored(answer, title="MCP - Backup", body="a\nb", priority=2, tags=("x", "y"))


def test_a_head_publishes_nothing(pro):
    assert publish(pro, "/backups/publish?message=x", None, "HEAD").status_code == 404
    assert pro.listed() == []


NAMES = {
    "title": (["X-Title", "Title", "Ti", "T"], "Backup", {"title": "MCP - Backup"}),
    "message": (["X-Message", "Message", "M"], r"one\ntwo", {"body": "one\ntwo"}),
    "priority": (["X-Priority", "Priority", "Prio", "P"], "4", {"priority": 4}),
    "tags": (["X-Tags", "Tags", "Tag", "Ta"], "warning, disk ,,x", {"tags": ("warning", "disk", "x")}),
    "click": (["X-Click", "Click"], LINK, {"url": LINK}),
    "actions": (["X-Actions", "Actions", "Action"], f"view, Open, {LINK}", {"actions": (KEPT,)}),
    "delay": (["X-Delay", "Delay", "X-At", "At", "X-In", "In"], "30m", {"deliver_at": NOW + 1_800_000}),
    "sequence": (["X-Sequence-ID", "Sequence-ID", "SID"], "job-7", {"tag": "job-7"}),
}
EVERY_NAME = [(name, value, kept) for names, value, kept in NAMES.values() for name in names]


@each("name, value, kept", EVERY_NAME)
def test_a_parameter_may_be_a_header_or_in_the_query_by_each_of_its_names(pro, name, value, kept):
    assert_stored(publish(pro, body="", headers={name: value}), **kept)
    assert_stored(pro.service.client.post(
        "/backups", query_string={name.lower(): value}, headers={"Authorization": f"Bearer {pro.key}"}
    ), **kept)  # fmt: skip


def test_a_header_comes_before_the_query_and_the_longer_name_before_the_shorter(pro):
    headers = {"T": "short", "Title": "plain", "X-Title": "first"}
    assert_stored(publish(pro, "/backups?title=query", headers=headers), title="MCP - first")
    del headers["X-Title"]
    assert_stored(publish(pro, "/backups?x-title=query", headers=headers), title="MCP - plain")
    assert_stored(publish(pro, "/backups?title=query", headers={"Title": "  "}), title="MCP - query")


@each(
    "header, text",
    [
        ("Größe 🔔".encode().decode("latin-1"), "Größe 🔔"),
        ("Gr\xf6\xdfe", "Größe"),  # as a client sends it that knows only Latin-1
        (email.header.Header("Größe 🔔 " * 9, "utf-8").encode(linesep=""), ("Größe 🔔 " * 9).strip()),
        ("=?UTF-8?Q?Gr=C3=B6=C3=9Fe?= =?iso-8859-1?q?_=FC?=", "Größe ü"),
        ("=?utf-8?b?not base64?=", "=?utf-8?b?not base64?="),
        ("=?utf-8?b?w7?= x", "=?utf-8?b?w7?= x"),
        ("=?utf-8?q?=FF?=", "=?utf-8?q?=FF?="),
        ("=?utf-7?q?+AOQ-?=", "=?utf-7?q?+AOQ-?="),
        ("=?punycode?q?aaa?=", "=?punycode?q?aaa?="),
        ("why =? so", "why =? so"),
    ],
)
def test_a_header_is_utf_8_or_encoded_words_and_else_as_it_was_sent(pro, header, text):
    assert_stored(publish(pro, headers={"Title": header}), title=f"MCP - {text}")


PRIORITIES = [*enumerate(["min", "low", "default", "high", "max"], 1), (3, "normal"), (5, "urgent"), (5, " MAX ")]


@each("number, word", [*PRIORITIES, *((number, str(number)) for number in range(1, 6))])
def test_a_priority_is_a_number_or_a_word(pro, number, word):
    assert_stored(publish(pro, headers={"Priority": word}), priority=number)


@each("value", ["u=1", "u=3, i", "u=5,i", "i"])
def test_the_priority_that_browsers_and_proxies_add_is_none(pro, value):
    assert_stored(publish(pro, headers={"Priority": value}), priority=None)
    assert_stored(publish(pro, headers={"Priority": value, "P": "2"}), priority=2)


def test_a_delay_counts_in_the_zone_of_the_account(pro):
    account_set("--timezone", "Asia/Kathmandu", email=PRO)
    answer = publish(pro, headers={"At": "tomorrow, 10am"})
    assert_stored(answer, deliver_at=utc("2026-11-22T04:15"))
    assert answer.json["time"] == utc("2026-11-22T04:15") // 1_000


ACTIONS = {
    f"view, Open, {LINK}": [KEPT],
    f"view, Open, {LINK}; view, Two, https://two.example": [KEPT, {"label": "Two", "url": "https://two.example"}],
    f"action=view, label=Open, url={LINK}, clear=true;": [KEPT],
    f"""view, "Say \\"a, b; c\\"", '{LINK}'""": [{"label": 'Say "a, b; c"', "url": LINK}],
    f"VIEW,Open,{LINK}": [KEPT],
    f"http, Off, https://x.example, method=POST, body='{{\"a\": 1}}'; view, Open, {LINK}": [KEPT],
    f"broadcast, Shoot, extras.cmd=pic; copy, Code, 1234, 5; view, Open, {LINK}": [KEPT],
    "view, Open, javascript:alert(1)": [],
    f"view, Open, https://x.example/{'a' * 2_000}": [],
    f"view, {'l' * 60}, {LINK}": [{"label": "l" * 40, "url": LINK}],
    "; ".join(f"view, {n}, {LINK}" for n in range(5)): [{"label": str(n), "url": LINK} for n in range(3)],
    json.dumps([VIEW, {"action": "http", "label": "Off"}]): [KEPT],
    "[]": [],
}


@each("sent, kept", ACTIONS.items())
def test_the_actions_that_open_an_address_become_buttons_and_the_others_are_left_out(pro, sent, kept):
    answer = publish(pro, headers={"Actions": sent})
    assert_stored(answer, actions=tuple(kept))
    shown = [
        {"id": f"{answer.json['id']}-{n}", "action": "view", **one, "clear": False} for n, one in enumerate(kept)
    ]
    assert answer.json.get("actions", []) == shown


def test_the_id_in_the_path_is_the_tag_and_a_newer_message_with_it_replaces_the_earlier(pro):
    first = publish(pro, "/backups/job-7", headers={"SID": "other"}).json
    assert first["sequence_id"] == "job-7"
    second = publish(pro, "/backups/job-7", method="PUT").json
    detail = pro.get(f"/notifications/{first['id']}").json["notification"]
    assert (detail["tag"], detail["replacedBy"]) == ("job-7", second["id"])


BODIES = [
    ("body", "header", "body"),
    ("", "header", "header"),
    (" \n", "header", "header"),
    ("", "", "triggered"),
    ("\ufeff \n", r"\n \n", "triggered"),
    (r"C:\new", "", r"C:\new"),
    ("a\0b", "", "a\ufffdb"),
]


@each("body, header, message", BODIES)
def test_the_body_wins_over_the_parameter_unless_it_is_empty(pro, body, header, message):
    assert_stored(publish(pro, body=body.encode(), headers={"Message": header}), body=message)


UPTIME_KUMA = {
    **{
        "topic": "up",
        "title": "Shop Down [Uptime-Kuma]",
        "message": "timeout",
        "priority": 5,
        "tags": ["red_circle", "a: b"],
    },
    **{
        "actions": [{"action": "view", "label": f"Open {'shop ' * 9}", "url": LINK}],
        "icon": "https://x.example/i.png",
    },
}
SONARR = {
    "X-Title": "Episode Grabbed",
    "X-Message": "The Show - 1x01",
    "X-Priority": "3",
    "X-Tags": "tv,new",
    "X-Click": LINK,
}


def test_messages_of_ntfys_clients_arrive(pro):
    """Their requests as their sources make them."""
    label = f"Open {'shop ' * 9}"[:40].strip()
    kept = {"priority": 5, "tags": ("red_circle", "a: b"), "actions": ({"label": label, "url": LINK},)}
    answer = pro.request("POST", "/", json=UPTIME_KUMA, headers={"Authorization": basic("kuma", pro.key)})
    assert_stored(answer, title="MCP - Shop Down [Uptime-Kuma]", body="timeout", **kept)
    kept = {"priority": 3, "tags": ("tv", "new"), "url": LINK}
    assert_stored(
        publish(pro, "/tv", b"", headers=SONARR), title="MCP - Episode Grabbed", body="The Show - 1x01", **kept
    )


# --- what loses no message ----------------------------------------------------------------------------------


def test_what_is_too_long_is_cut(pro):
    headers = {"Title": "t" * 1_001, "SID": "s" * 65, "Tags": ",".join(["x" * 65] * 40)}
    answer = publish(pro, body="ü" * 10_001, headers=headers)
    cut = {"title": "MCP - " + "t" * 1_000, "body": "ü" * 10_000, "tag": "s" * 64, "tags": ("x" * 64,) * 32}
    assert_stored(answer, **cut)


@each("click", ["mailto:a@b.example", "javascript:alert(1)", "example.org", "https://", f"https://x/{'a' * 2_000}"])
def test_a_click_that_is_no_web_address_is_left_out(pro, click):
    assert_stored(publish(pro, headers={"Click": click}), body="finished", url=None)


@each("name", ["X-Icon", "Cache", "Firebase", "Markdown", "X-Poll-ID", "X-UnifiedPush"])
def test_headers_without_a_meaning_here_are_ignored(pro, name):
    assert_stored(publish(pro, headers={name: "no"}), body="finished")


def test_text_that_is_sent_as_a_file_is_the_message(pro):
    assert_stored(publish(pro, "/backups?filename=1a2b.txt", "log " * 2_000, "PUT"), body="log " * 1_999 + "log")


def test_the_answer_is_as_long_as_ntfys_command_line_reads(pro):
    long = {
        "Click": f"https://x.example/{'c' * 1_900}",
        "Title": "\x01" * 1_000,
        "SID": "🔔".encode().decode("latin-1"),
    }
    for body, headers in [("ü" * 9_999, {}), ('"\n' * 5_000, {}), ("🔔" * 9_999, long), ("x", long)]:
        answer = publish(pro, body=body.encode(), headers=headers)
        assert answer.status_code == 200 and len(answer.data) <= MAX_ANSWER_BYTES
        assert body.startswith(answer.json["message"].removesuffix("…")) and answer.json["message"]
        assert len(answer.data) > MAX_ANSWER_BYTES - 10 or body == "x"
    assert stored(url=0) == {"url": long["Click"]}  # only the answer is shorter


# --- JSON ---------------------------------------------------------------------------------------------------


@each("method", ["POST", "PUT"])
def test_json_at_the_root_names_its_topic(pro, method):
    said = {"topic": "backups", "message": "finished", "title": "Backup", "priority": 4, "tags": ["x", "y"]}
    said |= {"click": LINK, "actions": [VIEW], "delay": "30m", "sequence_id": "job-7", "icon": "x", "markdown": True}
    answer = pro.request(method, "/", json=said)
    kept = {"url": LINK, "actions": (KEPT,), "deliver_at": NOW + 1_800_000, "tag": "job-7", "tags": ("x", "y")}
    assert_stored(answer, title="MCP - Backup", body="finished", priority=4, **kept)
    assert answer.json["topic"] == "backups"


def test_json_wins_over_headers_which_count_where_it_says_nothing(pro):
    headers = {"X-Priority": "5", "X-Title": "header", "X-Message": "header", "Tags": "a"}
    answer = pro.request("POST", "/", json={"topic": "t", "title": "json", "message": "json"}, headers=headers)
    assert_stored(answer, title="MCP - json", body="json", priority=5, tags=("a",))


@each(
    "said, kept",
    [
        ({"message": None, "title": None, "priority": None, "tags": None, "click": None}, {"body": "triggered"}),
        ({"priority": 0, "tags": [], "actions": [], "delay": "", "attach": ""}, {"priority": None, "actions": ()}),
        ({"priority": "high"}, {"priority": 4}),
        ({"priority": "2"}, {"priority": 2}),
        ({"tags": "a,b"}, {"tags": ("a", "b")}),
        ({"delay": NOW // 1_000 + 60}, {"deliver_at": NOW + 60_000}),
        ({"actions": f"view, Open, {LINK}"}, {"actions": (KEPT,)}),
        ({"a": "x", "e": "x", "f": "x", "t": "unknown"}, {"title": "MCP - t"}),
        ({"message": r"a\nb"}, {"body": r"a\nb"}),
        ({"message": "x", "filename": "x.txt"}, {"body": "x"}),
    ],
)
def test_json_may_say_less_or_say_it_in_another_type(pro, said, kept):
    assert_stored(pro.request("POST", "/", json={"topic": "t", **said}), **kept)


# --- refusals -----------------------------------------------------------------------------------------------

REFUSED = [
    (40007, {"Priority": "6"}),
    (40007, {"Priority": "often"}),
    (40004, {"Delay": "soon"}),
    (40005, {"Delay": "0s"}),
    (40006, {"Delay": "367 days"}),
    (40018, {"Actions": "view"}),
    (40018, {"Actions": "view, Open"}),
    (40018, {"Actions": f'view, "Open, {LINK}'}),
    (40018, {"Actions": f"view, Open, {LINK}, what"}),
    (40018, {"Actions": "[{"}),
    (40018, {"Actions": "[1]"}),
    (40018, {"Actions": '[], "actions": 1'}),
]


@each("code, headers", REFUSED)
def test_an_invalid_message_is_refused_with_ntfys_code_and_not_stored(pro, code, headers):
    answer = publish(pro, headers=headers)
    assert (answer.status_code, answer.json) == (400, ntfy_error(code))
    assert answer.json["error"].endswith(".") and pro.listed() == []


@each(
    "code, body",
    [
        *((40024, b""), (40024, b"{"), (40024, b"[]"), (40024, b"\xff"), (40024, b'{"topic": NaN}')),
        *((40009, b"{}"), (40009, b'{"topic": 1}'), (40009, b'{"topic": "a b"}'), (40009, b'{"topic": ""}')),
        *((40017, b'{"topic": "t", "message": 1}'), (40017, b'{"topic": "t", "title": ["x"]}')),
        *((40017, b'{"topic": "t", "tags": {"a": "b"}}'), (40017, b'{"topic": "t", "tags": 5}')),
        *((40017, b'{"topic": "t", "tags": [1]}'), (40017, b'{"topic": "t", "click": {"a": 1}}')),
        *((40007, b'{"topic": "t", "priority": true}'), (40007, b'{"topic": "t", "priority": 4.5}')),
        *(
            (40018, b'{"topic": "t", "actions": {"a": 1}}'),
            (40018, b'{"topic": "t", "actions": [{"action": "view"}]}'),
        ),
        (40018, b'{"topic": "t", "actions": [{"action": "view", "label": " ", "url": "https://a.example"}]}'),
        (40004, b'{"topic": "t", "delay": " "}'),
    ],
)
def test_json_that_is_wrong_is_refused(pro, code, body):
    assert pro.request("POST", "/", data=body).json == ntfy_error(code)


# --- keys ---------------------------------------------------------------------------------------------------

CREDENTIALS = {
    "Bearer": lambda key: ({"Authorization": f"Bearer {key}"}, ""),
    "Bearer with tk_": lambda key: ({"Authorization": f"bearer tk_{key}"}, ""),
    "Basic's password": lambda key: ({"Authorization": basic("anybody", key)}, ""),
    "Basic's password with tk_": lambda key: ({"Authorization": basic("", f"tk_{key}")}, ""),
    "Basic's user": lambda key: ({"Authorization": basic(key, "")}, ""),
    "Basic's user, as Apprise sends it": lambda key: ({"Authorization": basic(key, "None")}, ""),
    "auth, Bearer": lambda key: ({}, f"auth={encoded(f'Bearer {key}')}"),
    "auth, Basic without padding": lambda key: ({}, f"auth={encoded(basic('u', key)).rstrip('=')}"),
    "authorization": lambda key: ({}, f"authorization={encoded(f'Bearer tk_{key}')}"),
}
NO_CREDENTIALS = {
    "none": lambda key: ({}, ""),
    "unknown": lambda key: ({"Authorization": f"Bearer {key[:-1]}{'1' if key[-1] == '0' else '0'}"}, ""),
    "the key alone": lambda key: ({"Authorization": key}, ""),
    "twice tk_": lambda key: ({"Authorization": f"Bearer tk_tk_{key}"}, ""),
    "in another scheme": lambda key: ({"Authorization": f"Token {key}"}, ""),
    "plain in auth": lambda key: ({}, f"auth={key}"),
    "no base64": lambda key: ({}, "auth=%ff%00!"),
    "base64 of no text": lambda key: ({}, "auth=_____w"),
    "a Basic that is none": lambda key: ({"Authorization": "Basic ü="}, ""),
    "auth before the header": lambda key: ({"Authorization": f"Bearer {key}"}, f"auth={encoded('Bearer x')}"),
    "Gotify's": lambda key: ({"X-Gotify-Key": key}, f"token={key}"),
}
ADDRESSES = [
    *(("POST", "/t"), ("PUT", "/t"), ("POST", "/t/id"), ("PUT", "/t/id"), ("POST", "/"), ("PUT", "/")),
    *(("GET", "/t/publish"), ("GET", "/t/send"), ("GET", "/t/trigger"), ("GET", "/v1/account")),
    ("POST", "/v1/account/token"),
]


@each("form", CREDENTIALS)
def test_a_key_comes_in_each_way_that_ntfys_clients_have(pro, form):
    headers, query = CREDENTIALS[form](pro.key)
    answer = pro.service.client.post(f"/backups?{query}", data="x", headers=headers)
    assert (answer.status_code, answer.headers["X-RateLimit-Limit"]) == (200, "1000")


@each("form", NO_CREDENTIALS)
def test_without_a_key_every_address_is_401_in_ntfys_words(pro, form):
    headers, query = NO_CREDENTIALS[form](pro.key)
    for method, path in ADDRESSES:
        answer = pro.service.client.open(f"{path}?{query}", method=method, headers=headers, data="x")
        assert (answer.status_code, answer.json) == (401, {"code": 40101, "http": 401, "error": "unauthorized"})
    assert pro.listed() == []


def test_an_idempotency_key_works_as_for_send(pro):
    first, second = (publish(pro, headers={"Idempotency-Key": "backup-7"}) for _ in range(2))
    assert first.json == second.json and second.headers["Idempotent-Replayed"] == "true"
    assert publish(pro, body="other", headers={"Idempotency-Key": "backup-7"}).json == ntfy_error(40000)
    assert len(pro.listed()) == 1


# --- the account --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers, username", [(None, "test"), ("owner", "owner")])
def test_the_account_is_as_home_assistant_reads_it(pro, headers, username):
    publish(pro)
    sent = {"Authorization": basic(headers, pro.key)} if headers else None
    answer = pro.request("GET", "/v1/account", headers=sent).json
    assert (answer["username"], answer["role"]) == (username, "user")
    assert answer["stats"]["messages"] == 1 and answer["stats"]["messages_remaining"] == 998
    assert answer["limits"]["messages"] == 1_000 and answer["limits"]["messages_expiry_duration"] == 365 * 86_400
    assert answer["tier"] == {"code": Account.get().plan, "name": "pro"}


def test_a_key_as_the_user_is_not_shown(pro):
    answer = pro.request("GET", "/v1/account", headers={"Authorization": basic(pro.key, "")})
    assert answer.json["username"] == "test" and pro.key not in answer.text


def test_the_token_for_a_password_is_the_key(pro):
    answer = pro.request("POST", "/v1/account/token", json={"label": "Home Assistant"})
    assert answer.json == {
        "token": pro.key,
        "label": "",
        "last_access": NOW // 1_000,
        "last_origin": "",
        "expires": 0,
    }
