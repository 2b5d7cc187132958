"""What the routes of `app.py` are made of: a route, and what a part of a path may be. Must not know any address."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from flask import Request
from werkzeug.routing import BaseConverter, Map, MapAdapter, Rule, RuleFactory
from werkzeug.sansio.utils import get_host

from wire.ntfy import TOPIC

Check = Callable[[], Any] | None


class Route(NamedTuple):
    """One method at one address: who may call it, and which rate limit counts it."""

    method: str
    rule: str
    handler: Callable[..., Any]
    guard: Check = None
    quota: Check = None


class IdConverter(BaseConverter):
    """An id in a path. `send` is not an id, so that a GET of `…/notifications/send` stays a 405."""

    regex = r"(?!send(?:/|$))[^/]+"


def first_segments(routes: Iterable[Route]) -> frozenset[str]:
    """What the addresses begin with: none of it is a topic."""
    return frozenset(first for route in routes if not (first := route.rule.split("/")[1]).startswith("<"))


def topics_beside(taken: Iterable[str]) -> tuple[type[BaseConverter], type[BaseConverter]]:
    """Converters for a topic of ntfy's in a path, and for several with commas: none of the `taken` parts."""
    one, beside = TOPIC.pattern, rf"(?!(?:{'|'.join(sorted(taken))})\Z)"

    class TopicConverter(BaseConverter):
        regex = f"{beside}{one}"

    class TopicsConverter(BaseConverter):
        regex = f"{beside}{one}(?:,{one})*"

    return TopicConverter, TopicsConverter


def adapter(url_map: Map, sent: Request) -> MapAdapter:
    """The adapter that finds a request's route. Flask's own reads the host three times, for redirects alone.

    It ignores an Upgrade header: Werkzeug would look for routes of WebSockets.
    """
    environ = sent.environ
    scheme, header = environ["wsgi.url_scheme"], environ.get("HTTP_HOST")
    host = _host(scheme, header, environ["SERVER_NAME"], environ["SERVER_PORT"])
    sent.host = host  # where Flask keeps it
    path = sent.path if environ.get("PATH_INFO") else ""
    query = environ.get("QUERY_STRING", "")
    return MapAdapter(url_map, host, sent.root_path, "", scheme, path, sent.method, query)


@lru_cache(maxsize=100)
def _host(scheme: str, header: str | None, name: str, port: str) -> str:
    """The host and port that a request names; raises `SecurityError` (400) if it cannot be one."""
    return get_host(scheme, header, (name, int(port)))


class RouteMap(Map):
    """Werkzeug's map of routes, with those without variables also by method and path: `fixed`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.fixed = dict[tuple[str, str], Rule]()
        super().__init__(*args, **kwargs)

    def add(self, rulefactory: RuleFactory) -> None:
        """Add a route."""
        super().add(rulefactory)
        for rule in rulefactory.get_rules(self):
            if not rule.arguments:
                self.fixed.update({(method, rule.rule): rule for method in rule.methods or ()})


class MatchedRule(Rule):
    """A rule that cannot build URLs: we never call `url_for`, and compiling URL builders is 10 % of the start-up."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        def build(*_: Any, **__: Any) -> tuple[str, str]:
            raise NotImplementedError("url_for is not used here")

        return build
