"""One mail to one address through the operator's SMTP server, within a time, and what its answers mean.

The password goes over an encrypted connection alone, to a server whose certificate is trusted, unless that is on this
machine. Must not know what is mailed.
"""

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.headerregistry import Address
from threading import Timer
from typing import Any, BinaryIO, NamedTuple

from providers.base import Answer, Outcome, Unavailable
from providers.transport import ca_file

CONNECT_TIMEOUT_S = 5.0  # of each address that the server's name has
MAX_ANSWERS_BYTES = 65_536  # of a server, to one mail
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
WORDS = re.compile(r"[0-9. -]*(?P<words>[A-Za-z][A-Za-z ,'-]{2,80})")
NOT_OURS = "The mail server could not be reached: "
FAULTS = (  # how they complete that sentence: the first that fits
    (socket.gaierror, "its name could not be resolved."),
    (TimeoutError, "it did not answer in time."),
    (ssl.SSLError, "no secure connection could be made."),
    ((ConnectionRefusedError, smtplib.SMTPConnectError), "no connection could be made."),
    (Exception, "it closed the connection."),
)
UNENCRYPTED = "The mail server offers no encryption (STARTTLS), so the password was not sent. Check SMTP_URL."


class SmtpServer(NamedTuple):
    """The operator's server, and the sender as mails show it."""

    is_tls: bool  # from the first byte
    host: str
    port: int
    user: str
    password: str
    sender: Address = Address()


class _Utf8(str):
    """A name or password: smtplib would encode it as ASCII, mail servers read UTF-8 (RFC 4616)."""

    def encode(self, *_: Any) -> bytes:
        """As UTF-8."""
        return super().encode()


class _Answers:
    """What a server answers; it ends after so many bytes, as smtplib keeps all lines of an answer."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.left = file, MAX_ANSWERS_BYTES
        self.close = file.close

    def readline(self, size: int) -> bytes:
        """The next line."""
        self.left -= len(line := self.file.readline(size))
        return line if self.left >= 0 else b""


class _Bounded(smtplib.SMTP):
    """A connection that is cut when its time is over, however slowly the server answers."""

    sock: Any  # a socket: smtplib says that it may be None
    is_cut = False

    def __init__(self, server: SmtpServer, timeout_s: float) -> None:
        # Without a name to greet with, smtplib asks the DNS for this machine's, which may take long.
        super().__init__(local_hostname=server.sender.domain)
        self.sock = socket.create_connection((server.host, server.port), min(CONNECT_TIMEOUT_S, timeout_s))
        self.sock.settimeout(timeout_s)
        self.cut = Timer(timeout_s, self._shut)
        self.cut.daemon = True
        self.cut.start()

    def encrypt(self, host: str) -> None:
        """Use TLS from now on, and believe nothing that the server said before (RFC 3207, section 4.2)."""
        trust = ssl.create_default_context(cafile=ca_file())
        if host in THIS_MACHINE:  # its certificate may be self-signed, as that of Debian's Postfix is
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self.sock = trust.wrap_socket(self.sock, server_hostname=host, do_handshake_on_connect=False)
        self.file = self.helo_resp = self.ehlo_resp = None
        self.esmtp_features, self.does_esmtp = {}, False
        self.sock.do_handshake()

    def getreply(self) -> tuple[int, bytes]:
        """The next answer."""
        self.file = self.file or _Answers(self.sock.makefile("rb"))
        return super().getreply()

    def auth_plain(self, challenge: Any = None) -> str:
        """Name and password in one."""
        return _Utf8(super().auth_plain(challenge))

    def _shut(self) -> None:
        self.is_cut = True
        if connection := self.sock:  # None once smtplib has closed it
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def send(server: SmtpServer, to: str, message: bytes, timeout_s: float) -> Answer:
    """Hand a mail to the server."""
    return _answer(server, timeout_s, lambda smtp: smtp.sendmail(server.sender.addr_spec, [to], message))


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
        answered = f"The mail server refused the name or password ({refused.smtp_code}). Check SMTP_URL."
        return Answer(Outcome.CONFIGURATION, answered)
    except smtplib.SMTPResponseException as refused:
        return _meaning(refused.smtp_code, refused.smtp_error)
    except smtplib.SMTPNotSupportedError:
        return Answer(Outcome.CONFIGURATION, "The mail server does not accept passwords. Check SMTP_URL.")
    except ssl.SSLCertVerificationError:
        return Answer(Outcome.CONFIGURATION, f"{NOT_OURS}its certificate is not trusted.")
    except (smtplib.SMTPException, OSError) as error:
        return Answer(Outcome.TRANSIENT, NOT_OURS + next(words for kind, words in FAULTS if isinstance(error, kind)))


def _meaning(code: int, said: Any) -> Answer:
    """The answer of a server that refused a mail, with its reason if that is a few words."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    match = WORDS.fullmatch(text.strip())
    reason = f" ({match['words'].strip()})" if match else ""
    outcome = Outcome.REFUSED if 500 <= code < 600 else Outcome.TRANSIENT
    return Answer(outcome, f"The mail server answered {code if code > 0 else 'nonsense'}{reason}.")


@contextmanager
def _signed_in(server: SmtpServer, timeout_s: float) -> Iterator[smtplib.SMTP]:
    """A connection that is encrypted, if the server offers it, and signed in, if there is a user."""
    smtp = _Bounded(server, timeout_s)
    try:
        if server.is_tls:
            smtp.encrypt(server.host)
        code, said = smtp.getreply()
        if code != 220:
            raise smtplib.SMTPConnectError(code, said) if code < 400 else smtplib.SMTPResponseException(code, said)
        smtp.ehlo_or_helo_if_needed()
        if not server.is_tls and smtp.has_extn("starttls"):
            code, said = smtp.docmd("STARTTLS")
            if code != 220:
                raise smtplib.SMTPResponseException(code, said)
            smtp.encrypt(server.host)
            smtp.ehlo_or_helo_if_needed()
        elif not server.is_tls and server.user and server.host not in THIS_MACHINE:
            raise Unavailable(Answer(Outcome.CONFIGURATION, UNENCRYPTED))
        if server.user:
            smtp.login(_Utf8(server.user), _Utf8(server.password))
        yield smtp
        with suppress(smtplib.SMTPException, OSError):
            smtp.quit()
    except (smtplib.SMTPException, OSError) as error:
        if smtp.is_cut or isinstance(error.__context__, TimeoutError):
            raise TimeoutError from error
        raise
    finally:
        smtp.cut.cancel()
        smtp.close()
