"""POST /mcp: the Model Context Protocol, through which assistants use the REST API.

Each request carries one JSON-RPC message and is answered with JSON: no session, no stream. Requests of the revision
2026-07-28 name their version themselves; clients of earlier ones begin with `initialize`. Must not know SQL or push.
"""

import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any, NamedTuple

from process import clock
from store.key_limits import FULL, READ, SEND
from web import api_docs, definitions, mutes, rest
from web.context import Payload, current, request
from web.request_body import read_object
from wire import notification
from wire.errors import Refused, rest_body
from wire.json_text import as_json
from wire.strict_json import NotAnObject
from wire.validation import (
    MAX_BODY_CHARACTERS,
    MAX_NAME_CHARACTERS,
    checked_length,
    checked_seconds,
    optional_text,
    required_text,
)

MODERN = "2026-07-28"
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26")
VERSIONS = (MODERN, *HANDSHAKES)
SERVER = {"name": "pocketbell", "title": "Pocketbell", "version": "1"}
INSTRUCTIONS = (
    "Pocketbell sends push notifications to the phones and browsers of its owner. Times are Unix milliseconds."
)
OF_SENDERS = (
    " Use send_notification when the owner asked to be told, or when long work ends, and ask when only the owner can"
    " decide."
)
QUESTION = "Question"  # the title of what an assistant asks
MIN_ANSWERS = 2
MIN_TIMEOUT_S, DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 10, 3_600, 604_800
CACHING = {"ttlMs": 3_600_000, "cacheScope": "private"}
META = "io.modelcontextprotocol/"
METAS = (f"{META}protocolVersion", f"{META}clientCapabilities")
PARAMS = ("name", "arguments", "protocolVersion", "_meta")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
ANSWERED_WITH_200 = (METHOD_NOT_FOUND, INVALID_PARAMS)  # up to 2025-11-25, whose clients do not read a 4xx
ENCODED_HEADER = re.compile(r"=\?base64\?(.*)\?=")


