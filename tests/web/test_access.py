"""Who may come in, and what others are told: the authorization header, the order of checks, 404, error shapes."""

import hashlib
import logging
import re

import app
from tests.support.answers import error
from tests.support.rows import each
from tests.support.tables import NO_SUCH_TABLE, alter
from wire import errors

ROUTES = [(one.method, re.sub("<[^>]+>", "x", one.rule)) for one in app.ROUTES if one.rule.startswith("/api/v1/")]
ROUTES += [("DELETE", "/api/v1/api-keys/generate")]  # as an id
PATHS = sorted({path for _, path in ROUTES})
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"]


def assert_unauthorized(answer):
    assert (answer.status_code, answer.json) == (401, error(401, "UNAUTHORIZED", errors.SENTENCES[401]))
    assert answer.headers.getlist("WWW-Authenticate") == ["Bearer"]


# The authorization header

MALFORMED = {
    "no header": lambda key: [],
    "empty": lambda key: [""],
    "the scheme alone": lambda key: ["Bearer"],
    "the scheme and a space": lambda key: ["Bearer "],
    "the key alone": lambda key: [key],
    "Basic": lambda key: [f"Basic {key}"],
    "a scheme that begins alike": lambda key: [f"Bearers {key}"],
    "the scheme twice": lambda key: [f"Bearer Bearer {key}"],
    "no space": lambda key: [f"Bearer{key}"],
    "a parameter": lambda key: [f"Bearer token={key}"],
    "a tab": lambda key: [f"Bearer\t{key}"],
    "a no-break space": lambda key: [f"Bearer\xa0{key}"],
    "a no-break space at the end": lambda key: [f"Bearer {key}\xa0"],
    "a next-line character at the end": lambda key: [f"Bearer {key}\x85"],
    "a form feed at the end": lambda key: [f"Bearer {key}\x0c"],
    "a NUL at the end": lambda key: [f"Bearer {key}\x00"],
    "two headers": lambda key: [f"Bearer {key}", f"Bearer {key}"],
    "two headers, the second of another scheme": lambda key: [f"Bearer {key}", "Basic eDp5"],
    "two credentials with a comma": lambda key: [f"Bearer {key}, Bearer {key}"],
    "two keys with a comma": lambda key: [f"Bearer {key},{key}"],
    "two keys with a space": lambda key: [f"Bearer {key} {key}"],
    "a word after the key": lambda key: [f"Bearer {key} x"],
    "quotes": lambda key: [f'Bearer "{key}"'],
    "padding": lambda key: [f"Bearer {key}="],
    "upper-case digits": lambda key: ["Bearer " + key[:8] + key[8:].upper()],
    "an upper-case prefix": lambda key: ["Bearer " + key[:8].upper() + key[8:]],
    "no prefix": lambda key: ["Bearer " + key[8:]],
    "another marker": lambda key: ["Bearer " + key.replace("test", "live")],
    "47 digits": lambda key: ["Bearer " + key[:-1]],
    "49 digits": lambda key: ["Bearer " + key + "0"],
    "a space within": lambda key: ["Bearer " + key[:20] + " " + key[20:]],
    "one digit changed": lambda key: ["Bearer " + key[:-1] + ("0" if key[-1] != "0" else "1")],
    "unknown": lambda key: ["Bearer sk_test_" + "0" * 48],
    "the preview": lambda key: ["Bearer " + key[:16]],
    "the hash": lambda key: ["Bearer " + hashlib.sha256(key.encode()).hexdigest()],
    "percent-encoded": lambda key: ["Bearer " + key.replace("_", "%5F")],
    "a letter with an accent": lambda key: ["Bearer " + key[:-1] + "\xe9"],
    "full-width digits": lambda key: ["Bearer sk_test_" + ("０" * 48).encode().decode("latin-1")],
    "a superscript digit": lambda key: ["Bearer " + key[:-1] + "\xb2"],
    "very long": lambda key: ["Bearer " + "a" * 100_000],
}


@each("form", MALFORMED)
def test_anything_but_exactly_one_bearer_key_is_401(service, owner, form):
    headers = [("Authorization", value) for value in MALFORMED[form](owner.key.lower())]
    assert_unauthorized(service.client.get("/api/v1/stats", headers=headers))


