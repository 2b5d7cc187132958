"""The fast path: REST requests and events, the most frequent ones, are answered without Flask.

A route is found in two dictionaries, its handler returns a dictionary, and the answer is JSON. All other requests
(other addresses, HEAD, paths spelled differently) go through Flask and get the same answers. Must not know any route.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from web.routing import Route

SIMPLE = re.compile(r"[0-9A-Za-z-]+")  # a value that is no address of its own and is not encoded
LAST_VARIABLE = re.compile(r"<(?:path:)?(\w+)>")  # of any form


class Found(NamedTuple):
    """A route, and the variables of the path that led to it."""

    route: Route
    variables: dict[str, str]


class Door:
    """Routes to look up: `fixed`, without variables, by method and path.

    `open_ended`, with one variable after the last slash, by method and the path before that slash.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self.fixed = dict[tuple[str, str], Found]()
        self.open_ended = dict[tuple[str, str], tuple[Route, str]]()
        for route in routes:
            before, _, last = route.rule.rpartition("/")
            variable = LAST_VARIABLE.fullmatch(last)
            if "<" not in route.rule:
                self.fixed[route.method, route.rule] = Found(route, {})
            elif variable and "<" not in before:
                self.open_ended[route.method, before] = route, variable[1]

    def find(self, method: str, path: str) -> Found | None:
        """The route of a request; None if Flask is to answer it."""
        if found := self.fixed.get((method, path)):
            return found
        before, _, last = path.rpartition("/")
        open_ended = self.open_ended.get((method, before))
        if open_ended is None or not SIMPLE.fullmatch(last):
            return None
        route, variable = open_ended
        return Found(route, {variable: last})
