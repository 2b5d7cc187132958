"""Writing TOML's strings, and finding the lines of tables and fields."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from wire.toml_text import lines_of, toml_string

TEXT = """# a comment
top = 1
[[alert]] # one
name = "x"

body = \'\'\'
[[alert]]
name = 1
\'\'\'
  [[alert]]
list = [
  "]",
  "[[alert]]",
]
a.b = 1
a.c = 2
[account]
zone = "UTC"
[alert.more]
x = 1
"""


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("\"'\\\n\r\tn\x7f\0"))
def test_a_text_is_read_as_it_was_written(text):
    assert tomllib.loads(f"x = {toml_string(text)}\ny = 1") == {"x": text, "y": 1}


def test_a_text_is_quoted_as_a_person_would():
    texts = ["a", 'say "a"', 'it\'s "a"', "a\nb"]
    assert [*map(toml_string, texts)] == ['"a"', "'say \"a\"'", '"it\'s \\"a\\""', '"""\na\nb"""']


def test_each_table_and_field_has_the_line_in_which_it_begins():
    expected = {
        ("top", 0, ""): 2,
        ("alert", 0, ""): 3,
        ("alert", 0, "name"): 4,
        ("alert", 0, "body"): 6,
        ("alert", 1, ""): 10,
        ("alert", 1, "list"): 11,
        ("alert", 1, "a"): 15,
        ("account", 0, ""): 17,
        ("account", 0, "zone"): 18,
        ("alert", 1, "more"): 19,
    }
    for text in (TEXT, TEXT.replace("\n", "\r\n")):
        tomllib.loads(text)
        assert {place: line for place, line in lines_of(text).items() if place[2] != "x"} == expected


def test_tables_of_an_array_over_several_lines_have_the_lines_in_which_they_end():
    text = "\nalert = [ # ]\n  {name = 1, body = '''\n]'''}, {},\n\n  {name = '[x]'}\n  , {name = 2}]\nrule = [{}]\n"
    found = {place[:2]: line for place, line in lines_of(text).items()}
    assert found == {("alert", 0): 4, ("alert", 1): 4, ("alert", 2): 6, ("alert", 3): 7, ("rule", 0): 8}


def test_tables_in_one_line_are_there():
    assert lines_of("\nalert = [{name = 1}, {}]\n") == {
        ("alert", 0, ""): 2,
        ("alert", 0, "name"): 2,
        ("alert", 1, ""): 2,
    }
