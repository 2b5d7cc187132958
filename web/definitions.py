"""The handlers of the REST API that define alerts, heartbeats and rules, and change the account's settings."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from core import alerts, definitions, heartbeats
from core.definitions import Fields, Kind
from models import Account
from process import clock
from store.key_limits import READ
from web import guards, shapes
from web.context import Payload, current
from web.request_body import read_object
from wire.errors import Refused


class Definitions(NamedTuple):
    """The handlers of one kind at `/api/v1/KINDs` and `/api/v1/KINDs/{id}`."""

    kind: Kind
    shape: Callable[[Any, str | None], Payload]  # of one, with the beginning of its address
    listed: Callable[[Any, str | None], Payload]  # of one in the list
    acts: Mapping[str, Callable[[int, str, int], Any]] = {}  # what more one can do, by the last path segment

    def list_all(self) -> Payload:
        """GET /api/v1/KINDs."""
        found = self.kind.of_account(current().caller.account_seq)
        return {"ok": True, f"{self.kind.name}s": [self.listed(one, _origin()) for one in found]}

    def create(self) -> tuple[Payload, int]:
        """POST /api/v1/KINDs; with `unique` it changes the one that is there."""
        fields, is_unique = read_object(self._sent)
        account, now = own_account(), clock.now_ms()
        if not is_unique:
            return self._answer(self.kind.create(account, fields, now)), 201
        one, is_new = self.kind.put(account, fields, now)
        return self._answer(one), 201 if is_new else 200

    def _sent(self, sent: Fields) -> tuple[Fields, bool]:
        """The checked fields of a request, and whether it has `unique`."""
        unique, known_by = sent.pop("unique", None), list(self.kind.known_by)
        if unique is not None and unique != known_by:
            names = ", ".join(f'"{field}"' for field in known_by)
            raise Refused(400, f"unique must be [{names}].", field="unique")
        return self.kind.checked(sent), unique is not None

    def show(self, **ids: str) -> Payload:
        """GET /api/v1/KINDs/{id}."""
        return self._answer(self.kind.find(current().caller.account_seq, *ids.values()))

    def change(self, **ids: str) -> Payload:
        """PATCH /api/v1/KINDs/{id}."""
        (id_,), fields = ids.values(), read_object(self.kind.checked)
        return self._answer(self.kind.update(current().caller.account_seq, id_, fields, clock.now_ms()))

    def delete(self, **ids: str) -> Payload:
        """DELETE /api/v1/KINDs/{id}."""
        self.kind.delete(current().caller.account_seq, *ids.values())
        return {"ok": True}

    def act(self, name: str, **ids: str) -> Payload:
        """POST /api/v1/KINDs/{id}/NAME."""
        (id_,) = ids.values()
        return self._answer(self.acts[name](current().caller.account_seq, id_, clock.now_ms()))

    def _answer(self, one: Any) -> Payload:
        return {"ok": True, self.kind.name: self.shape(one, _origin())}


ALERTS = Definitions(
    definitions.ALERT,
    shapes.alert_definition,
    lambda one, _: shapes.alert(one),
    {"rotate": lambda account_seq, id_, _: alerts.rotate_code(account_seq, id_)},
)
HEARTBEATS = Definitions(
    definitions.HEARTBEAT,
    shapes.heartbeat_definition,
    shapes.heartbeat_definition,
    {
        "pause": heartbeats.pause_heartbeat,
        "resume": heartbeats.resume_heartbeat,
        "rotate": lambda account_seq, id_, _: heartbeats.rotate_address(account_seq, id_),
    },
)
RULES = Definitions(definitions.RULE, shapes.rule_definition, shapes.rule_definition)


def operations() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Method, address below `/api/v1` and handler of each request about alerts, heartbeats, rules and the account."""
    for defined in (ALERTS, HEARTBEATS, RULES):
        all_, one = f"/{defined.kind.name}s", f"/{defined.kind.name}s/<{defined.kind.name}_id>"
        yield "GET", all_, defined.list_all
        yield "POST", all_, defined.create
        yield "GET", one, defined.show
        yield "PATCH", one, defined.change
        yield "DELETE", one, defined.delete
        for name in defined.acts:
            yield "POST", f"{one}/{name}", partial(defined.act, name)
    yield "GET", "/account", show_account
    yield "PATCH", "/account", change_account


def show_account() -> Payload:
    """GET /api/v1/account."""
    return {"ok": True, "account": definitions.account_fields(own_account())}


def change_account() -> Payload:
    """PATCH /api/v1/account."""
    fields = read_object(definitions.checked_account)
    changed = definitions.account_change(own_account(), fields, clock.now_ms())()
    return {"ok": True, "account": definitions.account_fields(changed)}


def own_account() -> Account:
    """The account of the key that calls."""
    account = Account.with_seq(current().caller.account_seq)
    if account is None:  # it was deleted meanwhile
        raise Refused(401)
    return account


def _origin() -> str | None:
    """The beginning of addresses; None hides them from a key that may only read: whoever has one can send."""
    return None if current().caller.scope == READ else guards.origin()
