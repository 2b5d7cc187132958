"""The documentation under /docs: every page is shown, its links lead somewhere, nothing else is served."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.pages import Page
from tests.support.rows import each
from web import doc_pages

NAMES = sorted(doc_pages.PAGES)


def page(service, name):
    answer = service.client.get(f"/docs/{name}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.mimetype) == (200, "text/html"), name
    return answer


def links(text):
    return [link for link in re.findall(r'(?:href|src)="([^"]*)"', text.partition("<article")[2]) if link]


def test_every_page_is_shown_with_its_title_and_under_the_policy_of_all_pages(service):
    policy = service.client.get("/docs").headers["Content-Security-Policy"]
    for name in NAMES:
        answer = page(service, name)
        assert answer.headers["Content-Security-Policy"] == policy
        assert "style=" not in answer.text and "<script>" not in answer.text, name
        assert re.search(r"<title>.+ – Pocketbell</title>", answer.text), name
        assert answer.text.count("<h1") == 1, name


def test_every_link_leads_to_a_page_a_heading_or_a_picture(service):
    for name in NAMES:
        for link in links(page(service, name).text):
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1"), link
                continue
            path = parts.path or f"/docs/{name}"
            answer = service.client.get(path)
            assert answer.status_code == 200, (name, link)
            assert not parts.fragment or f'id="{parts.fragment}"' in answer.text, (name, link)
            assert not path.startswith("/docs/pictures/") or answer.mimetype == "image/png", (name, link)


def test_the_links_of_the_web_app_to_the_documentation_lead_to_headings_that_are_there(service):
    templates = Path(doc_pages.ROOT / "templates").glob("*.html")
    found = {link for one in templates for link in re.findall(r'href="(/docs[^"]*)"', one.read_text())}
    assert "/docs/phones#https-in-one-command" in found
    for link in found:
        parts = urlsplit(link)
        answer = service.client.get(parts.path)
        assert answer.status_code == 200 and f'id="{parts.fragment}"' in f'{answer.text} id=""', link


def test_a_table_and_code_are_shown_as_they_are_written(service):
    text = page(service, "readme").text
    assert "<td><code>HOST</code>, <code>PORT</code></td>" in text
    assert "&quot;title&quot;: &quot;Hello&quot;" in text


@each(
    "path",
    [
        *("", "nothing", "api.md", "../app.py", "%2e%2e/config.py", "%00"),
        *(
            "pictures/",
            "pictures/../../config.py",
            "pictures/..%2f..%2fconfig.py",
            "pictures/nothing.png",
            "pictures/%00",
        ),
    ],
)
def test_nothing_else_is_served(service, path):
    answer = service.client.get(f"/docs/{path}", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "does not exist" in Page(answer.text).main


def test_a_program_gets_the_refusal_as_json(service):
    assert service.client.get("/docs/nothing").json["code"] == "NOT_FOUND"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_page_is_only_read(service, method):
    assert service.client.open("/docs/api", method=method).status_code == 405
