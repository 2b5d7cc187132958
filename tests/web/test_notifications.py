"""Sending, listing, paging and searching: title, limit, cursor, search, history."""

from urllib.parse import quote

import pytest

from store.database import EVERYBODY, run, transaction
from tests.support.answers import refusal
from tests.support.openapi import SCHEMAS
from tests.support.rows import each
from tests.support.times import DAY_S
from web import rest
from wire import notification


def page(caller, **query):
    """One page of the history, as (notifications, pagination)."""
    written = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
    answer = caller.get(f"/notifications?{written}")
    assert answer.status_code == 200, answer.json
    assert set(answer.json) == {"ok", "notifications", "pagination"} and answer.json["ok"] is True
    pagination = answer.json["pagination"]
    assert set(pagination) == {"nextCursor", "isDone"} and type(pagination["isDone"]) is bool
    assert type(pagination["nextCursor"]) is str and pagination["nextCursor"]
    return answer.json["notifications"], pagination


def walk(caller, between=lambda: None, **query):
    """Every row by following the cursor to the end."""
    rows, pagination = page(caller, **query)
    while not pagination["isDone"]:
        between()
        more, pagination = page(caller, **query, cursor=pagination["nextCursor"])
        rows += more
    return rows


def titles(rows):
    return [row["title"].removeprefix("MCP - ") for row in rows]


def found(caller, search, **query):
    return titles(walk(caller, search=search, **query))


def insert_rows(service, email, titles, created_at):
    """Many notifications at once, oldest first; far faster than sending them."""
    insert = (
        "INSERT INTO notification (id, account_seq, title, body, status, created_at)"
        " SELECT ?, seq, ?, 'b', 'delivered', ? FROM account WHERE email = ?"
    )
    with transaction(EVERYBODY):
        for number, title in enumerate(titles):
            run(insert, (f"{number:032x}", f"MCP - {title}", created_at, email))


# Sending


@each(
    "title, body",
    [
        ("t", "b"),
        ("MCP - x", "b"),
        ("t" * 1_000, "b"),
        ("t", "b" * 10_000),
        ("😀" * 1_000, "😀" * 10_000),
        ("\u0301" * 1_000, "漢" * 10_000),
        ("  padded\t", "\n  padded  \r\n"),
        ("control \x01\x1b[1m\x7f\x85", "\x02\x03.\u2028\u200b\ufeff\ufffe"),
        ("quotes \"'` \\ & < > {{ title }}", "%s %d {0} ${HOME} $(id) ;-- '"),
        ("שלום עולם", "e\u0301 is not é"),
    ],
)
def test_title_and_body_are_stored_as_submitted_up_to_their_lengths_behind_the_prefix(owner, title, body):
    sent = owner.send(title, body).json["notification"]
    assert (sent["title"], sent["body"]) == (f"MCP - {title}", body)
    assert owner.listed("?limit=1") == [sent]


BLANK = ["", " ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", " \t\u3000\n"]


@each("field", ["title", "body"])
def test_neither_title_nor_body_may_be_empty_or_white_space_alone(owner, field):
    for blank in BLANK:
        refusal(owner.post("/notifications/send", {"title": "t", "body": "b"} | {field: blank}))
    assert owner.listed() == []


@each("title, body", [("t" * 1_001, "b"), ("t", "b" * 10_001), ("😀" * 1_001, "b"), (" " * 1_000 + "t", "b")])
def test_a_title_above_1000_or_a_body_above_10000_characters_is_refused(owner, title, body):
    refusal(owner.send(title, body))
    assert owner.listed() == []


# Listing


def test_the_list_has_the_newest_answers_first(owner, moved_clock):
    sent = []
    for number in range(4):
        sent.append(owner.send(f"title {number}", f"body {number}").json["notification"])
        moved_clock.advance(number % 2)  # some share their millisecond
    assert owner.listed() == sent[::-1]


def test_a_wall_clock_that_is_set_back_loses_no_row_between_pages(owner, moved_clock):
    for title in ("first", "second", "third"):
        owner.send(title)
        moved_clock.set_wall(moved_clock.ms - 3_600_000)
    assert sorted(titles(walk(owner, limit=1))) == ["first", "second", "third"]


