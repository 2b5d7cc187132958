"""A provider needs its module and a line in `PROVIDERS`: one that is declared here is pushed to like the others."""

import pytest

from config import SettingError, load, variables
from core import doctor
from providers import PROVIDERS
from providers.base import Meaning, Outcome, Provider, parsed
from providers.transport import Request
from settings.variables import Variable, http_origin
from tests.support.pages import signed_in
from tests.support.rows import each
from wire.json_text import json_bytes


class PigeonPost(Provider[str]):
    """Posts to a loft, which is the only setting; a pigeon's ring is its token."""

    kind = "pigeon"
    name = "Pigeon post"
    service = "The loft"
    hint = "Check LOFT_URL."
    answers = (
        Meaning("200", Outcome.DELIVERED),
        Meaning("410", Outcome.DEAD),
        Meaning("400", Outcome.REFUSED, "no such pigeon"),
    )
    variables = (Variable("LOFT_URL", None, http_origin, "an origin, such as https://loft.example.org"),)
    token_form = r"[A-Z]{2}-[0-9]{1,4}", "a ring such as DE-17"
    nobody = "XX-0"

    @classmethod
    def read(cls, values):
        return values["LOFT_URL"]

    def origin(self, push):
        return self.settings

    def request(self, push, left_s):
        said = push.message.content
        body = json_bytes({"ring": push.token, "title": said.title, "body": said.body})
        return Request(f"{self.settings}/fly", {"content-type": "application/json"}, body, any_address=True)

    def reason(self, reply):
        return str(parsed(reply).get("problem", ""))


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    monkeypatch.setitem(PROVIDERS, PigeonPost.kind, PigeonPost)


@pytest.fixture
def service(make_service, receiver, moved_clock):
    return make_service(LOFT_URL=receiver.origin)


@pytest.fixture
def pigeon(owner):
    answer = owner.post("/devices", {"kind": "pigeon", "token": "DE-17"})
    assert answer.status_code == 201
    return answer.json["device"]


def checked(service):
    return next((one.level, one.words) for one in doctor.examine(service.settings) if one.check == "Pigeon post")


@each("kind", PROVIDERS)
def test_every_provider_declares_its_names(kind):
    provider = PROVIDERS[kind]
    assert provider.kind == kind and provider.name and provider.service
    assert provider.hint.endswith(".") and provider.answers[0].outcome is Outcome.DELIVERED


def test_the_variable_of_a_provider_is_one_of_the_settings():
    assert "LOFT_URL" in {variable.name for variable in variables()}
    assert load({"LOFT_URL": "https://loft.example.org/"}).providers["pigeon"] == "https://loft.example.org"
    with pytest.raises(SettingError) as refused:
        load({"LOFT_URL": "loft"})
    assert str(refused.value) == 'LOFT_URL is "loft": it takes an origin, such as https://loft.example.org.'


def test_a_device_is_named_after_its_kind_and_gets_pushes(owner, pigeon, receiver):
    assert (pigeon["kind"], pigeon["name"]) == ("pigeon", "Pigeon post")
    assert owner.send("Seed", "for the winter").json["notification"]["status"] == "delivered"
    assert [one.json for one in receiver.got] == [{"ring": "DE-17", "title": "MCP - Seed", "body": "for the winter"}]


def test_a_token_must_have_its_form(owner):
    answer = owner.post("/devices", {"kind": "pigeon", "token": "17"})
    assert answer.status_code == 400
    assert answer.json["error"] == "token must be a ring such as DE-17 for Pigeon post."


def test_an_unknown_kind_is_told_that_there_is_this_one_too(owner):
    error = owner.post("/devices", {"kind": "dove", "token": "DE-17"}).json["error"]
    assert error == "kind must be apns, email, fcm, ntfy, pigeon, webhook or webpush."


def test_doctor_tries_its_credentials(service, receiver):
    receiver.answers["/fly"] = (400, b'{"problem": "no such pigeon"}')
    assert checked(service) == ("ok", "The loft accepts the credentials.")
    receiver.answers["/fly"] = (403,)
    assert checked(service) == ("bad", "The loft answered 403. Check LOFT_URL.")


def test_the_devices_page_offers_it(service):
    visitor = signed_in(service)
    assert "Pigeon post" in visitor.page("/app/devices").text
    form = {"kind": "pigeon", "token": "DE-17", "name": ""}
    assert visitor.post("/app/devices/new", form).status_code == 303
    assert visitor.page("/app/devices").section("Pigeon post")
