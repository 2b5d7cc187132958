"""E-mail: notifications and the service's own mails as messages, through the operator's SMTP server.

Each goes out in the background, never while a request waits. Must not know Flask, the database, or how many mails an
account may get.
"""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from email.header import Header
from email.headerregistry import Address as MailAddress
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime, parseaddr
from html import escape
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from process import clock
from providers.base import Answer, Meaning, Outcome, Provider, Push, Unavailable, one_line, shown
from providers.chat_forms import links
from providers.smtp import SmtpServer, send
from providers.transport import Request
from settings.variables import SettingError, Variable, parts_of
from wire.errors import Refused
from wire.notification import HIGH_PRIORITY
from wire.validation import required_text

MIN_TIME_S = 2.0  # with less left, a mail is not begun
CHECK_TIMEOUT_S = 8.0
MAX_ADDRESS_CHARACTERS = 254
MAX_PLAIN_SUBJECT = 60  # characters that fit into its line
ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
PORTS = {"smtp": 587, "smtps": 465}
TOKEN_BYTES = 16


class Letter(NamedTuple):
    """What a mail says: its text, and the links below it, each with its label."""

    subject: str
    text: str
    links: list[tuple[str, str]]
    stop: str | None = None  # the address that ends such mails
    picture: str | None = None
    is_urgent: bool = False


def _server(value: str) -> SmtpServer:
    parts = parts_of(value, r"smtps?://[!-~]{1,1000}")
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    if parts.path not in ("", "/") or parts.query or parts.fragment or not re.fullmatch(r"[A-Za-z0-9.:-]+", host):
        raise ValueError
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if re.search(r"[\0\r\n]", user + password):  # libcurl takes none of them
        raise ValueError
    return SmtpServer(parts.scheme == "smtps", host, port, user, password)


def _sender(value: str) -> MailAddress:
    name, address = parseaddr(value)
    is_whole = value.strip() in (address, f"<{address}>") or value.endswith(f" <{address}>")
    if not ADDRESS.fullmatch(address) or not is_whole or not value.isprintable():
        raise ValueError
    return MailAddress(name or "Pocketbell", addr_spec=address)


class _Policy(EmailPolicy):
    """Folds headers, but not an address of the web, which it would encode if that is long.

    It would lose or add spaces in a subject of encoded words.
    """

    def fold_binary(self, name: str, value: Any) -> bytes:
        """The header as bytes."""
        if name.startswith("List-"):
            return f"{name}: {value}\r\n".encode("ascii")
        if name == "Subject" and not (value.isascii() and len(value) <= MAX_PLAIN_SUBJECT):
            return f"{name}: {Header(value, 'utf-8', header_name=name).encode(linesep=self.linesep)}\r\n".encode()
        return super().fold_binary(name, value)


POLICY = _Policy(linesep="\r\n", cte_type="7bit")