@each("limit", [1, 2, 5, 7, 8, 9, 100])
def test_following_the_cursor_finds_each_row_once_while_new_ones_arrive(new_owner, limit):
    _, owner = new_owner()
    for number in range(8):
        owner.send(str(number))
    rows = walk(owner, between=lambda: owner.send("new"), limit=limit)
    assert titles(rows) == [str(number) for number in range(7, -1, -1)]


@each("count", [0, 1, 3, 4, 5])
def test_the_cursor_of_a_done_page_leads_to_an_empty_done_page(new_owner, count):
    _, owner = new_owner()
    for number in range(count):
        owner.send(str(number))
    rows, pagination = page(owner, limit=4)
    while not pagination["isDone"]:
        rows, pagination = page(owner, limit=4, cursor=pagination["nextCursor"])
    for _ in range(3):
        owner.send("arrived since")
        rows, pagination = page(owner, limit=4, cursor=pagination["nextCursor"])
        assert (rows, pagination["isDone"]) == ([], True)


@pytest.fixture
def hundred(service, pro, moved_clock):
    """A caller with 102 notifications."""
    insert_rows(service, "pro@example.org", map(str, range(102)), moved_clock.ms)
    return pro


@each("query", ["?limit=", "?cursor=", "?search=", "?limit=&cursor=&search=", "?unknown=1"])
def test_an_empty_or_unknown_query_parameter_counts_as_absent(hundred, query):
    assert titles(hundred.listed(query)) == [str(number) for number in range(101, 51, -1)]


@each("body, count", [("🔔" * 999 + "x", 12), ("\x01" * 999 + "x", 8), ("x" * 4_050, 11), ("x" * 3_000, 15)])
def test_a_page_ends_early_at_500_kb_and_the_next_one_goes_on(new_owner, monkeypatch, body, count):
    monkeypatch.setattr(rest, "MAX_PAGE_BYTES", 50_000)  # notifications of a tenth are made faster
    _, owner = new_owner("pro")
    ids = [owner.send("t", body).json["notification"]["id"] for _ in range(15)]
    for search in ({}, {"search": "x"}):
        listed = owner.get(f"/notifications?limit=100&search={search.get('search', '')}")
        assert len(listed.data) <= 50_000
        assert len(listed.json["notifications"]) == count and listed.json["pagination"]["isDone"] == (count == 15)
        assert [one["id"] for one in walk(owner, limit=100, **search)] == ids[::-1]


# Limit


@each("limit, count", [("1", 1), ("2", 2), ("007", 7), ("99", 99), ("100", 100), ("101", 100), ("9" * 6_000, 100)])
def test_a_limit_is_taken_as_at_most_100(hundred, limit, count):
    assert len(page(hundred, limit=limit)[0]) == count


@each(
    "limit",
    [
        *["0", "00", "-1", "-0", "+1", "1.0", "1.5", "1e1", "0x10", "1_0", " 1", "1 ", "\t1", "1\n", "abc", "null"],
        *["１", "٣", "²", "½", "१", "1,0", "1;2", "''", "1\x00", "NaN"],
    ],
)
def test_a_limit_that_is_not_a_number_from_1_up_is_refused(owner, limit):
    refusal(owner.get(f"/notifications?limit={quote(limit)}"))


# Cursor


@pytest.fixture
def cursor(pro):
    """A cursor in the middle of three rows."""
    for number in range(3):
        pro.send(str(number))
    return page(pro, limit=1)[1]["nextCursor"]


def test_flipping_any_character_of_a_cursor_gets_it_refused(pro, cursor, moved_clock):
    for place, character in enumerate(cursor):
        moved_clock.advance(61)
        more = "Aa09-_.=~" if place == len(cursor) - 1 else "A="  # not all bits of the last one count
        for other in {character.swapcase(), chr(ord(character) ^ 1), *more}:
            tampered = cursor[:place] + other + cursor[place + 1 :]
            if other != character:
                answer = pro.get(f"/notifications?limit=1&cursor={quote(tampered)}")
                assert answer.status_code == 400, (place, other, answer.json)


