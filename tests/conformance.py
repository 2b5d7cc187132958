"""The service as it is run, with a real key, against tools that know its /openapi.json alone.

Schemathesis: do the answers fit? A client library that openapi-python-client makes: does it send?
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.accounts import OWNER
from tests.support.server import ROOT, serving

CLIENT = """
import sys
from pocketbell_client import AuthenticatedClient, models
from pocketbell_client.api.notifications import list_notifications, send_notification
from pocketbell_client.api.webhooks import receive_event, store_metrics

address, key, code = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=key, raise_on_unexpected_status=True)
sent = send_notification.sync(client=client, body=models.NotificationInput(title="From a client", body="text"))
listed = list_notifications.sync(client=client, limit=1).notifications[0]
assert (listed.id, listed.title, listed.created_at) == (
    sent.notification.id, "MCP - From a client", sent.notification.created_at
)
refused = send_notification.sync(client=client, body=models.NotificationInput(title="", body="text"))
assert isinstance(refused, models.RequestError) and refused.status_code == 400
buttons = [models.Action(label="Yes", answer="y"), models.Action(label="Log", url="https://example.org/")]
asked = models.NotificationInput(title="Deploy?", body="now", actions=buttons)
assert send_notification.sync(client=client, body=asked).notification.actions == buttons
event = models.EventPayload.from_dict({"title": "An event", "n": [1, {"a": None}]})
assert receive_event.sync(code, client=client, body=event).notification_id
metric = models.Metric(metric_id="m", metric_name="M", value=1.5)
assert store_metrics.sync(client=client, body=models.Metrics(project_id="p", metrics=[metric])).metrics_stored == 1
"""


def main(tools):
    """Ends with the status of the first tool that failed, else 0."""
    token = {"METRICS_TOKEN": "a-token-of-24-characters"}
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory) / "data", **token) as server:
        key = server.wait_until_ready().owner_key()
        code = server.flask("alert", "create", OWNER, "Conformance").strip().rpartition("/")[2]
        environ = {**server.environ, "KEY": key, "SHORT_CODE": code, "PYTHONPATH": "client"}
        address = f"http://127.0.0.1:{server.port}"
        document = f"{address}/openapi.json"
        run = [tools / "schemathesis", "--config-file", ROOT / "tests/schemathesis.toml", "run", document]
        commands = [
            [tools / "openapi-python-client", "generate", "--url", document, "--output-path", "client"],
            [tools / "python", "-c", CLIENT, address, key, code],
            [*run, "--seed", "1", "--continue-on-failure"],
        ]
        statuses = (subprocess.run(one, env=environ, cwd=directory, check=False).returncode for one in commands)
        return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
