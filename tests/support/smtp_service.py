"""The stand-in for a mail server: keeps what it takes, and misbehaves as it is told."""

import email
import email.policy
import functools
import socket
import ssl
import threading
import time

from tests.support.listener import stop_listening


@functools.cache
def _parsed(data):
    return email.message_from_bytes(data, policy=email.policy.default)


class SmtpService:
    """Takes every mail. `behaves` names another way:

    `hangs` never answers, `closes` after the greeting, `drips` one byte at a time, and a number such as 451 answers
    the command `at` (RCPT, or AUTH, DATA, MAIL, greeting).
    """

    def __init__(self, context=None, is_tls=False, offers=()):
        self.context, self.is_tls, self.offers = context, is_tls, offers
        self.got, self.connections, self.behaves, self.at = [], 0, "", "RCPT"
        self.passwords, self.was_encrypted = [], []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, user="", host="127.0.0.1"):
        return f"smtp{'s' if self.is_tls else ''}://{user}{host}:{self.port}"

    @property
    def mails(self):
        """The mails as Python's email package reads them."""
        return [_parsed(data) for _, _, data in self.got]

    def close(self):
        stop_listening(self.listening)

    def _accept(self):
        while True:
            try:
                connected, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._served, args=(connected,), daemon=True).start()

    def _served(self, connected):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or a second line waits for 40 ms
        try:
            if self.is_tls:
                connected = self.context.wrap_socket(connected, server_side=True)
            self._talk(connected)
        except OSError:
            pass
        finally:
            connected.close()

    def _say(self, connected, line):
        data = line.encode() + b"\r\n"
        if self.behaves == "drips":
            for byte in data:
                connected.sendall(bytes([byte]))
                time.sleep(0.2)
        else:
            connected.sendall(data)

    def _answer(self, connected, command, usual):
        is_meant = command == self.at and self.behaves.isdigit()
        self._say(connected, f"{self.behaves} Not today" if is_meant else usual)
        return is_meant

    def _talk(self, connected):
        if self.behaves == "hangs":
            while connected.recv(1024):
                pass
        elif not self._answer(connected, "greeting", "220 mail.example.org ESMTP") and self.behaves != "closes":
            _Session(self, connected).run()


class _Session:
    def __init__(self, service, connected):
        self.service, self.connected, self.lines = service, connected, connected.makefile("rb")
        self.sender, self.receivers = "", []

    def run(self):
        while line := self.lines.readline():
            command = line.decode().strip().split(" ")[0].upper()
            getattr(self, f"_{command.lower()}", self._other)(line.decode().strip())

    def _say(self, command, usual):
        return self.service._answer(self.connected, command, usual)

    def _other(self, line):
        self._say("", "250 Fine")

    def _ehlo(self, line):
        for offer in ("mail.example.org", *self.service.offers):
            self.connected.sendall(f"250-{offer}\r\n".encode())
        self._say("EHLO", "250 8BITMIME")

    def _starttls(self, line):
        if self._say("STARTTLS", "220 Go on"):
            return
        self.connected = self.service.context.wrap_socket(self.connected, server_side=True)
        self.lines = self.connected.makefile("rb")

    def _auth(self, line):
        way, *given = line.split()[1:]
        self.service.passwords += given
        if way != "PLAIN":
            self.connected.sendall(b"334 UGFzc3dvcmQ6\r\n")
            self.service.passwords.append(self.lines.readline().decode().strip())
        self._say("AUTH", "235 Fine")

    def _mail(self, line):
        self.sender, self.receivers = line, []
        self._say("MAIL", "250 Fine")

    def _rcpt(self, line):
        if not self._say("RCPT", "250 Fine"):
            self.receivers.append(line.split("<")[1].split(">")[0])

    def _data(self, line):
        if self._say("DATA", "354 Go on"):
            return
        data = b"".join(iter(self.lines.readline, b".\r\n")).replace(b"\r\n..", b"\r\n.")
        self.service.got.append((self.sender, self.receivers, data))
        self.service.was_encrypted.append(isinstance(self.connected, ssl.SSLSocket))
        self._say("", "250 Taken")
