"""The API reference (docs/openapi.yaml) is valid and complete, and generators of client libraries can read it."""

import functools
import json
import re
import shlex
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry
from werkzeug.test import EnvironBuilder, run_wsgi_app

import app
import config
import models
from core import accounts, alerts, buttons, devices, heartbeats, long_poll, metric_rules, plans
from process.clock import DAY_MS
from providers import PROVIDERS
from tests.support.hostile import POLICY
from tests.support.openapi import DOCUMENT, OPERATIONS, SCHEMAS, camel_cased, endpoint, resolved
from tests.support.pages import Page
from tests.support.rows import each
from web import api_docs, mcp, metrics, rate_limits, rest, webhooks
from wire import errors, notification, validation

# --- the document -------------------------------------------------------------------------------------------


def test_the_document_is_valid_openapi(monkeypatch):
    from openapi_spec_validator import OpenAPIV31SpecValidator  # a fifth of a second for this test alone

    # Half of the time it would look for the same anchors in the same schema.
    monkeypatch.setattr(Registry, "__hash__", object.__hash__)
    monkeypatch.setattr(Registry, "crawl", functools.cache(Registry.crawl))
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def mappings(node):
    """Every mapping of the document."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from mappings(inner)


def test_no_comma_ends_a_sentence_of_it():
    keys = {key for mapping in mappings(DOCUMENT) for key in mapping}
    assert [key for key in keys if " " in str(key)] == []  # within braces a comma begins another key


def test_the_document_describes_every_api_route_and_no_other():
    public = {
        camel_cased(one) for one in app.ROUTES if not one.rule.startswith(("/app", "/docs/")) and one.rule[-1] != "/"
    }
    assert {one.rule for one in OPERATIONS.values()} == public


def test_the_document_says_which_credential_a_route_takes():
    schemes = {app.guards.api_key: "apiKey", app.guards.metrics_token: "metricsToken"}
    guards = {f"{one.method} {one.rule}": one.guard for one in app.ROUTES}
    expected = {one.id: schemes.get(guards[endpoint(one)]) for one in OPERATIONS.values()}
    assert {one.id: one.scheme for one in OPERATIONS.values()} == expected
    assert set(schemes.values()) == set(DOCUMENT["components"]["securitySchemes"])


def test_the_document_names_every_method_and_error_of_mcp():
    methods = SCHEMAS["Message"]["properties"]["method"]["description"]
    assert set(re.findall(r"`(.+?)`", methods)) == {name for named in mcp.METHODS.values() for name in named}
    codes = {value for value in vars(mcp).values() if isinstance(value, int) and value <= -32000}
    assert set(SCHEMAS["Reply"]["properties"]["error"]["properties"]["code"]["enum"]) == codes


def test_the_document_describes_every_status_and_error_code():
    described = {status for one in OPERATIONS.values() for status in one.answers if status >= 400} | {405}
    error = SCHEMAS["RequestError"]["properties"]
    assert described == set(errors.CODES) == set(error["statusCode"]["enum"])
    assert set(error["code"]["enum"]) == set(errors.CODES.values())


def test_examples_match_their_schemas():
    found = [one for one in mappings(DOCUMENT) if "schema" in one and {"example", "examples"} & set(one)]
    assert len(found) > 30
    for media in found:
        values = [one["value"] for one in media.get("examples", {}).values()] or [media["example"]]
        for value in values:
            Draft202012Validator(resolved(media["schema"])).validate(value)


def types(schema):
    """The types of a value beside null."""
    told = schema.get("type")
    return [one for one in (told if isinstance(told, list) else [told]) if one != "null"]


ASKED = [parameter["schema"] for one in OPERATIONS.values() for parameter in one.parameters]


@each(
    "those, are_not",
    [
        # A boolean that is a constant, a value of two types, an object that names no fields and does not say so.
        (lambda one: types(one) == ["boolean"], lambda one: {"const", "enum"} & set(one)),
        (lambda one: isinstance(one.get("type"), list), lambda one: len(types(one)) > 1),
        (lambda one: types(one) == ["object"], lambda one: not {"properties", "additionalProperties"} & set(one)),
        # Times in milliseconds do not fit into 32 bits, which is what some take for an integer.
        (
            lambda one: types(one) == ["integer"] and one not in ASKED,
            lambda one: not {"enum", "maximum", "format"} & set(one),
        ),
        # openapi-generator's Python client drops the fields of a schema that has alternatives beside them.
        (lambda one: {"oneOf", "anyOf", "allOf"} & set(one), lambda one: "properties" in one),
        # openapi-python-client leaves out what refers to a property of a schema.
        (lambda one: "$ref" in one, lambda one: "/properties/" in str(one["$ref"])),
        # Go's constructors, which openapi-generator writes, would not compile.
        (lambda one: None in one.get("enum", ()), lambda one: "default" in one),
    ],
)
def test_nothing_of_it_is_what_generators_of_client_libraries_do_not_read(those, are_not):
    found = [one for one in mappings(DOCUMENT) if those(one)]
    assert found and [one for one in found if are_not(one)] == []


def test_times_and_counts_have_64_bits():
    assert {SCHEMAS[name]["format"] for name in ("Time", "TimeOrNull", "Count")} == {"int64"}


def test_a_request_has_one_kind_of_body_unless_it_may_have_a_file():
    bodies = [one["requestBody"]["content"] for one in mappings(DOCUMENT) if "requestBody" in one]
    with_files = {"application/json", "multipart/form-data"}
    assert bodies and [set(content) for content in bodies if len(content) != 1] == [with_files]


def test_the_names_of_schemas_collide_with_nothing_that_generators_name():
    """Go's constructors (NewDevice), its constants of one value (Ok), and the types of JavaScript."""
    values = {str(value) for one in mappings(SCHEMAS) for value in [one.get("const"), *one.get("enum", ())]}
    taken = {f"New{name}" for name in SCHEMAS} | {value.capitalize() for value in values}
    taken |= {"Array", "Date", "Error", "Map", "Number", "Object", "Request", "Response", "Set", "String"}
    assert taken & set(SCHEMAS) == set()


