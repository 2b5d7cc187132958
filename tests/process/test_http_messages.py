"""Requests and answers: what gunicorn says of them, only cheaper."""

import socket
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.errors import InvalidChunkSize, NoMoreData, ParseException
from gunicorn.http.parser import RequestParser

from process import clock
from process.connections import Connection
from process.http_messages import MAX_HEAD, SHORT_BYTES, Answer, Incoming, client_of, environ_of, has_head
from tests.support.rows import each

SERVER, STRANGER, PROXY = ("10.0.0.1", 8000), ("192.0.2.7", 50_123), ("127.0.0.1", 50_124)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CUT = b"GET / HTTP/1.1\r\nHost"
FIELDS = b"Host: push.example.org\r\n"
UMLAUTS = b"\xc3\xbc?q=\xfc"  # not encoded, which gunicorn refuses
REQUESTS = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + FIELDS + b"\r\n",
    b"\r\nGET / HTTP/1.1\r\n" + FIELDS + b"\r\n",
    b"HEAD //a%20b/%c3%bc?q=%20&r#f HTTP/1.0\r\n" + FIELDS + b"\r\n",
    b"GET /" + UMLAUTS + b" HTTP/1.1\r\n" + FIELDS + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + FIELDS + b"\r\n",
    b"GET http://other.example.org/path?q HTTP/1.1\r\n" + FIELDS + b"\r\n",
    b"POST /p HTTP/1.1\r\n"
    + FIELDS
    + b"Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
    b"POST /p HTTP/1.1\r\n" + FIELDS + b"Content-Length: 0\r\n\r\n",
    b"POST /p HTTP/1.1\r\n"
    + FIELDS
    + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nX-Trailer: t\r\n\r\nrest",
    b"GET / HTTP/1.1\r\n" + FIELDS + b"X-One: a\r\nx-one: b\r\nX-ONE: c\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + FIELDS + b"X-Forwarded-For: 10.9.8.7\r\nX-Forwarded-Proto: https\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + FIELDS + b"SCRIPT_NAME: /evil\r\nScript-Name: /evil\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + FIELDS + b"X-Text: \xfc\xe9 \t\r\nConnection: close\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + FIELDS + b"Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
    b"POST / HTTP/1.0\r\n" + FIELDS + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    b"POST / HTTP/1.1\r\n" + FIELDS + b"Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx",
    b"G" + b"E" * 30 + b"T / HTTP/1.1\r\n\r\n",
    b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"x" * 9_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n",
    b"GET / HTTP/2.0\r\n\r\n",
    b"get / HTTP/1.1\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nx",
    CUT,
    b"",
]


@pytest.fixture
def cfg():
    cfg = Config()
    cfg.set("forwarded_allow_ips", "127.0.0.1")
    cfg.set("forwarder_headers", "")
    return cfg


def as_seen(source, request, environ, expects_continue):
    """All that tells one request from another: the environ, the whole body, and what follows the request."""
    ours = ("wsgi.input", "wsgi.errors", "wsgi.early_hints", "wsgi.file_wrapper", "gunicorn.socket")
    told = {key: value for key, value in environ.items() if key not in ours}
    return told, request.body.read(), request.should_close(), expects_continue, source.read()


def outcome(read):
    try:
        return read()
    except (ParseException, StopIteration, OSError) as error:
        return type(error)


# Who sends, and in pieces of how many bytes. A text does not come in more than a thousand, which would take long.
MOST_PIECES = 1_000
ARRIVALS = [(STRANGER, 1_000_000), (PROXY, 1_000_000), (PROXY, 40), (PROXY, 1)]


@each("text, peer, step", [(text, *way) for text in REQUESTS for way in ARRIVALS if len(text) < MOST_PIECES * way[1]])
def test_a_request_is_parsed_as_gunicorn_does_however_it_is_split(cfg, text, peer, step):
    ours, theirs = socket.socketpair()
    with Connection(ours, peer) as connection, theirs:
        connection.begin(clock.monotonic_s(), 100_000)
        connection.environ = environ_of(cfg, peer, SERVER)
        pieces = [text[at : at + step] for at in range(0, len(text), step)]
        connection.chunk = lambda size_hint=None: pieces.pop(0) if pieces else b""

        def read():
            request = Incoming(cfg, connection, peer)
            return as_seen(connection, request, request.environ(), request.expects_continue)

        encoded = text.replace(UMLAUTS, b"%C3%BC?q=%FC")
        assert outcome(read) == outcome(lambda: by_gunicorn(cfg, encoded, peer, step))


