"""One mail to one address through the operator's SMTP server, within a time, and what its answers mean.

The password goes over an encrypted connection alone, unless the server is on this machine. Must not know what is
mailed.
"""

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Timer
from typing import Any, NamedTuple

from providers.base import Answer, Outcome, Unavailable
from providers.transport import ca_file

CONNECT_TIMEOUT_S = 5.0  # of each address that the server's name has
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
WORDS = re.compile(r"[0-9. -]*(?P<words>[A-Za-z][A-Za-z ,'-]{2,80})")
NOT_OURS = "The mail server could not be reached: "
UNENCRYPTED = "The mail server offers no encryption (STARTTLS), so the password was not sent. Check SMTP_URL."


class SmtpServer(NamedTuple):
    """The operator's server, and the address that mails come from."""

    is_tls: bool  # from the first byte
    host: str
    port: int
    user: str
    password: str
    sender: str  # its address alone


class _Bounded(smtplib.SMTP):
    """A connection that is cut when its time is over, however slowly the server answers."""

    cut: Timer | None = None
    is_cut = False

    def _get_socket(self, host: str, port: int, timeout: float) -> Any:
        connected = socket.create_connection((host, port), min(CONNECT_TIMEOUT_S, timeout))
        connected.settimeout(timeout)
        self.cut = Timer(timeout, self._shut, (connected,))
        self.cut.daemon = True
        self.cut.start()
        return connected

    def _shut(self, connected: socket.socket) -> None:
        self.is_cut = True
        with suppress(OSError):
            (self.sock or connected).shutdown(socket.SHUT_RDWR)  # STARTTLS puts another socket in its place


class _BoundedTls(smtplib.SMTP_SSL, _Bounded):
    """The same, encrypted from the first byte."""


def send(server: SmtpServer, to: str, message: bytes, timeout_s: float) -> Answer:
    """Hand a mail to the server."""
    return _answer(server, timeout_s, lambda smtp: smtp.sendmail(server.sender, [to], message))


def check(server: SmtpServer, timeout_s: float) -> Answer:
    """Connect, encrypt and sign in, and hand over nothing."""
    return _answer(server, timeout_s, lambda smtp: smtp.noop())


def _answer(server: SmtpServer, timeout_s: float, use: Any) -> Answer:
    try:
        with _signed_in(server, timeout_s) as smtp:
            use(smtp)
        return Answer(Outcome.DELIVERED)
    except Unavailable as unavailable:
        return unavailable.answer
    except smtplib.SMTPRecipientsRefused as refused:
        return _meaning(*next(iter(refused.recipients.values())))
    except smtplib.SMTPAuthenticationError as refused:
        answered = f"The mail server refused name or password ({refused.smtp_code}). Check SMTP_URL."
        return Answer(Outcome.CONFIGURATION, answered)
    except smtplib.SMTPResponseException as refused:
        return _meaning(refused.smtp_code, refused.smtp_error)
    except smtplib.SMTPNotSupportedError:
        return Answer(Outcome.CONFIGURATION, "The mail server takes no password. Check SMTP_URL.")
    except ssl.SSLCertVerificationError:
        return Answer(Outcome.CONFIGURATION, f"{NOT_OURS}its certificate is not trusted.")
    except (smtplib.SMTPException, OSError) as error:
        return Answer(Outcome.TRANSIENT, NOT_OURS + _fault(error))


def _meaning(code: int, said: Any) -> Answer:
    """The answer of a server that refused a mail, with its reason if that is a few words."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    match = WORDS.fullmatch(text.strip())
    reason = f" ({match['words'].strip()})" if match else ""
    outcome = Outcome.REFUSED if 500 <= code < 600 else Outcome.TRANSIENT
    return Answer(outcome, f"The mail server answered {code if code > 0 else 'nonsense'}{reason}.")


def _fault(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "its name could not be resolved."
    if isinstance(error, TimeoutError):
        return "it did not answer in time."
    if isinstance(error, ssl.SSLError):
        return "no secure connection could be made."
    if isinstance(error, (ConnectionRefusedError, smtplib.SMTPConnectError)):
        return "no connection could be made."
    return "it closed the connection."


@contextmanager
def _signed_in(server: SmtpServer, timeout_s: float) -> Iterator[smtplib.SMTP]:
    """A connection that is encrypted, if the server offers it, and signed in, if there is a user."""
    trust = partial(ssl.create_default_context, cafile=ca_file())  # to read the file takes longer than all else
    # Without a name to greet with, smtplib asks the DNS for this machine's, which may take long.
    name: dict[str, Any] = {"local_hostname": server.sender.rpartition("@")[2], "timeout": timeout_s}
    smtp = _BoundedTls(context=trust(), **name) if server.is_tls else _Bounded(**name)
    try:
        smtp._host = server.host  # type: ignore[attr-defined]  # whose certificate is checked: `connect` does not say
        code, said = smtp.connect(server.host, server.port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, said) if code < 400 else smtplib.SMTPResponseException(code, said)
        smtp.ehlo_or_helo_if_needed()
        if not server.is_tls and smtp.has_extn("starttls"):
            smtp.starttls(context=trust())
            smtp.ehlo_or_helo_if_needed()
        elif not server.is_tls and server.user and server.host not in THIS_MACHINE:
            raise Unavailable(Answer(Outcome.CONFIGURATION, UNENCRYPTED))
        if server.user:
            smtp.login(server.user, server.password)
        yield smtp
        with suppress(smtplib.SMTPException, OSError):
            smtp.quit()
    except (smtplib.SMTPException, OSError) as error:
        if smtp.is_cut or isinstance(error.__context__, TimeoutError):
            raise TimeoutError from error
        raise
    finally:
        if smtp.cut:
            smtp.cut.cancel()
        smtp.close()