@each("name, answer", DOCUMENT["components"]["responses"].items())
def test_the_example_of_an_error_has_the_words_of_the_service(name, answer):
    example = answer["content"]["application/json"]["example"]
    if "statusCode" in example:
        assert example["code"] == errors.CODES[example["statusCode"]]
    specific = {"Ambiguous", "BadRequest", "TooLarge", "TooManyEvents", "Several", "MetricsTooManyRequests"}
    specific |= {"MetricsBadRequest", "MetricsNotFound", "MetricsTooLarge"}
    if "error" in example and name not in specific:
        assert example["error"] in errors.SENTENCES.values()


def limits(schema, *names):
    return tuple(schema.get(name) for name in names)


def test_the_documents_limits_are_those_of_the_code():
    lengths = {
        (schema, field): (1, most)
        for schema, field, most in (
            ("NotificationInput", "title", validation.MAX_TITLE_CHARACTERS),
            ("NotificationInput", "body", validation.MAX_BODY_CHARACTERS),
            ("ApiKeyInput", "name", validation.MAX_NAME_CHARACTERS),
            ("AppleDevice", "name", validation.MAX_NAME_CHARACTERS),
            *((f"{kind}Input", "name", validation.MAX_NAME_CHARACTERS) for kind in ("Alert", "Heartbeat")),
            *(("RuleInput", field, validation.MAX_NAME_CHARACTERS) for field in ("project", "metric")),
            ("Metrics", "projectId", webhooks.MAX_ID),
            ("Metric", "metricId", webhooks.MAX_ID),
            ("Metric", "metricName", webhooks.MAX_METRIC_NAME),
        )
    }
    lengths["Metric", "unit"] = (None, webhooks.MAX_UNIT)
    for (schema, field), expected in lengths.items():
        assert limits(SCHEMAS[schema]["properties"][field], "minLength", "maxLength") == expected, (schema, field)
    longest = {
        "title": validation.MAX_TITLE_CHARACTERS,
        "body": validation.MAX_BODY_CHARACTERS,
        "link": notification.MAX_URL_CHARACTERS,
        **dict.fromkeys(("priority", "tag"), alerts.MAX_FIELD_TEMPLATE),
    }
    of_alert = SCHEMAS["AlertInput"]["properties"]
    assert {field: of_alert[field]["maxLength"] for field in longest} == longest
    of_heartbeat, for_s = SCHEMAS["HeartbeatInput"]["properties"], SCHEMAS["RuleInput"]["properties"]["forS"]
    assert limits(of_heartbeat["periodS"], "minimum", "maximum") == (heartbeats.MIN_S, heartbeats.MAX_PERIOD_S)
    assert limits(of_heartbeat["graceS"], "minimum", "maximum") == (heartbeats.MIN_S, heartbeats.MAX_GRACE_S)
    assert limits(for_s, "minimum", "maximum") == (0, metric_rules.MAX_FOR_S)
    of_metric = SCHEMAS["Metric"]["properties"]
    assert limits(SCHEMAS["Metrics"]["properties"]["metrics"], "minItems", "maxItems") == (1, rate_limits.MAX_METRICS)
    assert limits(of_metric["timestamp"], "minimum", "maximum") == (0, notification.LAST_TIME)
    assert f"{webhooks.MAX_METADATA_BYTES:,} bytes" in of_metric["metadata"]["description"]


