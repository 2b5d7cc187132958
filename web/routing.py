"""What the routes of `app.py` are made of: a route, and what a part of a path may be. Must not know any address."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from flask import Request
from werkzeug.routing import BaseConverter, Map, MapAdapter, Rule, RuleFactory
from werkzeug.sansio.utils import get_host

from wire.ntfy import TOPIC

Check = Callable[[], Any] | None
OF_ANY_FORM = re.compile(r"<(?:path:)?(\w+)>")  # a variable of a rule, whose value may be anything
TOPICS = re.compile(rf"{TOPIC.pattern}(?:,{TOPIC.pattern})*")
SIMPLE = re.compile(r"[0-9A-Za-z-]+")  # a value that is no address of its own and is not encoded


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
        regex = f"{beside}{TOPICS.pattern}"

    return TopicConverter, TopicsConverter


def adapter(url_map: Map, sent: Request) -> MapAdapter:
    """The adapter that finds a request's route. Flask's own reads the host three times, for redirects alone.

    It ignores an Upgrade header: Werkzeug would look for routes of WebSockets.
    """
    path = sent.path if sent.environ.get("PATH_INFO") else ""
    query = sent.environ.get("QUERY_STRING", "")
    return MapAdapter(url_map, sent.host, sent.root_path, "", sent.scheme, path, sent.method, query)


def host(environ: Any) -> str:
    """The host and port that a request names; raises `SecurityError` (400) if it cannot be one."""
    header = environ.get("HTTP_HOST")
    return _host(environ["wsgi.url_scheme"], header, environ["SERVER_NAME"], environ["SERVER_PORT"])


@lru_cache(maxsize=100)
def _host(scheme: str, header: str | None, name: str, port: str) -> str:
    return get_host(scheme, header, (name, int(port)))


class RouteMap(Map):
    """Werkzeug's map of routes, of which it finds simple ones at once.

    `fixed` are those without variables, by method and path. `open_ended` are those with one behind the last slash,
    of any form, by method and what is before that slash.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.fixed = dict[tuple[str, str], Rule]()
        self.open_ended = dict[tuple[str, str], tuple[Rule, str]]()
        super().__init__(*args, **kwargs)

    def add(self, rulefactory: RuleFactory) -> None:
        """Add a route."""
        super().add(rulefactory)
        for rule in rulefactory.get_rules(self):
            before, _, last = rule.rule.rpartition("/")
            variable = OF_ANY_FORM.fullmatch(last)
            for method in rule.methods or ():
                if not rule.arguments:
                    self.fixed[method, rule.rule] = rule
                elif variable and "<" not in before:
                    self.open_ended[method, before] = rule, variable[1]

    def find(self, method: str, path: str) -> tuple[Rule, dict[str, Any]] | None:
        """A simple route and its variables; None for any other, and for what must be looked at more closely."""
        if rule := self.fixed.get((method, path)):
            return rule, {}
        before, _, last = path.rpartition("/")
        found = self.open_ended.get((method, before))
        if found is None or not SIMPLE.fullmatch(last):
            return None
        rule, variable = found
        return rule, {variable: last}


class MatchedRule(Rule):
    """A rule that cannot build URLs: we never call `url_for`, and compiling URL builders is 10 % of the start-up."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        def build(*_: Any, **__: Any) -> tuple[str, str]:
            raise NotImplementedError("url_for is not used here")

        return build