def by_gunicorn(cfg, text, peer, step):
    parser = RequestParser(cfg, [text[at : at + step] for at in range(0, len(text), step)], peer)
    request = next(parser)
    _, environ = wsgi.create(request, SimpleNamespace(send=bytes), peer, SERVER, cfg)
    environ["wsgi.multithread"] = True
    return as_seen(parser.unreader, request, environ, request._expected_100_continue)


@each("text", REQUESTS)
def test_a_head_that_is_waited_for_is_not_whole_and_refused_later_if_it_is_wrong_already(cfg, text):
    def refused(sent):
        return outcome(lambda: next(RequestParser(cfg, [sent], STRANGER)) and None)

    assert has_head(text) or text in (b"", CUT)
    for end in range(min(len(text), 100)):
        if not has_head(text[:end]):
            assert refused(text[:end]) in (NoMoreData, StopIteration, refused(text))
    assert has_head(b"x" * MAX_HEAD) and not has_head(b"x" * (MAX_HEAD - 1))


@each(
    "method, length, waits",
    [
        (b"POST", 1, True),
        (b"PUT", SHORT_BYTES, True),
        (b"POST", SHORT_BYTES + 1, False),
        (b"GET", 1, False),  # which is answered at once, whether the body comes or not
        (b"HEAD", 1, False),
    ],
)
def test_the_application_is_asked_before_a_body_came_only_if_that_is_long_or_matters_to_nobody(
    cfg, method, length, waits
):
    ours, theirs = socket.socketpair()
    with Connection(ours, STRANGER) as connection, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)
        theirs.sendall(method + b" / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length)
        connection.begin(clock.monotonic_s(), 100_000)
        request = Incoming(cfg, connection, STRANGER)
        assert request.has_come() != waits and not request.is_whole
        theirs.sendall(b"x" * length + b"next")
        assert request.has_come() and request.is_whole == waits
        assert request.body.read() == b"x" * length
        connection.begin(clock.monotonic_s(), 100_000)
        assert connection.read() == b"next"


LONG = b"%x\r\n" % SHORT_BYTES + b"x" * SHORT_BYTES + b"\r\n0\r\n\r\n"


@each("method", [b"POST", b"GET"])
@each(
    "chunks, comes_with, body",
    [
        (b"0\r\n\r\n", 5, b""),
        (b"2\r\nab\r\n009;x=y\r\n\r\n0\r\n\r\n c\r\n0\r\n\r\n", 32, b"ab\r\n0\r\n\r\n c"),
        (b"1\r\na\r\n0\r\nX-Trailer: t\r\n\r\n", 25, b"a"),
        (LONG, SHORT_BYTES, LONG[7:-7]),
        (b"x\r\nab\r\n0\r\n\r\n", 3, InvalidChunkSize),
        (b"-3\r\nab\r\n0\r\n\r\n", 4, InvalidChunkSize),
    ],
)
def test_the_application_is_asked_when_the_last_chunk_has_come_or_many_bytes_or_a_wrong_one(
    cfg, method, chunks, comes_with, body
):
    for step in (1, len(chunks)) if len(chunks) < 100 else (7_000,):
        ours, theirs = socket.socketpair()
        with Connection(ours, STRANGER) as connection, theirs:
            theirs.sendall(method + b" / HTTP/1.1\r\nHost: x\r\n" + CHUNKED)
            connection.begin(clock.monotonic_s(), 100_000)
            request = Incoming(cfg, connection, STRANGER)
            for at in range(0, len(chunks), step):
                assert request.has_come() == (at >= comes_with)
                theirs.sendall(chunks[at : at + step])
            assert request.has_come() and not request.is_whole
            assert outcome(request.body.read) == body


@each("head", [b"Content-Length: 2\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n2\r\n"])
def test_a_body_that_breaks_off_is_the_applications_to_find(cfg, head):
    ours, theirs = socket.socketpair()
    with Connection(ours, STRANGER) as connection, theirs:
        theirs.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"a")
        theirs.shutdown(socket.SHUT_WR)
        connection.begin(clock.monotonic_s(), 100_000)
        request = Incoming(cfg, connection, STRANGER)
        assert request.has_come() and not request.is_whole
        assert outcome(lambda: request.body.read()) in (b"a", NoMoreData)