def test_device_kinds_and_token_lengths_are_those_of_the_providers():
    inputs = {one["properties"]["kind"]["const"]: one for one in resolved(SCHEMAS["DeviceInput"])["oneOf"]}
    assert sorted(inputs) == sorted(PROVIDERS) == sorted(SCHEMAS["Device"]["properties"]["kind"]["enum"])
    forms = {kind: provider.token_form for kind, provider in PROVIDERS.items() if provider.token_form}
    assert set(forms) == {kind for kind, one in inputs.items() if "token" in one["properties"]}
    for kind, (pattern, _) in forms.items():
        least, most = limits(inputs[kind]["properties"]["token"], "minLength", "maxLength")
        taken = [bool(re.fullmatch(pattern, "0" * length)) for length in (least - 1, least, most, most + 1)]
        assert taken == [False, True, True, False]


def test_the_documents_limits_of_parameters_and_lists_are_those_of_the_code():
    listed = OPERATIONS["listNotifications"]
    limit, _, search = (parameter["schema"] for parameter in listed.parameters)
    assert (limit["minimum"], limit["default"]) == (1, rate_limits.DEFAULT_LISTED)
    assert f"more than {rate_limits.MAX_LISTED} counts" in listed.parameters[0]["description"]
    page = listed.answers[200]["content"]["application/json"]["schema"]["properties"]
    assert page["notifications"]["maxItems"] == rate_limits.MAX_LISTED
    assert search["maxLength"] == validation.MAX_SEARCH_CHARACTERS
    assert f"ends early at {rest.MAX_PAGE_BYTES // 1_000} KB" in listed.operation["description"]
    points = OPERATIONS["getMetric"].answers[200]["content"]["application/json"]["schema"]["properties"]["points"]
    assert points["maxItems"] == metrics.MAX_POINTS
    assert OPERATIONS["getMetric"].parameters[2]["schema"]["maximum"] == notification.LAST_TIME
    assert OPERATIONS["sendNotification"].parameters[0]["schema"]["maxLength"] == 255
    assert rest.IDEMPOTENCY_KEY.fullmatch("!" * 255) and not rest.IDEMPOTENCY_KEY.fullmatch("!" * 256)