@each("name", ["X-API-Key", "Cookie", "Proxy-Authorization", "X-Authorization"])
@each("written", ["{}", "Bearer {}", "token={0}; Authorization=Bearer {0}"])
def test_a_key_is_taken_from_no_other_header_and_never_from_the_query(service, owner, name, written):
    query = {"token": owner.key, "access_token": owner.key, "authorization": f"Bearer {owner.key}"}
    headers = {name: written.format(owner.key)}
    assert_unauthorized(service.client.get("/api/v1/stats", headers=headers, query_string=query))


@each("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_case_insensitive(service, owner, scheme):
    headers = {"Authorization": f"{scheme} {owner.key}"}
    assert service.client.get("/api/v1/stats", headers=headers).status_code == 200


# Unknown paths and wrong methods under /api/v1


@each("path", PATHS)
def test_a_wrong_method_is_405_with_a_key_and_names_the_right_ones(owner, moved_clock, path):
    moved_clock.advance(61)  # a key's limit is 100 a minute
    right = {allowed for allowed, route in ROUTES if route == path}
    for method in [wrong for wrong in METHODS if wrong not in right]:
        answer = owner.request(method, path)
        assert (answer.status_code, answer.json) == (405, error(405, "VALIDATION_ERROR")), method
        told = answer.json["error"].removeprefix("This address takes only ").removesuffix(".")
        assert answer.headers["Allow"] == told.replace(" and ", ", "), method
        assert right <= set(told.replace(" and ", ", ").split(", ")) <= right | {"HEAD"}


@each("path", [path for method, path in ROUTES if method == "GET"])
def test_head_answers_like_get_without_a_body(owner, path):
    got, head = owner.request("GET", path), owner.request("HEAD", path)
    assert (head.status_code, head.data, head.content_type) == (got.status_code, b"", got.content_type)
    assert int(head.headers["X-RateLimit-Remaining"]) == int(got.headers["X-RateLimit-Remaining"]) - 1


# The same error shape everywhere


def test_a_fault_of_the_server_is_500_in_the_same_shape_and_its_detail_is_in_the_log_alone(service, owner, caplog):
    alter(service, "DROP TABLE alert")
    with caplog.at_level(logging.INFO):
        answer = owner.get("/alerts")
    assert (answer.status_code, answer.json) == (500, error(500, "INTERNAL_ERROR"))
    assert answer.headers["X-RateLimit-Remaining"] == "99"
    for detail in ("alert", "table", "sql", "Traceback", "Error:"):
        assert detail.lower() not in answer.json["error"].lower()
    assert NO_SUCH_TABLE in caplog.text
    assert owner.key not in caplog.text and owner.key[16:] not in caplog.text


@each(
    "method, path",
    [
        ("POST", "/api/v1/{key}"),
        ("DELETE", "/api/v1/api-keys/{key}"),
        ("GET", "/api/v1/notifications?cursor={key}"),
        ("GET", "/api/v1/notifications?limit={key}"),
        ("GET", "/{key}"),
    ],
)
def test_an_error_never_repeats_a_key(owner, caplog, method, path):
    with caplog.at_level(logging.INFO):
        answer = owner.request(method, path.format(key=owner.key))
    assert answer.status_code in (400, 404)
    assert owner.key not in answer.text and owner.key not in str(answer.headers) and owner.key not in caplog.text


def test_the_most_talkative_log_holds_no_payload_and_no_token(owner, caplog):
    """With LOG_LEVEL=debug every library's loggers speak too."""
    with caplog.at_level(logging.DEBUG):
        owner.send("title-of-it", "body-of-it")
        owner.post("/devices", {"kind": "fcm", "token": "token-of-it"})
        owner.get("/notifications?search=search-for-it")
        owner.delete(f"/api-keys/{owner.key}")
        for value in (1, "value-of-it"):
            metric = {"metricId": "m", "metricName": "name-of-it", "value": value}
            owner.request("POST", "/api/webhooks/custom", json={"projectId": "project-of-it", "metrics": [metric]})
    for secret in (*(f"{what}-of-it" for what in ("title", "body", "token", "value", "name", "project")), owner.key):
        assert secret not in caplog.text, secret
