"""Hostile requests: paths, headers and bodies, combined and mutated by a seeded random generator."""

import json
import random
from typing import Any, NamedTuple

from app import ROUTES

FORM = "application/x-www-form-urlencoded"
MEBIBYTE = 1_048_576

GOOD: dict[str, dict[str, Any]] = {
    "/notifications/send": {"title": "t", "body": "b"},
    "/api-keys/generate": {"name": "n"},
    "/api/v1/devices": {"kind": "fcm", "token": "x" * 40, "name": "phone"},
    "/api/webhooks/custom": {
        "projectId": "p",
        "metrics": [{"metricId": "m", "metricName": "M", "value": 1, "unit": "%", "timestamp": 1, "metadata": {}}],
    },
    "/p/": {"title": "t", "message": "m", "alerts": [{"labels": {"alertname": "a.b"}}], "n": 9.90},
    "/app/devices": {"subscription": {"endpoint": "https://x", "keys": {"p256dh": "x", "auth": "y"}}, "token": "t"},
    "/preview": {
        **{"title": "{{ a | upcase }}", "body": "{{ b.0 | date: '%H' }}", "payload": '{"a": 1}'},
        **{"priority": "{{ a }}", "url": "https://x/{{ a }}", "tag": "{{ a | hash }}", "resolved": "a = 1"},
    },
}
FIELDS: dict[str, tuple[str, ...]] = {
    "/app/login": ("email", "password"),
    "/app/setup/": ("email", "password", "time_zone"),
    "/alerts/new": ("preset", "name"),
    "/settings/time-zone": ("time_zone",),
    "/settings/theme": ("theme",),
    "/settings": ("name", "icon", "color", "frequency", "quiet_hours", "repeats_urgent", "keeps_payload"),
    "/devices/token": ("kind", "token", "name"),
    "/devices/seen": ("seen",),
    "/rename": ("name",),
    "/app/keys": ("name",),
    "/quiet": ("begin", "end", "off"),
    "/switch": ("on",),
    "/app/alerts/": ("title", "body", "priority", "url", "tag", "resolved", "payload", "preview", "test"),
}
WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, -0.0, 10**99, 10**120, "", " ", "\u0000", "\ud800", "\ufeff", "\u202e",
    "é" * 1001,
    "x" * 10_001, "😀" * 500, [], {}, [[]], {"a": {"b": []}}, [None] * 101, "{{ a }}", "{{" * 500,
    "{{ a | date: '%' }}",
    "'; DROP TABLE account; --", "<script>alert(1)</script>", "\r\nX: y", "%s%n%x", "../../etc/passwd", "=1+1", "NaN",
    9_223_372_036_854_775_807, -9_223_372_036_854_775_808, 253_402_300_800_000, 0.1, "٣", "sk_test_" + "0" * 48,
)  # fmt: skip
BODIES: tuple[bytes, ...] = (
    b"", b"{", b"}", b"[]", b"null", b"true", b"0", b'""', b"{}", b" " * 300, b"{}{}", b"{} x", b'{"a":1,}',
    b"{'a':1}",
    b"[" * 65, b"[" * 20_000, b'{"a":' * 2_000, b'{"a":' * 63 + b"1" + b"}" * 63, b"[" * 50_000 + b"]" * 50_000,
    b'{"title":NaN,"body":"b"}', b'{"title":"t","body":Infinity}', b'{"value":-Infinity}', b'{"n":1e999}',
    b'{"n":' + b"9" * 101 + b"}", b'{"n":' + b"9" * 5_000 + b"}", b'{"n":1e-999999}', b'{"n":-0}', b'{"n":01}',
    b'{"title":"\\ud800","body":"b"}', b'{"title":"\\udc00\\ud800","body":"b"}', b'{"title":"\\u0000","body":"b"}',
    b'{"title":"\xed\xa0\x80","body":"b"}', b'{"title":"\x00","body":"b"}', b'{"title":"\xff\xfe","body":"b"}',
    b'{"title":"\xc0\x80","body":"b"}', b'{"title":"a\nb","body":"\x7f"}', b'\xef\xbb\xbf{"title":"t","body":"b"}',
    b'{"title":"a","title":"b","body":"c","body":1}', b'{"\\u0000":1}', b'{"":{"":{"":1}}}', b'{"__proto__":{"a":1}}',
    '{"title":"t","body":"b"}'.encode("utf-16"), '{"title":"t","body":"b"}'.encode("utf-16-be"),
    '{"title":"t","body":"b"}'.encode("utf-32"), b"title=t&body=b", b"payload=%7B%22a%22%3A1%7D",
    b"payload=%7B%22a%22",
    b"payload=1&payload=2", b"%00=%00&%ff=%ff&a=%", b"csrf=x&csrf=y", b"&" * 3_000, b"a=1&" * 2_000,
    b'--b\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{"a":1}\r\n--b--\r\n', b"--b\r\n\r\n",
    b"--b" * 900,
    b'--b\r\nContent-Disposition: form-data; name="a"; filename="x"\r\n\r\n' + b"x" * 5_000, b"\x1f\x8b\x08\x00" * 90,
    b'{"title":"' + b"x" * 60_000 + b'","body":"b"}', b'{"metrics":[' + b"{}," * 5_000 + b"{}]}", b"\r\n\r\n",
    b"\x00" * 99,
    b'{"a":"' + b"\\u00e9" * 9_000 + b'"}', b'{"' + b"k" * 9_000 + b'":1}', b'{"a":"unterminated', b'{"a":"\\x"}',
)  # fmt: skip
LARGE: tuple[bytes, ...] = (
    b'{"title":"t","body":"b","x":"' + b"x" * (MEBIBYTE - 31) + b'"}',
    b"[" * MEBIBYTE,
    b'{"a":[' + b"1," * 500_000 + b"1]}",
    b" " * (MEBIBYTE + 1),
    b'{"x":"' + b"\\n" * 500_000 + b'"}',
    b"{" + b",".join(b'"%d":%d' % (n, n) for n in range(60_000)) + b"}",
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW", "get", "P\xd6ST")
METHODS += ("X" * 20, "PROPFIND", "M-SEARCH", "A!#$%&'*+-.^_`|~1")
PIECES = (
    "%00",
    "%ff",
    "%2e%2e/",
    "..;/",
    "//",
    "/./",
    "%25",
    "%",
    "%zz",
    "%0d%0aX:y",
    "\xff",
    "\x80",
    "é",
    "%ed%a0%80",
)
PIECES += (
    ";a=b",
    "%2F",
    "%5C",
    "\\",
    "*",
    "{{a}}",
    "<>",
    "~",
    "a" * 3_000,
    "%F0%9F%98%80",
    "🔔",
    "?",
    "#x",
    "'",
    '"',
)
QUERIES = ("limit=0", "limit=-1", "limit=1e3", "limit=" + "9" * 5_000, "limit=%D9%A3", "limit=", "limit=1&limit=2")
QUERIES += (
    "cursor=",
    "cursor=%00",
    "cursor=WzEsMV0.x",
    "cursor=" + "A" * 4_000,
    "search=%00",
    "search=%ff",
    "search=%25_",
)
QUERIES += (
    "search=" + "%F0%9F%98%80" * 200,
    "search=" + "a" * 201,
    "search='%20OR%201=1",
    "before=1",
    "before=-1",
    "&&&=",
)
QUERIES += ("before=999999999999999999", "before=x", "day=2026-02-30", "day=0000-00-00", "day=9999-12-31", "day=%00")
QUERIES += (
    "status=x",
    "status=failed",
    "alert=x",
    "range=7+d",
    "project=p&metric=m",
    "project=%00&metric=%ff",
    "v=1",
)
QUERIES += (
    "next=//evil",
    "next=/app/../x",
    "next=%00",
    "project=" + "x" * 3_000,
    "day=2026-11-21",
    "%ff=%ff",
    "[]=1",
)
VALUES = (
    "",
    " ",
    "\x01",
    "\xff\xfe",
    "é",
    "x" * 5_000,
    "0",
    "-1",
    "NaN",
    '"',
    "a, b",
    "*",
    ";",
    "=",
    "null",
    "\t",
    "%00",
)
KNOWN: dict[str, tuple[str, ...]] = {
    "Content-Type": ("application/json", FORM, "multipart/form-data; boundary=b", "multipart/form-data",
                     "application/json; charset=utf-16", "text/plain; charset=nonsense", "a/b; q=\xff"),
    "Content-Encoding": ("gzip", "br", "identity", "deflate, gzip"),
    "Idempotency-Key": ("k", "x" * 255, "x" * 256, "\xff", "a b", "same"),
    "Cookie": ("pocketbell=", "pocketbell=x.y", "pocketbell=eyJhIjoxfQ.x", "pocketbell=\xff", "a=b; " * 300,
               "=;=;", "$V=1"),
    "X-Forwarded-For": ("1.2.3.4", "::1", "[::1]:80", "1.2.3.4, 127.0.0.1", "999.1.1.1", "unknown",
               "2001:db8::1%eth0"),
    "X-Forwarded-Proto": ("https", "http", "javascript", "https,http"),
    "X-Forwarded-Host": ("evil.example", "[::1", "a b"),
    "Forwarded": ("for=1.2.3.4;proto=https", 'for="[::1'),
    "Range": ("bytes=0-0", "bytes=-1", "bytes=9-1", "bytes=0-,0-,0-", "lines=1"),
    "If-Range": ('"x"', "Sat, 01 Jan 2000 00:00:00 GMT"),
    "If-None-Match": ('"x"', "*", "W/"),
    "If-Modified-Since": ("Sat, 01 Jan 2000 00:00:00 GMT", "x", "Sat, 99 Jan 99999 00:00:00 GMT"),
    "Expect": ("100-continue", "200-ok", "100-Continue, x"),
    "Origin": ("null", "https://evil.example", "http://x", "http://x:99999"),
    "X-CSRF-Token": ("x", "\xff"),
    "Accept": ("*/*;q=x", "text/html", "application/json;q=\xff"),
    "Accept-Language": ("de", "x" * 900),
    "User-Agent": ("iPhone Safari/1", "\xff", ""),
    "X-HTTP-Method-Override": ("DELETE",),
    "Upgrade": ("websocket", "h2c"),
    "Max-Forwards": ("0",),
    "Date": ("x",),
    "Proxy": ("http://127.0.0.1:1",),
    "Script-Name": ("/x",),
}  # fmt: skip
BREAKING = (  # headers after which the two sides may disagree on where the request ends
    "Content-Length: -1", "Content-Length: 1, 2", "Content-Length: ٣", "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: x",
    "Transfer-Encoding:\x0bchunked",
    "Bad Header", ": empty", "Na\xffme: x", " folded: x", "X: a\x00b", "Host: y", "X: " + "y" * 9_000,
    "Connection: close",
)  # fmt: skip


WEIGHTED = [route for route in ROUTES for _ in range(1 if route.rule.startswith("/app") else 6)]


class Target(NamedTuple):
    """Real credentials and ids for the fuzzer."""

    port: int
    keys: list[str]
    codes: list[str]
    ids: list[str]
    cursors: list[str]
    sessions: list[tuple[str, str]]  # cookie and its CSRF token
    lost: list[tuple[str, str]]  # sessions that may be ended


class Hostile(NamedTuple):
    """A request as bytes; `is_framed` if both sides agree on where it ends."""

    data: bytes
    path: str
    is_head: bool
    is_framed: bool


class Maker:
    """Makes requests from a seed."""

    def __init__(self, seed: int, target: Target) -> None:
        self.random, self.target = random.Random(seed), target

    def request(self) -> Hostile:
        """The next request."""
        chance, pick = self.random.random, self.random.choice
        route = pick(WEIGHTED)
        method = route.method if chance() < 0.85 else pick(METHODS)
        path = self._path(route.rule)
        headers = self._headers(route.rule)
        body = self._body(route.rule) if method not in ("GET", "HEAD") or chance() < 0.1 else b""
        lines = [f"{name}: {value}" for name, value in headers]
        is_framed = chance() > 0.03
        if is_framed and chance() < 0.08 and body:
            lines.append("Transfer-Encoding: chunked")
            body = self._chunked(body)
        elif is_framed:
            lines.append(f"Content-Length: {len(body)}")
        else:
            lines.append(pick(BREAKING))
            lines.append(f"Content-Length: {max(0, len(body) + pick((-5, 0, 5, 500)))}")
        self.random.shuffle(lines)
        text = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines])
        return Hostile(_bytes(text) + b"\r\n\r\n" + body, path, method == "HEAD", is_framed)

    def _path(self, rule: str) -> str:
        chance, pick = self.random.random, self.random.choice
        path = rule.replace("<path:short_code>", pick(self.target.codes))
        while "<" in path:
            begin, end = path.index("<"), path.index(">")
            path = path[:begin] + pick(self.target.ids) + path[end + 1 :]
        if chance() < 0.25:
            at = self.random.randrange(1, len(path) + 1)
            path = path[:at] + pick(PIECES) + path[at + self.random.randrange(3) :]
        path = path.replace(" ", "%20")
        if chance() < 0.4:
            path += "?" + "&".join(pick(QUERIES) for _ in range(self.random.randrange(1, 4)))
            if chance() < 0.3:
                path += "&cursor=" + self._bent(pick(self.target.cursors).encode()).hex()[:400]
            elif chance() < 0.5:
                path += "&cursor=" + pick(self.target.cursors)
        return path

    def _headers(self, rule: str) -> list[tuple[str, str]]:
        chance, pick = self.random.random, self.random.choice
        headers = list[tuple[str, str]]()
        key = pick(self.target.keys)
        if rule.startswith("/api"):
            forms = (
                f"Bearer {key}x",
                "Bearer",
                f"Basic {key}",
                "Bearer \xff",
                f"bearer  {key}",
                "",
                "Bearer " + "a" * 5_000,
            )
            headers.append(("Authorization", f"Bearer {key}" if chance() < 0.9 else pick(forms)))
        elif rule.startswith("/app"):
            ends = rule.endswith(("/logout", "/sign-out-everywhere", "/password"))
            cookie, csrf = pick(self.target.lost if ends else self.target.sessions)
            headers.append(("Cookie", cookie))
            headers.append(("X-CSRF-Token", csrf if chance() < 0.95 else "x"))
        else:
            headers.append(("X-Forwarded-For", f"10.{self.random.randrange(256)}.{self.random.randrange(256)}.1"))
        for _ in range(self.random.randrange(4)):
            name = pick(tuple(KNOWN))
            if "login" in rule and "Forwarded" in name:
                continue  # ten tries per address: hashing is not what we measure
            if name != "Cookie" or not rule.startswith("/app") or chance() < 0.2:
                headers.append((name, pick(KNOWN[name]) if chance() < 0.8 else pick(VALUES)))
        return headers

    def _body(self, rule: str) -> bytes:
        chance, pick = self.random.random, self.random.choice
        if chance() < 0.002:
            return pick(LARGE)
        if chance() < 0.25:
            return pick(BODIES)
        names = next((names for mark, names in FIELDS.items() if mark in rule), None)
        good = next((good for mark, good in GOOD.items() if mark in rule), GOOD["/p/"])
        if names and chance() < 0.7:
            body = "&".join(f"{name}={_quoted(pick(WRONG))}" for name in names if chance() < 0.8).encode()
        else:
            body = json.dumps(self._wronged(good), ensure_ascii=chance() < 0.5).encode("utf-8", "surrogatepass")
        return self._bent(body) if chance() < 0.3 else body

    def _wronged(self, good: Any) -> Any:
        """The same with values of wrong types in random places."""
        chance, pick = self.random.random, self.random.choice
        if chance() < 0.12:
            return pick(WRONG)
        if isinstance(good, dict):
            return {name: self._wronged(value) for name, value in good.items() if chance() < 0.95}
        if isinstance(good, list):
            return [self._wronged(one) for one in good] * pick((1, 1, 1, 2, 101))
        return good

    def _bent(self, body: bytes) -> bytes:
        """The same with bytes changed, inserted, removed or repeated."""
        data = bytearray(body or b"{}")
        for _ in range(self.random.randrange(1, 5)):
            at = self.random.randrange(len(data) + 1)
            change = self.random.randrange(4)
            if change == 0 and at < len(data):
                data[at] = self.random.randrange(256)
            elif change == 1:
                data[at:at] = self.random.randbytes(self.random.randrange(6))
            elif change == 2:
                del data[at : at + self.random.randrange(9)]
            else:
                data[at:at] = data[at : at + 20] * self.random.randrange(4)
        return bytes(data)

    def _chunked(self, body: bytes) -> bytes:
        size = self.random.choice((7, 1_000, 65_536))
        size = max(size, len(body) // 2_000)
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")[:12_000])


def _bytes(text: str) -> bytes:
    return b"".join(c.encode("latin-1") if ord(c) < 256 else c.encode() for c in text)
