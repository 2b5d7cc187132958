"""The address of a heartbeat."""

from store.database import run
from tests.support.heartbeats import Pinged, told
from tests.support.rows import each
from web import heartbeats

UNKNOWN = "/ping/00000000-0000-4000-8000-000000000000"


def kept(column="body"):
    return [row[0] for row in run(f"SELECT {column} FROM ping ORDER BY seq").fetchall()]


@each("method", ["GET", "HEAD", "POST"])
@each("signal", ["", "/", "/start", "/fail", "/log", "/0", "/255"])
def test_a_ping_is_answered_with_ok_as_text(beat, method, signal):
    answer = beat.ping(signal, method)
    assert answer.text == ("" if method == "HEAD" else "OK")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"


@each("path", ["/256", "/-1", "/00001", "/LOG", "/START", "/fail/", "/1/2", "/%31%00", "/²"])
def test_other_signals_are_not_found_and_change_nothing(service, beat, path):
    assert service.client.post(beat.path + path).status_code == 404
    assert (beat.state, kept()) == ("new", [])


def test_the_uuid_may_be_in_capital_letters(service, beat):
    assert service.client.get("/ping/" + beat.path.removeprefix("/ping/").upper()).status_code == 200


@each("path", [UNKNOWN, f"{UNKNOWN}/fail", "/ping/x", "/ping/", "/ping", f"{UNKNOWN}/fail/x", "/ping/" + "9" * 5_000])
def test_an_unknown_address_is_not_found(service, path):
    answer = service.client.post(path)
    assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


def test_unknown_addresses_allow_60_tries_a_minute_as_short_codes_do(service, beat, moved_clock, few):
    statuses = [service.client.get(UNKNOWN).status_code for _ in range(3)]
    statuses += [service.client.post("/p/0000000").status_code for _ in range(3)]
    assert statuses == [404] * 6
    assert [service.client.get(path).status_code for path in (UNKNOWN, "/ping/x", "/ping")] == [429] * 3
    assert beat.ping().status_code == 200
    moved_clock.advance(60)
    assert service.client.get(UNKNOWN).status_code == 404


def test_a_heartbeat_takes_60_pings_a_minute(service, owner, beat, moved_clock):
    other = Pinged(service, owner, "--period", "1h", name="Other")
    for _ in range(60):
        beat.ping()
    refused = service.client.post(f"{beat.path}/fail")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert (beat.state, other.ping().status_code) == ("up", 200)
    moved_clock.advance(60)
    beat.ping()


# --- bodies -------------------------------------------------------------------------------------------------


@each(
    "sent, expected",
    [
        (b"disk full\n", "disk full\n"),
        (b"x" * 100_001, "x" * 10_000),
        (b"x" * 1_000_000, "x" * 10_000),
        ("é".encode() * 6_000, "é" * 5_000),
        (b"\xff\x00<script>", "\ufffd\ufffd<script>"),
        (b"\xff" * 20_000, "\ufffd" * 3_333),
        (b"", ""),
        ({"a": "b"}, "a=b"),  # a form
    ],
)
def test_the_beginning_of_a_body_is_kept_as_text(beat, sent, expected):
    beat.ping(data=sent)
    assert kept()[-1] == expected


def test_a_body_that_is_too_large_is_refused_and_nothing_kept(service, beat):
    assert service.client.post(beat.path, data=b"x" * 1_048_577).status_code == 413
    assert kept() == []


def test_the_signal_and_the_exit_code_are_kept(beat):
    for signal in ("", "/start", "/fail", "/log", "/0", "/007"):
        beat.ping(signal)
    assert list(zip(kept("kind"), kept("exit_code"), strict=True)) == [
        ("success", None),
        ("start", None),
        ("fail", None),
        ("log", None),
        ("success", 0),
        ("fail", 7),
    ]


# --- what follows -------------------------------------------------------------------------------------------


def test_a_heartbeat_deleted_while_its_ping_arrives_is_not_found(service, beat, monkeypatch):
    read = heartbeats.read_beginning

    def read_slowly(most):
        beat.run("delete", beat.id)
        return read(most)

    monkeypatch.setattr(heartbeats, "read_beginning", read_slowly)
    assert (service.client.post(beat.path).status_code, kept()) == (404, [])


def test_a_heartbeats_name_is_no_template(service, owner):
    name = "{{ x }} <b>🔥</b> אזהרה"
    Pinged(service, owner, "--period", "1h", name=name).ping("/fail")
    assert told(owner) == [(f"{name} is down", "It reported a failure.")]


def test_the_list_has_every_field(owner, beat, moved_clock):
    beat.ping()
    assert owner.get("/watches").json == {
        "ok": True,
        "watches": [
            {
                "id": beat.id,
                "kind": "heartbeat",
                "name": "Backup",
                "state": "up",
                "periodS": 3600,
                "graceS": 600,
                "priority": 4,
                "lastPingAt": moved_clock.ms,
                "deadlineAt": moved_clock.ms + 3_600_000,
                "downSince": None,
                "createdAt": moved_clock.ms,
            }
        ],
        "rules": [],
    }


def test_the_list_names_a_cron_expression_in_place_of_a_period(service, owner):
    Pinged(service, owner, "--cron", "0 3 * * *")
    (watch,) = owner.get("/watches").json["watches"]
    assert watch["cron"] == "0 3 * * *" and "periodS" not in watch


def test_the_uuid_is_in_no_answer_of_the_api_and_in_no_notification(owner, beat):
    beat.ping("/fail")
    uuid = beat.path.removeprefix("/ping/")
    assert all(uuid not in owner.get(path).text for path in ("/watches", "/notifications"))
