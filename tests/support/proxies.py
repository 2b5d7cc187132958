"""nginx and Caddy with the files of deploy/, on ports of their own in front of a service."""

import http.client
import os
import shutil
import socket
import ssl
import subprocess

import pytest

from tests.support import certificates
from tests.support.server import PATIENCE_S, ROOT, free_port

NAME = "push.example.org"  # in the files
PROXIES = ("nginx", "caddy")
CLIENT = "127.0.0.2"  # the address of those that ask it
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # nginx is there


def program(name):
    """The program's path, or None."""
    return shutil.which(name, path=PATH)


def installed(name):
    """The program's path; without it the test is skipped."""
    return program(name) or pytest.skip(f"{name} is not installed")


def ours(name, *changes):
    """The text of a file in deploy/ with these replacements, each of which must apply."""
    text = (ROOT / "deploy" / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


class Proxy:
    """nginx or Caddy with our file, changed so and for that domain name, on its own ports in front of a service."""

    def __init__(self, kind, directory, upstream, *changes, name=NAME):
        self.kind, self.directory, self.changes, self.name = kind, directory, changes, name
        self.http_port, self.port = free_port(), free_port()
        self.upstream = f"127.0.0.1:{upstream}"
        command = getattr(self, f"_{kind}")()
        environ = {"PATH": PATH, "HOME": str(directory), "XDG_DATA_HOME": str(directory / "data")}
        self.log = directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)

    def _nginx(self):
        made, site = certificates.make(self.directory), self.directory / "pocketbell.conf"
        letsencrypt = f"/etc/letsencrypt/live/{NAME}"
        site.write_text(
            ours(
                "nginx.conf",
                *self.changes,
                ("\tlisten [::]:80;\n", ""),
                ("\tlisten [::]:443 ssl http2;\n", ""),
                ("listen 80;", f"listen 127.0.0.1:{self.http_port};"),
                ("listen 443 ", f"listen 127.0.0.1:{self.port} "),
                (f"{letsencrypt}/fullchain.pem", made.file),
                (f"{letsencrypt}/privkey.pem", made.file),
                ("/var/log/nginx", str(self.directory)),
                ("127.0.0.1:8000", self.upstream),
                (NAME, self.name),
            )
        )
        user = "user root;" if os.geteuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f" {one}_temp_path {self.directory}/{one};" for one in kinds)
        main = self.directory / "nginx.conf"
        main.write_text(
            f"{user} daemon off; pid {self.directory}/pid; error_log {self.directory}/main.log; "
            f"events {{ worker_connections 1024; }}\nhttp {{ access_log off; {places} include {site}; }}\n"
        )
        return [installed("nginx"), "-c", main, "-e", self.directory / "main.log"]

    def _caddy(self):
        alone = (
            f"admin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port {self.http_port}"
        )
        file = self.directory / "Caddyfile"
        file.write_text(
            ours(
                "Caddyfile",
                *self.changes,
                ("{\n\tgrace", f"{{\n\t{alone}\n\thttps_port {self.port}\n\tgrace"),
                ("127.0.0.1:8000", self.upstream),
                (NAME, self.name),
            )
        )
        return [installed("caddy"), "run", "--config", file, "--adapter", "caddyfile"]

    def context(self, protocols=("http/1.1",)):
        """The TLS of its clients, who do not look whose certificate it has."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(protocols)
        return context

    def connect(self, sender=CLIENT, protocols=("http/1.1",)):
        """A TLS connection from that address."""
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S, (sender, 0))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        try:
            return self.context(protocols).wrap_socket(plain, server_hostname=self.name)
        except OSError:
            plain.close()
            raise

    def request(self, method, path, body=None, headers=None, sender=CLIENT, connection=None):
        """One request, on a connection of its own unless one is given; the answer has `status`, `headers`, `text`."""
        used = connection or self.connection(sender)
        try:
            used.request(method, path, body, headers or {})
            answer = used.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            if not connection:
                used.close()

    def connection(self, sender=CLIENT):
        """An HTTP connection for several requests."""
        kept = http.client.HTTPConnection(self.name, timeout=PATIENCE_S)
        kept.sock = self.connect(sender)
        return kept

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.request("GET", "/healthz").status == 200
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)

    @property
    def logs(self):
        """All that it wrote."""
        files = [path for path in self.directory.iterdir() if "log" in path.name]
        return "".join(path.read_text(errors="replace") for path in files)