class Wrong(Exception):
    """A message that is refused with a JSON-RPC error; `message` is one sentence."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        self.code = code
        self.body: Payload = {"code": code, "message": message, **({"data": data} if data else {})}
        super().__init__(message)


# --- messages -----------------------------------------------------------------------------------------------


def answer_message() -> Any:
    """POST /mcp."""
    _check_origin()
    current().is_modern = request.headers.get("MCP-Protocol-Version") == MODERN
    try:
        message = _read_message()
        params = _object(message, "params")
        _check_version(message["method"], params)
        if "id" not in message:
            return "", 202, {"Content-Type": "application/json"}
        method = METHODS[current().is_modern].get(message["method"])
        if method is None:
            raise Wrong(METHOD_NOT_FOUND, "There is no such method.")
        result = method(params)
    except Wrong as wrong:
        return _reply(error=wrong.body), _status(wrong.code)
    if current().is_modern:
        result |= {"resultType": "complete", "_meta": {f"{META}serverInfo": SERVER}}
    return _reply(result=result)


def error_body(refused: Refused) -> Any:
    """The body of an error: JSON-RPC's for a message whose handling failed, REST's for a request that is refused."""
    if refused.status < 500:
        return rest_body(refused)
    return _reply(error={"code": INTERNAL_ERROR, "message": refused.message})


def _reply(**outcome: Payload) -> Payload:
    return {"jsonrpc": "2.0", "id": current().message_id, **outcome}


def _status(code: int) -> int:
    if code in ANSWERED_WITH_200 and not current().is_modern:
        return 200
    return 404 if code == METHOD_NOT_FOUND else 400


def _check_origin() -> None:
    """Refuse (403) other origins: only browsers send one, and no page of another site has business here.

    It is never compared with `Host`, which a page behind a rebound DNS name chooses.
    """
    if request.headers.get("Origin") not in (None, current().settings.public_url):
        raise Refused(403)


def _read_message() -> Payload:
    try:
        message = read_object(_known)
    except Refused as refused:
        if refused.status != 400:
            raise
        code = INVALID_REQUEST if isinstance(refused, NotAnObject) else PARSE_ERROR
        raise Wrong(code, refused.message) from None
    message_id = message.get("id", 0)
    if not isinstance(message_id, str | int) or isinstance(message_id, bool):
        raise Wrong(INVALID_REQUEST, "id must be a string or a whole number.")
    current().message_id = message.get("id")
    if message.get("jsonrpc") != "2.0":
        raise Wrong(INVALID_REQUEST, 'jsonrpc must be "2.0".')
    if not isinstance(message.get("method"), str):
        raise Wrong(INVALID_REQUEST, "method must be a string.")
    if "id" not in message and not message["method"].startswith("notifications/"):
        raise Wrong(INVALID_REQUEST, "id is required.")  # without one, the sender could not learn the outcome
    return message


def _known(message: Payload) -> Payload:
    """The message without fields that nobody reads: they may be large, and calling a tool may take a while."""
    message = {name: message[name] for name in ("jsonrpc", "id", "method", "params") if name in message}
    if isinstance(message.get("params"), dict):
        params = message["params"] = {name: message["params"][name] for name in PARAMS if name in message["params"]}
        if isinstance(params.get("_meta"), dict):
            params["_meta"] = {name: params["_meta"][name] for name in METAS if name in params["_meta"]}
    return message


def _object(fields: Payload, name: str) -> Payload:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise Wrong(INVALID_PARAMS, f"{name} must be an object.")
    return value or {}


def _check_version(method: str, params: Payload) -> None:
    """Find out whether the request is a modern one, whose headers must repeat what its body says."""
    meta = _object(params, "_meta")
    header, version = request.headers.get("MCP-Protocol-Version"), meta.get(f"{META}protocolVersion")
    for named in (header, version):
        if named is not None and named not in VERSIONS:
            sentence = f"This protocol version is not spoken here: {', '.join(VERSIONS)} are."
            raise Wrong(UNSUPPORTED_VERSION, sentence, supported=VERSIONS, requested=str(named)[:100])
    current().is_modern = MODERN in (header, version)
    if not current().is_modern or method.startswith("notifications/"):
        return
    for key in METAS:
        if key not in meta:
            raise Wrong(INVALID_PARAMS, f"_meta lacks {key}.")
    said = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if method == "tools/call":
        said["Mcp-Name"] = params.get("name")
    for name, value in said.items():
        if _decoded(request.headers.get(name, "")) != value:
            raise Wrong(HEADER_MISMATCH, f"The header {name} does not say what the body says.")


def _decoded(header: str) -> str | None:
    """A header's text; what is not plain ASCII comes as =?base64?...?=."""
    encoded = ENCODED_HEADER.fullmatch(header)
    try:
        return b64decode(encoded[1], validate=True).decode() if encoded else header
    except ValueError:
        return None


# --- methods ------------------------------------------------------------------------------------------------


def _initialize(params: Payload) -> Payload:
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise Wrong(INVALID_PARAMS, "protocolVersion must be a string.")
    version = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
    return {"protocolVersion": version, **_description(), "serverInfo": SERVER}


def _discover(_: Payload) -> Payload:
    return {"supportedVersions": VERSIONS, **_description(), **CACHING}


def _description() -> Payload:
    more = OF_SENDERS if TOOLS["send_notification"].is_allowed() else ""
    return {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS + more}


def _list_tools(_: Payload) -> Payload:
    return {"tools": [tool.described(name) for name, tool in TOOLS.items() if tool.is_allowed()], **CACHING}