# --- answers ------------------------------------------------------------------------------------------------

ASKED = [b"GET / HTTP/1.1", b"HEAD / HTTP/1.1", b"GET / HTTP/1.0", b"GET / HTTP/1.0\r\nConnection: keep-alive"]
LENGTH = ("Content-Length", "4")
HEADERS = [[], [("Content-Type", "text/plain"), LENGTH], [("X-One", "a"), ("X-One", "b")], [("Location", "/\xfc")]]


@each("headers", HEADERS)
@each("status", ["200 OK", "404 NOT FOUND", "204 NO CONTENT", "304 NOT MODIFIED", "500"])
@each("asked", ASKED)
def test_an_answer_is_what_gunicorn_would_write(cfg, moved_clock, monkeypatch, asked, status, headers):
    monkeypatch.setattr("gunicorn.util.http_date", lambda unix_s=0: "today")
    for parts in ([], [b"abcd"], [b"ab", b"", b"cd"], [b"abcdef"]):
        moved_clock.advance(1)
        request = request_of(cfg, asked)
        written = Written()
        answer = Answer(written, request, not request.should_close())
        answer.start(status, headers)
        answer.body = parts
        for _ in answer.write_parts():
            pass
        theirs = wsgi.Response(request, by := Written(), cfg)
        theirs.start_response(status, headers)
        for part in parts:
            theirs.write(part)
        theirs.close()
        assert written.data == by.data and answer.is_keep_alive != theirs.should_close()
        assert (answer.status, answer.sent) == (theirs.status_code, theirs.sent)
        bodiless = asked.startswith(b"HEAD") or status[:3] in ("204", "304")
        assert answer.is_whole == (bodiless or parts != [] or LENGTH not in headers)


class Written:
    """What was written, in place of a connection."""

    is_over, unsent = False, b""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data

    sendall = write


def request_of(cfg, asked):
    request = next(RequestParser(cfg, [asked + b"\r\nHost: x\r\n\r\n"], STRANGER))
    request.is_read = True
    return request


@each("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\r\n\r\n<script>"])
def test_no_value_adds_a_line_to_the_head_of_an_answer(cfg, value):
    answer = Answer(Written(), request_of(cfg, b"GET / HTTP/1.1"), True)
    with pytest.raises(ValueError):
        answer.start("200 OK", [("Location", value)])
    with pytest.raises(ValueError):
        answer.start("204 NO CONTENT", [LENGTH, ("Location", value)])  # which is sent without a length


def test_what_failed_before_its_answer_began_may_be_answered_otherwise_and_not_after(cfg):
    answer = Answer(written := Written(), request_of(cfg, b"GET / HTTP/1.1"), True)
    answer.start("200 OK", [LENGTH])
    answer.start("500 INTERNAL SERVER ERROR", [("Content-Length", "1")], (ValueError, ValueError("x"), None))
    answer.write(b"f")
    assert written.data.startswith(b"HTTP/1.1 500 ") and written.data.endswith(b"\r\n\r\nf")
    with pytest.raises(KeyError):
        answer.start("200 OK", [], (KeyError, KeyError("y"), None))


@each(
    "path, name, value, client",
    [
        ("/p/CODE", "AUTHORIZATION", "Bearer k", "Bearer k"),
        ("/p/CODE", "COOKIE", "", "/p/CODE"),
        ("/ping/KEY/backup/start", "HOST", "h", "/ping/KEY"),
        ("*", "HOST", "h", "*"),
        ("", "HOST", "h", "/"),  # `GET http://h`: without a client it would wait for its turn again and again
    ],
)
def test_a_client_is_known_by_its_credential_in_the_head_or_in_the_path(path, name, value, client):
    assert client_of(SimpleNamespace(path=path, headers=[(name, value)])) == client
