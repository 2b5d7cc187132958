"""Filters that turn a sender's words into a sentence without gaps: `translate`, `prepend`, alternatives."""

from core import message_templates
from tests.support.rows import each
from tests.support.templates import applied

PAIRS = "failure=failed, timed_out = timed out, success=, https://*/pull=request, *ed=done, x=a=b, *#*=part, [?]=mark"
TABLE = f'translate: "{PAIRS}"'


TRANSLATED = [
    ('"failure"', "failed"), ('"startup_failure"', "startup_failure"), ('"Failure"', "Failure"),
    ('"timed_out"', "timed out"), ('"success"', ""), ('"https://git/pull"', "request"),
    ('"https:/pull"', "https:/pull"), ('"completed"', "done"), ('"ed"', "done"), ('"x"', "a=b"),
    ('"#"', "part"), ('"page#line\\n2"', "part"), ('"[?]"', "mark"), ('"?"', "?"), ('""', ""), ("null", ""),
    ("[1,2]", "[1,2]"),
]  # fmt: skip


@each("value, text", TRANSLATED)
def test_translate_replaces_a_whole_value_by_the_first_word_whose_key_fits(value, text):
    assert applied(TABLE, value) == text


@each("value, text", [("0", "down"), ("1", "up"), ("true", "yes"), ("false", "no"), ("12", "other"), ("null", "")])
def test_translate_reads_a_value_as_it_is_shown_and_an_asterisk_as_anything_but_nothing(value, text):
    assert applied('translate: "0=down, 1=up, true=yes, false=no, *=other"', value) == text


@each("table", ['""', '"a"', '"a=b,"', '"=b"', "5", '"a=b", "c"'])
def test_a_table_of_translate_that_is_no_table_stays_visible(table):
    assert applied(f"translate: {table}", '"a"') == f"{{{{ v | translate: {table} }}}}"


@each("value, text", [('"x"', "on x"), ('""', ""), ("null", ""), ('" "', ""), ("0", "on 0"), ("[]", "on []")])
def test_prepend_and_append_put_a_text_beside_what_is_not_blank(value, text):
    assert applied('prepend: "on "', value) == text
    assert applied('append: "!"', value) == (text and text.removeprefix("on ") + "!")


@each("paths, text", [("a | b | c", "1 2 3"), ("a|c", "1  3"), ("nope | b", "2 2 3"), ("a.x | c", "  3")])
def test_map_takes_the_first_of_several_paths_that_has_a_value(paths, text):
    """A later path may say null: it counts where none has a value."""
    items = '[{"a": 1, "b": 2}, {"a": "", "b": 2, "c": null}, {"b": 3, "c": 3}]'
    assert applied(f'map: "{paths}" | join', items) == text


def test_what_is_missing_stays_visible_behind_prepend_and_translate_until_a_default():
    visible = "{{ nope | prepend: 'a' }}{{ nope | translate: 'a=b' }}"
    silent = "{{ nope | prepend: 'a' | default: '' }}{{ nope | translate: 'a=b' | default: '' }}"
    assert message_templates.fill(visible + silent, {}, 100).text == visible


@each(
    "alternatives, text",
    [
        ('b, c, "x"', "see"), ("b,c , 'x'", "see"), ('b, d e, "x"', "dee"), ('b, "x"', "x"), ('b, 1.y, "x"', "one"),
        ('b, 5', "5"), ('b, "x, y | z"', "x, y | z"), ('b, "x" | upcase', "X"), ('b, c | default: "x"', "see"),
        ("b, c", None), ('"x", c', None), ('b,, "x"', None), ('b, "x" y', None), ('b, "x', None),
        ('b, {c}, "x"', None),
    ],
)  # fmt: skip
def test_default_takes_the_first_of_its_alternatives_that_has_a_value(alternatives, text):
    template = "{{ a | default: " + alternatives + " }}"
    filled = message_templates.fill(template, {"b": "", "c": "see", "d e": "dee", "1": {"y": "one"}}, 100)
    assert filled.text == (template if text is None else text)


@each("value, text", [(" a \\r\\n\\r\\n  b\\n", "a\n  b"), ("\\n \\n", ""), ("a", "a"), ("\\u2028a\\t", "a")])
def test_tidy_removes_white_space_at_both_ends_and_blank_lines(value, text):
    assert applied("tidy", f'"{value}"') == text
