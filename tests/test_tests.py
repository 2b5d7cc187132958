"""How the tests are built: small files, each for itself, and every helper defined once."""

import ast
import re
from collections import defaultdict

from tests.support.pages import Page
from tests.support.rows import each
from tests.support.server import ROOT

MAX_LINES = 600
FILES = sorted((ROOT / "tests").rglob("*.py"))
TEST_FILES = [path for path in FILES if path.name.startswith("test_")]


def named(path):
    return str(path.relative_to(ROOT))


def is_fixture(node):
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def definition(node):
    """What a helper does or a constant is, whatever it is called; None for a test, and for what is no definition."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("test_"):
        says = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        return "\n".join(map(ast.unparse, node.body[1:] if says else node.body)) or None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
        return ast.unparse(node)
    return None


def test_no_file_of_tests_has_more_than_600_lines():
    lines = {named(path): len(path.read_text().splitlines()) for path in FILES}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_no_test_file_imports_another():
    for path in TEST_FILES:
        assert re.findall(r"^\s*(?:from|import) tests\b.*\btest_.*", path.read_text(), re.M) == [], path


def test_a_fixture_is_a_function_and_never_assigned():
    for path in FILES:
        assert re.findall(r"^(?! *@).*pytest\.fixture\b", path.read_text(), re.M) == [], path


def test_a_helper_is_defined_once():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            # A fixture that leads to another one is how a file says which service it is about.
            is_alias = isinstance(node, ast.FunctionDef) and is_fixture(node) and node.name == "service"
            if (what := definition(node)) and not is_alias:
                places[what].append(f"{named(path)}:{node.lineno}")
    assert {what: where for what, where in places.items() if len(where) > 1} == {} and len(places) > 1_000


@each(
    "html",
    [
        '\n<!doctype html>\n<html lang="en"><p id="a" hidden>1 &lt; 2 &amp;amp; <br>x</p></html>\n',
        '<svg viewBox="0 0 1 1"><path d="M0"/></svg><a title="a>b &quot;&#39;" href=\'x\'>c</a>',
        '<p>a</p><script>if (1 < 2) "<b>&lt;"</script><style>a > b {} &amp;</style><p>b</p>',
        "<p>a <b c=d>e</b> < f &copy g <!-- <i> -->h</p>",
    ],
)
def test_the_test_parser_reads_pages_as_pythons_does(monkeypatch, html):
    def read(page):
        return [(e.tag, e.attributes, e.text, len(e.within)) for e in page.elements], page.text

    here = read(Page(html))
    with monkeypatch.context() as patch:
        patch.setattr(Page, "_reads_plain", lambda page: False)
        assert read(Page(html)) == here
