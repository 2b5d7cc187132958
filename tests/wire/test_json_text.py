"""The two ways to write JSON write the same bytes."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wire import json_text
from wire.json_text import as_json, json_bytes, own_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | TEXT
VALUES = st.recursive(SCALARS, lambda one: st.lists(one, max_size=5) | st.dictionaries(TEXT, one, max_size=5))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(2**64)  # orjson refuses these two
@example({1: 2})
@given(VALUES)
def test_an_answer_is_the_same_whatever_writes_it(value):
    assert json_bytes(value) == as_json(value).encode()


def test_an_answer_is_the_same_on_a_machine_without_the_faster_encoder(monkeypatch):
    value = {"é": [1, (2, None)], '\x00\x1f\x7f\u2028/"\\': True}
    faster = json_bytes(value)
    monkeypatch.setattr(json_text, "orjson", None)
    assert json_bytes(value) == faster


@pytest.mark.parametrize(
    "text", ['["\\u00e9 \\ud83d\\ude00", null]', '["\\ud83d"]', "[9223372036854775807, -1]", '[""]']
)
def test_both_parsers_read_the_services_own_json_alike(encoder, text):
    assert own_json(text) == json.loads(text)