class Email(Provider[SmtpServer]):
    """Mail addresses, each of which has confirmed that it wants the mails."""

    kind = "email"
    name = "E-mail"
    service = "The mail server"
    hint = "Check SMTP_URL."
    company = "the mail server"
    address_field = "address"
    unreachable = "This server sends no e-mail: SMTP_URL and SMTP_FROM are not set."
    answers = (Meaning("2..", Outcome.DELIVERED),)
    is_channel = is_mailed = True
    needed = "set SMTP_URL and SMTP_FROM to send e-mail."
    variables = (
        Variable("SMTP_URL", None, _server, "smtp://host or smtps://user:password@host:465", secret=True),
        Variable("SMTP_FROM", None, _sender, "a mail address, such as Pocketbell <bell@example.org>"),
    )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> SmtpServer | None:
        """The server and the sender, who is by default the user that signs in there."""
        server: SmtpServer | None = values["SMTP_URL"]
        sender: MailAddress | None = values["SMTP_FROM"]
        if server is None:
            if sender is not None:
                raise SettingError("SMTP_FROM is set, but SMTP_URL is not: set both, or neither.")
            return None
        if sender is None and not ADDRESS.fullmatch(server.user):
            raise SettingError("SMTP_URL is set, but SMTP_FROM is not: set the address that mails come from.")
        return server._replace(sender=sender or MailAddress("Pocketbell", addr_spec=server.user))

    @classmethod
    def name_of(cls, values: Mapping[str, Any]) -> str:
        """The address."""
        return str(values["token"])[:100]

    @classmethod
    def taken_by(cls, token: str) -> str:
        """The mail server of the address."""
        return token.rpartition("@")[2] or cls.company

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """The address, and a new token for the pages that confirm it and end the mails."""
        if not self.is_configured:
            raise Refused(400, self.not_configured(), field="kind")
        address = required_text(registration, "address")
        if len(address) > MAX_ADDRESS_CHARACTERS or not ADDRESS.fullmatch(address):
            raise Refused(400, "address must be a mail address, such as ana@example.org.", field="address")
        local, _, domain = address.rpartition("@")
        return {"token": f"{local}@{domain.lower()}", "auth": secrets.token_urlsafe(TOKEN_BYTES)}

    def request(self, push: Push, left_s: float) -> Request | Answer:
        """Mail it here, and answer."""
        if left_s < MIN_TIME_S:
            raise Unavailable(Answer(Outcome.TRANSIENT, "There was no time left to mail it.", 1, was_tried=False))
        message, origin = push.message, push.origin or self.server.public_url
        letter = Letter(
            message.content.title,
            message.content.body,
            [*links(message, origin), ("Show in Pocketbell", origin + message.path)],
            f"{origin}/e/{push.auth}/stop",
            message.image(origin),
            message.priority >= HIGH_PRIORITY,
        )
        return self.mail(push.token, letter, message.turn_id, left_s)

    def mail(self, to: str, letter: Letter, id_: str, left_s: float) -> Answer:
        """Mail a letter; `id_` is the same at each try."""
        host = urlsplit(self.server.public_url).hostname or "localhost"
        built = _built(letter, self.settings.sender, to, f"<{id_}@{host.strip('[]')}>")
        return send(self.settings, to, built.as_bytes(), left_s)

    def ready(self) -> str:
        """The sentence of `doctor`; `Unavailable` if the server cannot be used."""
        answer = send(self.settings, None, b"", CHECK_TIMEOUT_S)
        if answer.outcome is not Outcome.DELIVERED:
            raise Unavailable(answer)
        return "the mail server takes the connection and the sign-in."


def _built(letter: Letter, sender: MailAddress, to: str, id_: str) -> EmailMessage:
    """The message: plain text, and the same as plain HTML."""
    message = EmailMessage(policy=POLICY)
    message["From"] = sender
    message["To"] = MailAddress(addr_spec=to)
    message["Subject"] = one_line(letter.subject).replace("=?", "= ?")  # or it might be read as an encoded word
    message["Date"] = format_datetime(datetime.fromtimestamp(clock.now_ms() / 1000, UTC))
    message["Message-ID"] = id_
    message["Auto-Submitted"] = "auto-generated"
    if letter.is_urgent:
        message["Importance"] = "high"
    found = letter.links
    if letter.stop:
        message["List-Unsubscribe"] = f"<{letter.stop}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        found = [*found, ("Stop these mails", letter.stop)]
    text, below = shown(letter.text), "\n".join(f"{label}: {url}" for label, url in found)
    message.set_content(f"{text}\n\n{below}\n")
    message.add_alternative(_html(text, found, letter.picture), subtype="html")
    return message


def _html(text: str, found: list[tuple[str, str]], picture: str | None) -> str:
    lines = escape(text).replace("\n", "<br>\n")
    image = f'<p><img src="{escape(picture)}" alt="Picture"></p>\n' if picture else ""
    below = "<br>\n".join(f'<a href="{escape(url)}" dir="auto">{escape(label)}</a>' for label, url in found)
    return f'<!doctype html>\n<html><body>\n<p dir="auto">{lines}</p>\n{image}<p>{below}</p>\n</body></html>\n'
