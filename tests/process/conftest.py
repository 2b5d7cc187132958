"""Fixtures: services in processes of their own."""

import pytest

from tests.support.server import Server


@pytest.fixture
def start(tmp_path):
    """Starts services, by default on this test's only data directory; they end with the test."""
    servers = []

    def start_one(data="data", **environ):
        servers.append(Server(tmp_path / data, **environ))
        return servers[-1]

    yield start_one
    for server in servers:
        if server.process.poll() is None:
            server.kill()
