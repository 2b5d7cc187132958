"""The JSON that an alert webhook takes, bare or in a form, and what it refuses."""

from tests.support.answers import refusal
from tests.support.service import last
from tests.support.webhooks import the_alert

JSON = {"Content-Type": "application/json"}
NO_EVENTS = [b"", b" \n", b"{", b"[1", b"{}{}", b"<a/>", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 64 + b"]" * 64]
NO_JSON = [b"//\n{}", b"nonsense", b"null", b"true", b"1", b'"title"', b"title=t", b"\x80"]


def test_a_body_that_is_broken_is_refused_and_nothing_recorded(owner, hook, moved_clock):
    for data in NO_EVENTS:
        refusal(hook.post(data=data))
    moved_clock.advance(61)
    for data in NO_JSON:
        refusal(hook.post(data=data, headers=JSON))
    alert = the_alert(owner)
    assert (alert["notificationCount"], alert["lastTriggeredAt"], owner.listed()) == (0, None, [])


def test_a_refusal_repeats_nothing_of_the_body(hook):
    for data in (b"[secret-word", b'{"secret-word": secret-word}', b'{"a": "secret-word\n"}', b'["secret-word"'):
        assert "secret" not in refusal(hook.post(data=data))


CONTENT_TYPES = [
    *("", "text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense", ";;;"),
    *("multipart/form-data; boundary=x", "application/json; charset=latin-1"),
]


def test_a_body_is_read_as_json_whatever_it_is_called(owner, hook):
    data = '{"title": "é+%41&payload=1", "message": "漢"}'.encode()
    for headers in [{}, *({"Content-Type": name} for name in CONTENT_TYPES)]:
        assert hook.post(data=data, headers=headers).status_code == 200
        assert last(owner) == ("é+%41&payload=1", "漢")
    assert len(owner.listed()) == 1 + len(CONTENT_TYPES)