def test_numbers_in_the_documents_sentences_are_those_of_the_code():
    said = {one.id: one.operation.get("description", "") for one in OPERATIONS.values()}
    assert f"at most {accounts.MAX_LIVE_KEYS:,} keys" in said["generateApiKey"]
    assert f"the newest {models.MAX_LISTED_REVOKED:,}" in said["listApiKeys"]
    assert f"at most {alerts.MAX_ALERTS:,} alerts" in said["createAlert"]
    assert f"at most {heartbeats.MAX_HEARTBEATS} heartbeats" in said["createHeartbeat"]
    assert f"at most {metric_rules.MAX_RULES} rules" in said["createRule"]
    assert f"at most {devices.MAX_DEVICES} devices" in said["addDevice"]
    assert f"{rate_limits.ALERT_EVENTS.amount} requests a minute" in said["receiveEvent"]
    assert f"{rate_limits.FLOOD.amount} within a minute" in said["receiveEvent"]
    assert f"more than {metrics.MAX_POINTS:,}, the newest {metrics.MAX_CHARTED:,}" in said["getMetric"]
    assert f"up to {metrics.MAX_LISTED_SERIES} at once" in said["listMetrics"]
    assert f"{buttons.LIFE_MS // DAY_MS} days" in said["pressButton"]
    assert f"{rate_limits.BUTTONS.amount} tries a minute" in said["pressButton"]
    wait = OPERATIONS["getNotification"].parameters[1]
    assert wait["schema"]["maximum"] == rest.MAX_WAIT_S and f"At most {long_poll.MAX_WAITING} " in wait["description"]
    for name, plan in plans.PLANS.items():
        assert re.search(rf"{plan.metrics_per_hour:,} on (the plan )?`{name}`", said["storeMetrics"])
    too_many = DOCUMENT["components"]["responses"]["TooManyRequests"]["description"]
    assert f"{plans.PLANS['starter'].rest_per_minute} on the plan `starter`" in too_many
    assert f"{plans.PLANS['pro'].rest_per_minute:,} on `pro` and `scale`" in too_many
    assert plans.PLANS["pro"].rest_per_minute == plans.PLANS["scale"].rest_per_minute
    stats = SCHEMAS["Stats"]["properties"]
    assert stats["historyLimitDays"]["enum"] == [plan.history_days for plan in plans.PLANS.values()]
    assert stats["plan"]["enum"] == list(plans.PLANS)


# --- /openapi.json and /docs --------------------------------------------------------------------------------


def test_the_json_is_the_document_with_the_address_that_it_was_asked_at(service):
    answer = service.client.get("/openapi.json", base_url="http://bell.test:8000")
    assert answer.json == {**DOCUMENT, "servers": [{"url": "http://bell.test:8000"}]}


@each("host", ["[::::1]", "bell.test:65536", "my_bell", "a b"])
def test_with_a_host_header_that_holds_no_address_the_json_says_where_the_service_listens(host, service, owner):
    def answered(method, path, **more):  # the test client makes an address of the header itself
        headers = {"Host": host, "Authorization": f"Bearer {owner.key}"}
        environ = EnvironBuilder(path, method=method, headers=headers, **more).get_environ()
        body, status, _ = run_wsgi_app(service.app, environ)
        return status[:3], json.loads(b"".join(body))

    assert answered("GET", "/openapi.json")[1]["servers"] == [{"url": "http://127.0.0.1:8000"}]
    assert answered("POST", "/news", data="hi")[0] == "200"


def test_the_json_says_base_url_where_it_is_set(make_service):
    service = make_service(BASE_URL="https://bell.example.org")
    assert service.client.get("/openapi.json").json["servers"] == [{"url": "https://bell.example.org"}]


_pages = []


def docs(service):
    """The page, which is the same one for all these services: to make it and to parse it takes 50 ms."""
    if not _pages:
        _pages.append(Page(service.client.get("/docs").text))
    return _pages[0]


@pytest.fixture
def page(service):
    return docs(service)