def _call_tool(params: Payload) -> Payload:
    name, arguments = params.get("name"), _object(params, "arguments")
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None or not tool.is_allowed():
        raise Wrong(INVALID_PARAMS, "There is no such tool: tools/list names the tools.")
    try:
        tool.check_names(arguments)
        answer = tool.call(arguments)
    except Refused as refused:  # for the assistant to read, and to do better
        return {"content": [{"type": "text", "text": refused.message}], "isError": True}
    text = {"type": "text", "text": as_json(answer)}
    return {"content": [text], "structuredContent": answer, "isError": False}


SHARED = {"tools/list": _list_tools, "tools/call": _call_tool}
METHODS: dict[bool, dict[str, Callable[[Payload], Payload]]] = {  # by whether the request is modern
    False: {"initialize": _initialize, "ping": lambda _: {}, **SHARED},
    True: {"server/discover": _discover, **SHARED},
}


# --- tools --------------------------------------------------------------------------------------------------


class Tool(NamedTuple):
    """A tool for assistants; `call` takes the arguments and answers like the REST API."""

    description: str
    call: Callable[[Payload], Payload]
    operation: str  # of the REST API, whose answer it gives, and whose title it has unless it has one of its own
    own_arguments: Payload = {}
    required: tuple[str, ...] = ()
    scope: str = READ  # of the keys that may use it, beside those that may do everything; "" for any
    takes_the_same: bool = True  # whether it takes all that the operation takes, beside arguments of its own
    own_title: str = ""

    @property
    def arguments(self) -> Payload:
        """The JSON Schemas of its arguments."""
        return (api_docs.operation(self.operation)["sent"] if self.takes_the_same else {}) | self.own_arguments

    def described(self, name: str) -> Payload:
        """The tool as `tools/list` shows it."""
        only_reads = self.scope in (READ, "")
        operation = api_docs.operation(self.operation)
        title = self.own_title or operation["summary"]
        hints = {"readOnlyHint": only_reads, "destructiveHint": False, "idempotentHint": only_reads}
        return {
            "name": name,
            "title": title,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": self.arguments,
                "required": self.required,
                "additionalProperties": False,
            },
            "outputSchema": operation["good"][0]["content"]["application/json"]["schema"],
            "annotations": {"title": title, **hints, "openWorldHint": self.scope == SEND},
        }

    def is_allowed(self) -> bool:
        """Whether the caller's key may use it."""
        scope = current().caller.scope
        return scope == FULL or self.scope in ("", scope)

    def check_names(self, arguments: Payload) -> None:
        """Refuse (400) arguments that the tool does not take."""
        unknown = next((name for name in arguments if name not in self.arguments), None)
        if unknown is not None:
            taken = ", ".join(self.arguments) or "no arguments"
            raise Refused(400, f"This tool does not take {unknown[:MAX_NAME_CHARACTERS]}: it takes {taken}.")


def _ask(fields: Payload) -> Payload:
    """Send the question that `fields` ask, with a button for each answer."""
    question = checked_length(required_text(fields, "question"), "question", MAX_BODY_CHARACTERS)
    texts = fields.get("answers")
    if not isinstance(texts, list) or not MIN_ANSWERS <= len(texts) <= notification.MAX_ACTIONS:
        raise Refused(400, f"answers must be an array of {MIN_ANSWERS} or {notification.MAX_ACTIONS} strings.")
    for place, label in enumerate(texts):
        name = f"answers[{place}]"
        checked_length(required_text({name: label}, name), name, notification.MAX_LABEL_CHARACTERS)
    sent = fields.get("timeoutS")
    timeout_s = DEFAULT_TIMEOUT_S if sent is None else checked_seconds(sent, "timeoutS", MIN_TIMEOUT_S, MAX_TIMEOUT_S)
    actions = [{"label": label, "answer": label} for label in texts]
    expires_at = clock.now_ms() + timeout_s * 1000
    asked = {"title": QUESTION, "body": question, "actions": actions, "expiresAt": expires_at}
    return rest.deliver(notification.checked_content(asked), None)[0]