def test_cutting_or_stretching_a_cursor_gets_it_refused(pro, cursor):
    changed = [cursor[:end] for end in range(1, len(cursor))] + [cursor[start:] for start in range(1, len(cursor))]
    changed += [cursor + end for end in ["A", "=", "==", ".", " ", "\n", "\x00", cursor, "." + cursor, "&"]]
    changed += [start + cursor for start in ["A", "=", ".", " ", "\n", "\x00"]]
    for one in changed:
        answer = pro.get(f"/notifications?cursor={quote(one, safe='')}")
        assert answer.status_code == 400, (one, answer.json)


@each("cursor", ["0", "-1", "null", ".", "..", "%", "a" * 10_000, "é", "😀", "\x00", "1.2.3", "1.é", "A" * 27])
def test_a_forged_cursor_is_refused(owner, cursor):
    refusal(owner.get(f"/notifications?cursor={quote(cursor, safe='')}"))


def test_a_cursor_of_another_account_is_refused(owner, pro, cursor):
    owner.send()
    refusal(owner.get(f"/notifications?cursor={quote(cursor)}"))


def test_a_cursor_serves_every_key_of_its_account(service, pro, cursor):
    assert titles(page(service.caller("pro@example.org", "second"), cursor=cursor)[0]) == ["1", "0"]


def test_a_cursor_outlives_a_restart_and_days(pro, cursor, make_service, moved_clock):
    moved_clock.advance(5 * DAY_S)
    pro.service = make_service()
    assert titles(page(pro, cursor=cursor)[0]) == ["1", "0"]


def test_a_cursor_outlives_the_row_it_points_at(pro, service, moved_clock):
    pro.send("old")
    moved_clock.advance(DAY_S)
    pro.send("older than the limit soon")
    moved_clock.advance(364 * DAY_S)
    pro.send("new")
    first = page(pro, limit=1)[1]["nextCursor"]
    second = page(pro, limit=1, cursor=first)[1]["nextCursor"]
    moved_clock.advance(2 * DAY_S)
    service.work()
    for cursor in (first, second):
        rows, pagination = page(pro, limit=1, cursor=cursor)
        assert (rows, pagination["isDone"]) == ([], True)


# Search


FOUND = [
    ("disk", "Disk full", "b"), ("DISK", "disk full", "b"), ("finished", "t", "Backup FINISHED"),
    ("mcp - disk", "Disk", "b"), ("k ful", "Disk full", "b"), ("é", "CAFÉ", "b"), ("CAFÉ", "t", "café"),
    ("привет", "ПРИВЕТ", "b"), ("ΣΊΣΥΦΟΣ", "σίσυφος", "b"), ("strasse", "Straße", "b"),
    ("STRASSE", "t", "straße"), ("straße", "t", "STRASSE"), ("k", "273 \u212a", "b"), ("漢", "t", "感じ漢字"),
    ("😀", "t", "smile 😀!"), ("one\r\ntwo", "t", "one\r\ntwo"), ("end", "t", "." * 9_997 + "end"),
]  # fmt: skip


@each("search, title, body", FOUND)
def test_search_is_a_case_insensitive_substring_of_title_or_body(new_owner, search, title, body):
    _, owner = new_owner()
    wanted = owner.send(title, body).json["notification"]
    owner.send("other", "other")
    assert walk(owner, search=search) == [wanted]


LIKE_PATTERNS = [
    ("%", "100 %", "100"), ("_", "a_b", "ab"), ("'", "it's", "its"), ('"', 'say "x"', "say x"),
    ("\\", "C:\\", "C:/"), ("a*", "a*", "abc"), ("a?c", "a?c", "abc"), ("[ab]", "[ab]", "a"),
    ("a OR b", "a OR b", "a b"), ("-a", "-a", "b"), ("^o", "^o", "o"), (".", "a.b", "ab"),
    ("  ", "two  spaces", "one space"), ("+", "1+1", "1 1"), ("&limit=1", "a&limit=1", "a"),
    ("[^a] | {2} $ ^ \\d+ \\", "[^a] | {2} $ ^ \\d+ \\", "a | a $ ^ 12 x"),
    ("over two\nlines, and more", "over two\nlines, and more", "over two lines, and more"),
]  # fmt: skip


