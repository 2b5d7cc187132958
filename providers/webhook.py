"""Webhooks: notifications to chats and other services, as requests to an address that the owner gives.

`chat_forms` has what each service takes. The requests of the preset `generic` are signed as Standard Webhooks are
(standardwebhooks.com). They go to public addresses, and to what CHANNEL_HOSTS names. Must not know Flask, the
database, or when a channel gets a notification.
"""

import base64
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from process import clock
from providers.base import Answer, Meaning, Outcome, Provider, Push, Unavailable, parsed
from providers.chat_forms import FORMS, named_in, url_of
from providers.transport import Reply, Request
from providers.web_addresses import HOSTS_IN_WORDS, Address, Hosts, address_of, hosts
from settings.variables import Variable
from wire.errors import Refused
from wire.json_text import json_bytes
from wire.notification import MAX_HOPS, MAX_URL_CHARACTERS
from wire.validation import checked_choice, checked_length, optional_text, required_text

GENERIC = "generic"
SECRET_PREFIX, SECRET_BYTES = "whsec_", 24
REASONS = ("error", "message", "description", "errcode", "errorDescription")  # where services say what is wrong
NOT_TAKEN = "is not permitted: use a public https address. The operator permits others with CHANNEL_HOSTS."


class Webhook(Provider[Hosts]):
    """Chats and services that take a POST; the address is the secret, and public or named by CHANNEL_HOSTS."""

    kind = "webhook"
    name = "Webhook"
    service = "The webhook"
    hint = "Check CHANNEL_HOSTS."
    address_field = "url"
    is_channel = is_slow = True
    answers = (
        Meaning("2..", Outcome.DELIVERED),
        Meaning("410", Outcome.DEAD),
        Meaning("429|3..|5..|1..", Outcome.TRANSIENT),
        Meaning(".*", Outcome.REFUSED),
    )
    variables = (Variable("CHANNEL_HOSTS", None, hosts, HOSTS_IN_WORDS),)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Hosts:
        """The hosts of CHANNEL_HOSTS; without any, public ones are permitted."""
        return values["CHANNEL_HOSTS"] or ()

    @classmethod
    def taken_by(cls, token: str) -> str:
        """The host of the address."""
        address = address_of(token)
        return address.host if address else "another service"

    @classmethod
    def name_of(cls, values: Mapping[str, Any]) -> str:
        """The name of the preset."""
        return FORMS[values["preset"]].name

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """The address, the preset and, for a generic webhook, a new secret."""
        preset = checked_choice(optional_text(registration, "preset") or GENERIC, "preset", FORMS)
        url = checked_length(required_text(registration, "url"), "url", MAX_URL_CHARACTERS)
        address = address_of(url)
        if address is None:
            what = "url must be a web address without spaces, a user name or a fragment (#)."
            raise Refused(400, what, field="url")
        if fault := self._fault(address):
            raise Refused(400, f"url {fault}", field="url")
        return {"token": url, "preset": preset, "auth": new_secret() if preset == GENERIC else None}

    def _fault(self, address: Address) -> str | None:
        """What is wrong with an address, in words that follow its name."""
        if address.origin in self.server.own_origins:
            return "is an address of this service itself: it would send to itself without end."
        if address.is_named_by(self.settings):
            return None
        return NOT_TAKEN if address.scheme != "https" or address.is_private_number else None

    def origin(self, push: Push) -> str:
        """The whole address: the pause of one does not concern others on its host."""
        return push.token

    def request(self, push: Push, left_s: float) -> Request | Answer:
        """The request; what came through three services like this goes to none, and so round in no ring."""
        hops = push.message.content.hops or 0
        if hops >= MAX_HOPS:
            return Answer(
                Outcome.REFUSED, f"It came through {MAX_HOPS} services like this one, so it goes to no webhook."
            )
        address = address_of(push.token)
        fault = self._fault(address) if address else NOT_TAKEN
        if address is None or fault:
            raise Unavailable(Answer(Outcome.CONFIGURATION, f"Its address {fault}"))
        preset, origin = push.preset or GENERIC, push.origin or self.server.public_url
        form, message = FORMS[preset], push.message
        said = form.body(message, origin)
        if preset == "telegram":
            said |= named_in(push.token, "chat_id", "message_thread_id")
        body = said["text"].encode() if form.headers else json_bytes(said)
        kind = "text/plain; charset=utf-8" if form.headers else "application/json"
        headers = {"Content-Type": kind, "User-Agent": "Pocketbell", "X-Pocketbell-Hops": str(hops + 1)}
        headers |= form.headers(message, origin) if form.headers else {}
        if preset == GENERIC:
            headers |= signed(push.auth or "", message.turn_id, clock.now_ms() // 1000, body)
        url = url_of(preset, push.token, message.turn_id)
        return Request(url, headers, body, address.is_named_by(self.settings), method=form.method)

    def reason(self, reply: Reply) -> str:
        """The word with which the service says what is wrong."""
        found = parsed(reply)
        words = next((str(found[name]) for name in REASONS if isinstance(found.get(name), str)), "")
        text = words or reply.body[:100].decode("utf-8", "replace")
        return text.removeprefix("Bad Request: ").strip()

    def ready(self) -> str:
        """The sentence of `doctor`."""
        return "they may lead to every public https address."


def new_secret() -> str:
    """A secret as Standard Webhooks writes it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed(secret: str, id_: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks for a body that is sent at this time, in seconds."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signature = hmac.digest(key, f"{id_}.{at_s}.".encode() + body, "sha256")
    words = f"v1,{base64.b64encode(signature).decode()}"
    return {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": words}
