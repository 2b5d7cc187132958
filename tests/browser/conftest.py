"""Fixtures: a signed-in owner's pages in a browser, and a site with everything on it."""

import pytest

from tests.support.alerts_in_browser import GRAFANA, AlertPage
from tests.support.full_site import Full


@pytest.fixture
def owners_page(site, open_context):
    """A page of a signed-in owner."""
    context = open_context()
    context.add_cookies([site.cookie()])
    return context.new_page()


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