@each("search, title, other", LIKE_PATTERNS)
def test_patterns_quotes_and_operators_mean_themselves_in_a_search(new_owner, search, title, other):
    _, owner = new_owner()
    owner.send(title, "b~")
    owner.send(other, "b~")
    assert found(owner, search) == [title]


@each("character", ["x", "é", "😀"])
def test_a_search_has_at_most_200_characters(owner, character):
    owner.send("t", character * 200)
    owner.send("t", character * 199)
    assert len(walk(owner, search=character * 200)) == 1
    refusal(owner.get(f"/notifications?search={quote(character * 201)}"))


@each("search", ["%00", "%ff", "%ed%a0%80", "%c3", "a%00b", "%F4%90%80%80"])
def test_a_search_in_odd_bytes_is_never_a_fault_of_the_server(owner, search):
    owner.send()
    assert owner.get(f"/notifications?search={search}").status_code in (200, 400)


def test_search_looks_only_at_title_and_body(owner):
    sent = owner.send("t", "b").json["notification"]
    assert found(owner, sent["id"]) == found(owner, "delivered") == []


def test_the_search_may_change_between_pages(pro):
    for number in range(6):
        pro.send(f"even {number}" if number % 2 == 0 else f"odd {number}")
    rows, pagination = page(pro, limit=1, search="even")
    assert titles(rows) == ["even 4"]
    rows, pagination = page(pro, limit=1, search="odd", cursor=pagination["nextCursor"])
    assert titles(rows) == ["odd 3"]
    assert titles(page(pro, cursor=pagination["nextCursor"])[0]) == ["even 2", "odd 1", "even 0"]


@pytest.fixture
def long_history(service, pro, moved_clock, monkeypatch):
    """Rows for four searches, of which three match: the oldest, one in the middle and the newest."""
    monkeypatch.setattr("store.search.SEARCH_COST", 20_000)
    names = ["Match" if number % 60 == 0 else "other" for number in range(121)]
    insert_rows(service, "pro@example.org", names, moved_clock.ms)
    return pro


@each("limit", [1, 2, 3, 50])
def test_following_the_cursor_finds_every_match_in_a_long_history(long_history, limit):
    ids = [row["id"] for row in walk(long_history, search="match", limit=limit)]
    assert ids == [f"{number:032x}" for number in (120, 60, 0)]
    assert len(walk(long_history, search="other", limit=limit * 20)) == 118


def test_a_search_through_a_long_history_without_a_match_ends(long_history):
    assert walk(long_history, search="nothing has this") == []


# History


def test_rows_older_than_the_plans_days_are_not_found(owner, moved_clock):
    owner.send("old")
    moved_clock.advance(30 * DAY_S - 1)
    assert found(owner, "old") == ["old"]
    moved_clock.advance(2)
    assert found(owner, "old") == []


def test_a_change_of_plan_moves_the_end_of_the_history_at_once(service, pro, moved_clock):
    pro.send("40 days old")
    moved_clock.advance(40 * DAY_S)
    pro.send("new")
    service.flask("account", "set", "pro@example.org", "--plan", "starter")
    assert titles(pro.listed()) == ["new"]
    service.flask("account", "set", "pro@example.org", "--plan", "pro")
    assert titles(pro.listed()) == ["new", "40 days old"]


def test_the_api_reference_has_the_statuses_of_the_code():
    assert tuple(SCHEMAS["Status"]["enum"]) == notification.STATUSES
    assert tuple(SCHEMAS["Event"]["properties"]["status"]["enum"]) == (*notification.STATUSES, "inactive")


def test_the_api_reference_has_the_fields_that_can_be_sent():
    described = SCHEMAS["NotificationInput"]
    assert tuple(described["properties"]) == notification.FIELD_NAMES
    assert described["required"] == list(notification.REQUIRED_FIELDS)


def test_the_api_reference_has_the_fields_that_are_answered():
    described = SCHEMAS["Notification"]
    optional = [field.name for field in notification.OPTIONAL_FIELDS.values()]
    assert described["required"] == ["id", "title", "body", "status", "createdAt"]
    assert list(described["properties"]) == described["required"] + optional
