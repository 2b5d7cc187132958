"""The parts of the route table in `app.py`: routes and URL converters. Must not know any address."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from werkzeug.routing import BaseConverter

from wire.errors import Refused, rest_body
from wire.notification import MAX_TAG_CHARACTERS
from wire.ntfy import TOPIC, cut

Check = Callable[[], Any] | None
Errors = Callable[[Refused], Any]  # makes the body of an error


class Route(NamedTuple):
    """One method at one address: who may call it, which rate limit counts it, and the shape of its errors."""

    method: str
    rule: str
    handler: Callable[..., Any]
    guard: Check = None
    quota: Check = None
    errors: Errors = rest_body
    scopes: frozenset[str] = frozenset()  # of the keys that may call it; empty where no key is asked for
    takes_files: bool = False  # whether the handler checks the body's size: files may be larger than other bodies

    @property
    def endpoint(self) -> str:
        """Its name for Flask."""
        return f"{self.method} {self.rule}"


class Unknown(NamedTuple):
    """Addresses without a route: who may ask for one, which rate limit counts it, and the shape of its errors."""

    requests: str  # a regular expression for method and path
    guard: Check = None
    quota: Check = None
    errors: Errors = rest_body

    def fits(self, method: str, path: str) -> bool:
        """Whether the request matches the pattern."""
        return re.fullmatch(self.requests, f"{method} {path}", re.DOTALL) is not None


class IdConverter(BaseConverter):
    """An id in a path. `send` is not an id, so that a GET of `…/notifications/send` stays a 405."""

    regex = r"(?!send(?:/|$))[^/]+"


class TextConverter(BaseConverter):
    """Any text, with slashes."""

    part_isolating = False
    regex = r"[\s\S]+"


class TagConverter(BaseConverter):
    """ntfy's ID of a message in a path, which is its tag here: one that is too long is cut, so that none is lost."""

    def to_python(self, value: str) -> str:
        """The tag."""
        return cut(value, MAX_TAG_CHARACTERS)


def first_segments(routes: Iterable[Route]) -> frozenset[str]:
    """The first path segments of the routes, none of which is a topic."""
    return frozenset(first for route in routes if not (first := route.rule.split("/")[1]).startswith("<"))


def topics_beside(taken: Iterable[str]) -> tuple[type[BaseConverter], type[BaseConverter]]:
    """Converters for a topic of ntfy's in a path, and for several with commas: none of the `taken` parts."""
    one, beside = TOPIC.pattern, rf"(?!(?:{'|'.join(sorted(taken))})(?:/|\Z))"

    class TopicConverter(BaseConverter):
        regex = f"{beside}{one}"

    class TopicsConverter(BaseConverter):
        regex = f"{beside}{one}(?:,{one})*"

    return TopicConverter, TopicsConverter
