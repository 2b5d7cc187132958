"""The fast path: REST requests and events, the most frequent ones, are answered without Flask.

A route is found in two dictionaries, its handler returns a dictionary, and the answer is JSON. All other requests
(other addresses, HEAD, paths spelled differently) go through Flask and get the same answers. Must not know any route.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from web.context import current
from web.json_answers import JsonAnswer
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


def answered(
    found: Found,
    handler: Callable[..., Any],
    admit: Callable[[Route], Any],
    refused: Callable[[Exception], tuple[Any, int, dict[str, str]]],
) -> Any:
    """The response of guard, quota or handler, or to what they raise."""
    current().variables = found.variables
    try:
        returned = admit(found.route)
        if returned is None:
            returned = handler(**found.variables)
    except Exception as error:
        returned = refused(error)
    value, *more = returned if isinstance(returned, tuple) else (returned,)
    return JsonAnswer(value, *more) if isinstance(value, dict) else value
