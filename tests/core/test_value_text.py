"""How a payload is kept: `payload_json` says what `as_text` says, whichever encoder writes it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.value_text import as_text, payload_json
from tests.support.rows import each
from tests.support.strategies import ANY_TEXT
from wire.strict_json import parse_event

PAYLOADS = [
    "{}",
    '{"a": 1.50, "b": [-0, -0.0, 1E5, 12345678901234567890123, 1e-7], "1.5": {"c": null, "d": [true, false]}}',
    r'{"a": "\u0000", "\u0000": "\ud800", "b": "\u0000" , "c": 2.50}',
    r'{"\\u0000": "\"\\u00001.5\"", "a": "\\u0000", "b": 2.50, "c": "\b\f\n\r\t\u001f\u007f\u2028é😀/</script>"}',
]


@pytest.mark.usefixtures("encoder")
@each("sent", PAYLOADS)
def test_a_payload_is_kept_as_it_is_shown(sent):
    payload = parse_event(sent.encode())
    assert payload_json(payload).decode() == as_text(payload, 10_000)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(ANY_TEXT, values, max_size=4),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(ANY_TEXT, VALUES, max_size=4))
def test_whatever_is_sent_is_kept_as_it_is_shown(sent):
    payload = parse_event(json.dumps(sent).encode())
    assert payload_json(payload).decode() == as_text(payload, 1_000_000)
