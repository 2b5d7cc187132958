"""Fixtures: a signed-in owner's pages in a browser, and a site with everything on it."""

import pytest
from playwright.sync_api import sync_playwright

from tests.support.alerts_in_browser import GRAFANA, AlertPage
from tests.support.browser import CHROMIUM, FLAGS, HEADLESS_SHELL, IS_REQUIRED, LIMIT_S, Phone, Site
from tests.support.full_site import Full


@pytest.fixture(scope="package")
def playwright():
    if CHROMIUM is None and IS_REQUIRED:
        pytest.fail("REQUIRE_BROWSER=1, and there is no Chromium: apt-get install chromium", pytrace=False)
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def chromium(playwright):
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def headless_shell(playwright, request):
    """Chromium's headless shell, or Chromium itself where the shell is not installed."""
    if HEADLESS_SHELL is None:
        yield request.getfixturevalue("chromium")
        return
    browser = playwright.chromium.launch(executable_path=HEADLESS_SHELL, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def kept_context(headless_shell):
    """A context whose first page stays open, so that the pages of tests come without a process of their own."""
    context = headless_shell.new_context()
    context.set_default_timeout(LIMIT_S * 1000)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def make_site(tmp_path, push_service):
    """Makes a test's only service."""
    sites = []

    def make(**options):
        sites.append(Site(tmp_path / "data", push_service, **options))
        return sites[0]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def site(make_site):
    return make_site()


@pytest.fixture
def open_context(request):
    """Makes browser contexts, each with its own cookies."""
    is_shown = request.node.get_closest_marker("shows_notifications")
    browser = request.getfixturevalue("chromium" if is_shown else "headless_shell")
    contexts = []

    def make(**options):
        context = browser.new_context(**options)
        context.set_default_timeout(LIMIT_S * 1000)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def phone(site, open_context, push_service):
    return Phone(site, open_context(), push_service)


@pytest.fixture
def open_page(site, open_context):
    """Makes pages of the signed-in owner, each in a browser of its own."""

    def make(path="", cookie=None, **options):
        context = open_context(**options)
        context.add_cookies([cookie or site.cookie()])
        page = context.new_page()
        if path:
            page.goto(site.base + path)
        return page

    return make


@pytest.fixture
def plain(open_page):
    """A signed-in owner's page in a browser without JavaScript."""
    return open_page("/app/", java_script_enabled=False)


@pytest.fixture
def new_page(kept_context):
    """Makes pages whose cookies are all that they leave behind: each test's site has a port of its own.

    A test that moves a page's clock, or asks for a permission, needs a context of its own.
    """

    def make(cookie):
        kept_context.add_cookies([cookie])
        return kept_context.new_page()

    yield make
    for page in kept_context.pages[1:]:
        page.close()
    kept_context.set_offline(False)
    kept_context.clear_cookies()


@pytest.fixture
def owners_page(site, new_page):
    """A page of a signed-in owner."""
    return new_page(site.cookie())


@pytest.fixture
def page_with_clock(open_page):
    """A page of a signed-in owner, whose clock the test moves."""
    page = open_page()
    page.clock.install()
    return page


@pytest.fixture
def alert(owners_page, site):
    """The page of an alert for own JSON that has received its first request."""
    made = AlertPage(owners_page, site)
    made.receive()
    return made


@pytest.fixture
def grafana():
    if not GRAFANA.exists():
        pytest.skip("the collected payloads are not here")
    return GRAFANA.read_bytes()


@pytest.fixture
def full(make_site, push_service):
    """A full account on a service whose public address is plain http on another machine."""
    return Full(make_site(host="lan.test"), push_service)


@pytest.fixture
def full_page(full, new_page):
    """A page of the full account's owner."""
    return new_page(full.cookie)