TOOLS = {
    "send_notification": Tool(
        "Push a message to the owner's phones and browsers. Returns the notification; status delivered: a device has"
        " it, or it is in the history of an owner without devices; pending: being tried; held: comes at deliverAt;"
        " failed: no device took it.",
        lambda arguments: rest.deliver(
            notification.checked_content(arguments), optional_text(arguments, "idempotencyKey")
        )[0],
        "sendNotification",
        {
            "idempotencyKey": {
                "type": "string",
                "description": "the same again within 24 hours sends nothing and returns the first notification",
                "pattern": "^[!-~]{1,255}$",
            },
        },
        notification.REQUIRED_FIELDS,
        SEND,
    ),
    "ask": Tool(
        "Push a question with a button for each answer to the owner's devices. Returns the notification at once: call"
        " get_notification with its id and wait until it has answer. The owner may not see it: silence is never a"
        " yes.",
        _ask,
        "sendNotification",
        {
            "question": {"type": "string", "minLength": 1, "maxLength": MAX_BODY_CHARACTERS},
            "answers": {
                "type": "array",
                "description": "what the buttons say; phones may show only the first two beside the question",
                "minItems": MIN_ANSWERS,
                "maxItems": notification.MAX_ACTIONS,
                "items": {"type": "string", "minLength": 1, "maxLength": notification.MAX_LABEL_CHARACTERS},
            },
            "timeoutS": {
                "type": "integer",
                "description": "seconds after which it is not delivered any more",
                "minimum": MIN_TIMEOUT_S,
                "maximum": MAX_TIMEOUT_S,
                "default": DEFAULT_TIMEOUT_S,
            },
        },
        ("question", "answers"),
        SEND,
        takes_the_same=False,
        own_title="Ask the owner",
    ),
    "list_notifications": Tool(
        "The history, newest first. Returns a page of notifications and pagination; go on with nextCursor until"
        " isDone: a page of long texts may be short, and with search also empty, before that.",
        rest.find_notifications,
        "listNotifications",
    ),
    "get_notification": Tool(
        "Returns one notification with its status on each device, why a push failed, what replaced it, whether it was"
        " acknowledged, and the owner's answer once there is one. With wait it returns when the owner has answered or"
        " acknowledged it, or after so many seconds: then call it again.",
        lambda arguments: rest.find_notification(required_text(arguments, "id"), arguments)[0],
        "getNotification",
        {"id": {"type": "string", "description": "id of send_notification, ask or list_notifications"}},
        ("id",),
        scope="",
    ),
    "mute": Tool(
        "Let everything, an alert, a key, a heartbeat or a rule not ring for a while, if the owner asked for it. What"
        " comes is held, and arrives as one digest at the end; urgent notifications ring all the same unless"
        " urgentPasses is false. list_alerts, list_api_keys and list_watches have the ids. Returns the mute with the"
        " time until which it holds.",
        mutes.mute,
        "createMute",
        required=("what",),
        scope=FULL,
        own_title="Mute",
    ),
    "list_alerts": Tool(
        "The alerts whose webhook addresses turn events of other programs into notifications. Returns for each its"
        " name, whether it is active, how many notifications it made and when the last one.",
        lambda _: definitions.ALERTS.list_all(),
        "listAlerts",
    ),
    "list_watches": Tool(
        "What is watched. Heartbeats are jobs that are expected to ping: each with its state (new: never pinged; up;"
        " late; down; paused), when it pinged last and, when up or late, until when it is to ping. Rules on metrics"
        " are ok or firing.",
        lambda _: rest.list_watches(),
        "listWatches",
    ),
    "get_stats": Tool(
        "Returns how many notifications there were today, this month and ever, how many alerts there are, the plan"
        " and for how many days it keeps the history.",
        lambda _: rest.get_stats(),
        "getStats",
    ),
    "list_api_keys": Tool(
        "Returns id, name, first characters, creation, last use and revocation of each key, never the whole key.",
        lambda _: rest.list_keys(),
        "listApiKeys",
    ),
}
