"""One mail to one address through the operator's SMTP server (libcurl), within a time, and what its answers mean.

The password goes over an encrypted connection alone, and a mail over one if that is offered, to a server whose
certificate is trusted, unless that is on this machine. Must not know what is mailed.
"""

import re
from collections import deque
from email.headerregistry import Address
from io import BytesIO
from typing import Any, NamedTuple

from providers.base import Answer, Outcome
from providers.transport import FAILURES, ca_file

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
MAX_KEPT_LINES = 100  # of a server's answers
SIGN_IN, LAST_WAY = "AUTH=PLAIN;AUTH=LOGIN", "AUTH=CRAM-MD5"  # the last one fails where passwords are kept as hashes
OFFER = re.compile(rb"250[ -]AUTH\b", re.I)  # of a sign-in, in the answer to EHLO
ENCRYPTION = re.compile(rb"250[ -]STARTTLS\b", re.I)  # the offer of it there
WORDS = re.compile(r"[0-9. -]*(?P<words>[A-Za-z][A-Za-z ,'-]{2,80})")
COMMAND_REFUSED, NOT_ENCRYPTED, NOT_SIGNED_IN = 55, 64, 67  # libcurl's codes; 55 is also that of a lost connection
REFUSED = (8, 9, COMMAND_REFUSED)  # of these, the server's answer says why
CONFIGURATION = {
    60: "The mail server could not be reached: its certificate is not trusted.",
    NOT_ENCRYPTED: "The mail server does not encrypt the connection (STARTTLS), so nothing was sent. Check SMTP_URL.",
}


class SmtpServer(NamedTuple):
    """The operator's server, and the sender as mails show it."""

    is_tls: bool  # from the first byte
    host: str
    port: int
    user: str
    password: str
    sender: Address = Address()
    may_be_clear: bool = False  # because it offers no encryption, and there is no password


def send(server: SmtpServer, to: str | None, message: bytes, timeout_s: float, sign_in: str = SIGN_IN) -> Answer:
    """Hand a mail to the server; without `to`, connect, encrypt and sign in, and hand over nothing."""
    import pycurl

    said = deque[bytes](maxlen=MAX_KEPT_LINES)
    options = {**_connection(server, timeout_s), pycurl.HEADERFUNCTION: said.append, pycurl.LOGIN_OPTIONS: sign_in}
    if to is None:
        options |= {pycurl.CUSTOMREQUEST: "NOOP", pycurl.NOBODY: 1}
    else:
        options |= {pycurl.MAIL_FROM: server.sender.addr_spec, pycurl.MAIL_RCPT: [to], pycurl.UPLOAD: 1}
        options |= {pycurl.INFILESIZE: len(message), pycurl.READFUNCTION: BytesIO(message).read}
    handle, code = pycurl.Curl(), 0
    for option, value in options.items():
        handle.setopt(option, value)
    try:
        handle.perform()
    except pycurl.error as error:
        code = error.args[0]
    status, took_s = handle.getinfo(pycurl.RESPONSE_CODE), handle.getinfo(pycurl.TOTAL_TIME)
    handle.close()
    if code == NOT_SIGNED_IN and status < 400 and sign_in == SIGN_IN:
        return send(server, to, message, timeout_s - took_s, LAST_WAY)
    if code == NOT_ENCRYPTED and not server.user and not any(map(ENCRYPTION.match, said)):
        return send(server._replace(may_be_clear=True), to, message, timeout_s - took_s)
    is_signed_in = not server.user or any(map(OFFER.match, said))  # without an offer, libcurl goes on
    if not is_signed_in and code == (0 if to is None else COMMAND_REFUSED):
        return _meaning(NOT_SIGNED_IN, 0, b"")
    return _meaning(code, status, said[-1] if said else b"")


def _connection(server: SmtpServer, timeout_s: float) -> dict[int, Any]:
    """The options for a connection that is encrypted, if the server offers it, and signed in, if there is a user."""
    import pycurl

    is_here = server.host in THIS_MACHINE  # its certificate may be self-signed, as that of Debian's Postfix is
    host = f"[{server.host}]" if ":" in server.host else server.host
    options = {
        pycurl.URL: f"{'smtps' if server.is_tls else 'smtp'}://{host}:{server.port}/{server.sender.domain}",
        pycurl.USE_SSL: pycurl.USESSL_TRY if is_here or server.may_be_clear else pycurl.USESSL_ALL,
        pycurl.CAINFO: ca_file(),
        pycurl.SSL_VERIFYPEER: not is_here,
        pycurl.SSL_VERIFYHOST: 0 if is_here else 2,
        pycurl.TIMEOUT_MS: max(1, int(timeout_s * 1000)),
        pycurl.NOSIGNAL: 1,
        pycurl.PROXY: "",
        pycurl.SASL_IR: 1,
    }
    if server.user:
        options |= {pycurl.USERNAME: server.user.encode(), pycurl.PASSWORD: server.password.encode()}
    return options


def _meaning(code: int, status: int, line: bytes) -> Answer:
    """The meaning of libcurl's code, and of the server's last answer: its status, and its last line."""
    if code == 0:
        return Answer(Outcome.DELIVERED)
    if code in CONFIGURATION:
        return Answer(Outcome.CONFIGURATION, CONFIGURATION[code])
    if code == NOT_SIGNED_IN:
        did = f"refused the name or password ({status})" if status >= 400 else "does not accept passwords"
        return Answer(Outcome.CONFIGURATION, f"The mail server {did}. Check SMTP_URL.")
    if code not in REFUSED or (code == COMMAND_REFUSED and status < 400):
        failure = FAILURES.get(code, f"the connection failed (curl error {code})")
        if line and not line[:3].isdigit():
            failure = "it does not speak SMTP"
        return Answer(Outcome.TRANSIENT, f"The mail server could not be reached: {failure}.")
    match = WORDS.fullmatch(line.decode("utf-8", "replace").strip())
    reason = f" ({match['words'].strip()})" if match else ""
    outcome = Outcome.REFUSED if 500 <= status < 600 else Outcome.TRANSIENT
    return Answer(outcome, f"The mail server answered {status}{reason}.")
