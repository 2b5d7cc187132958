"""A body that is still on the way: a credential that becomes void meanwhile does nothing, and others keep threads."""

import json

from core import accounts
from process import clock
from tests.support.accounts import OWNER
from tests.support.rows import each
from tests.support.slow_bodies import post_slowly
from tests.support.tables import query
from web.request_body import MAX_RECEIVING, MAX_RECEIVING_OF_ONE

JSON_DOORS = {
    "/api/v1/notifications/send": {"title": "Backup", "body": "finished"},
    "/api/v1/api-keys/generate": {"name": "another"},
    "/api/v1/devices": {"kind": "fcm", "token": "t"},
    "/api/webhooks/custom": {"projectId": "p", "metrics": [{"metricId": "m", "metricName": "M", "value": 1}]},
    "/mcp": {
        **{"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
        "params": {"name": "send_notification", "arguments": {"title": "Backup", "body": "finished"}},
    },
}
TABLES = ("notification", "device", "metric", "api_key")
COUNTS = f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in TABLES)}"


@each("path", JSON_DOORS)
@each("more", [{}, {"padding": "x" * 66_000}])  # a small body, and one that waits for its turn
def test_a_key_that_is_revoked_meanwhile_does_nothing(service, owner, path, more):
    made = owner.post("/api-keys/generate", {"name": "short"}).json["apiKey"]
    before = query(service, COUNTS)
    headers = {"Authorization": f"Bearer {made['fullKey']}"}
    revoke = lambda: accounts.revoke_key(accounts.find_account(OWNER).seq, made["id"], clock.now_ms())  # noqa: E731
    answer = post_slowly(service.client, path, json.dumps(JSON_DOORS[path] | more).encode(), revoke, headers=headers)
    assert (answer.status_code, query(service, COUNTS)) == (401, before)


def test_few_bodies_of_one_account_are_waited_for_so_that_its_slow_clients_leave_threads_for_others(owner, hook):
    assert MAX_RECEIVING_OF_ONE < MAX_RECEIVING
    addresses = ["/api/v1/notifications/send", "/door", "/mcp", f"/p/{hook.code}"] * (MAX_RECEIVING_OF_ONE // 4 + 1)
    headers, answers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}, []

    def send_another():
        if addresses:
            path = addresses.pop()
            answers.append(post_slowly(owner.service.client, path, b'{"title": "t"}', send_another, headers=headers))

    send_another()
    statuses = [answer.status_code for answer in answers]
    assert (statuses[0], len(statuses), statuses.count(429)) == (429, MAX_RECEIVING_OF_ONE + 1, 1)
    assert owner.send().status_code == 200