@each("operation", OPERATIONS.values())
def test_the_reference_shows_every_part_of_an_operation(page, operation):
    said = page.section(operation.operation["summary"])
    assert f"{operation.method} {operation.path}" in said
    assert all(parameter["name"] in said for parameter in operation.parameters)
    assert f"Errors of “{operation.operation['summary']}”" in said
    assert ("Needs no API key." in said) == (operation.scheme is None)
    assert ("with the setting METRICS_TOKEN, and no API key." in said) == (operation.scheme == "metricsToken")
    for status, answer in operation.answers.items():
        assert str(status) in said and answer["description"].replace("`", "") in said


def test_the_page_says_the_limits_of_a_field(page):
    said = page.section("Send a notification")
    assert "title string, 1 to 1,000 characters, required" in said
    assert "Idempotency-Key header, string, 1 to 255 characters" in said
    assert "limit query, integer, at least 1, default 50" in page.section("List and search notifications")
    assert "metrics[].unit string or null, at most 32 characters" in page.section("Store metrics")
    assert "lastUsedAt" in page.section("List the API keys") and "optional" in page.section("List the API keys")


@each("operation", OPERATIONS.values())
def test_a_command_of_the_page_works(world, moved_clock, operation):
    moved_clock.advance(1)  # a key's limit is 100 a minute
    (command,) = docs(world.service).texts_of("code", id=f"curl-{operation.id}")
    curl, *arguments = shlex.split(command.replace(" \\ ", " "))
    method = "POST" if "-d" in arguments else "GET"
    if "-X" in arguments:
        method = arguments[arguments.index("-X") + 1]
    assert (curl, method) == ("curl", operation.method)
    path = urlsplit(next(argument for argument in arguments if argument.startswith("http://localhost/")))
    sent = {"data": arguments[arguments.index("-d") + 1]} if "-d" in arguments else {}
    if operation.scheme:
        name, value = arguments[arguments.index("-H") + 1].split(": ")
        variable = f"${api_docs.VARIABLES[operation.scheme]}"
        sent["headers"] = {name: value.replace(variable, world.credentials[operation.scheme])}
    answer = world.service.client.open(f"{path.path}?{path.query}", method=method, **sent)
    assert answer.status_code in ((404,) if "{" in operation.path else (200, 201))


def test_the_page_has_the_policy_of_the_app_and_nothing_that_it_forbids(service, page):
    answer = service.client.get("/docs")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "Set-Cookie" not in answer.headers
    assert page.all("style") == [] and all("src" in script for script in page.all("script"))
    names = {name for element in page.elements for name in element.attributes}
    assert not {name for name in names if name == "style" or name.startswith("on")}


def test_the_page_can_be_found_through_by_its_headings_and_links(page):
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"] for link in page.all("a")} == {"/app/", "/openapi.json"}
    of_operations = [part for part in page.elements if part.attributes.get("id") in OPERATIONS]
    assert len(of_operations) == len(OPERATIONS)
    unfolded = [any(outer.tag == "details" for outer in part.within) for part in of_operations]  # by a link
    assert all(unfolded)
    levels = [int(element.tag[1]) for element in page.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    labels = {part["aria-labelledby"] for part in page.all("section") if "aria-labelledby" in part}
    assert labels <= set(ids)


@each("host, named", [("a.test", "a.test"), ("b.test:81", "b.test:81"), ('x"><b>', "127.0.0.1:8000")])
def test_the_reference_names_the_address_that_it_was_asked_at(service, host, named):
    text = service.client.get("/docs", headers={"Host": host}).text
    assert f"curl http://{named}/api/v1/stats" in text and "><b>" not in text


def test_the_documented_largest_body_is_the_default():
    default = next(one.default for one in config.variables() if one.name == "MAX_BODY_BYTES")
    told = DOCUMENT["components"]["responses"]["TooLarge"]
    assert int(default) == 2**20 and "1 MiB" in told["description"]
    assert default in told["content"]["application/json"]["example"]["error"]
