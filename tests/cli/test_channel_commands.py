"""`flask device` with channels: adding one, its secret, its role."""

import json
import re

from tests.support.accounts import OWNER
from tests.support.commands import printed

URL = "https://hooks.example.com/x"


def test_a_generic_webhook_is_added_with_its_secret_on_a_second_line(owned):
    id_, secret = owned("device", "add", OWNER, "webhook", URL).output.split()
    assert re.fullmatch(r"whsec_[0-9A-Za-z+/]{32}", secret)
    assert printed(owned("device", "list", OWNER)).split("\t")[:3] == [id_, "webhook", "Webhook"]
    assert secret not in owned("device", "list", OWNER, "--json").output


def test_a_chat_is_added_with_its_role_and_its_id_alone_is_printed(owned):
    options = ("--preset", "slack", "--role", "always", "--min-priority", "urgent", "--name", "Ops")
    id_ = printed(owned("device", "add", OWNER, "webhook", URL, *options))
    assert re.fullmatch("[0-9a-f]{32}", id_)
    (device,) = json.loads(owned("device", "list", OWNER, "--json").output)
    shown = {name: device[name] for name in ("role", "minPriority", "preset", "name")}
    assert shown == {"role": "always", "minPriority": 5, "preset": "slack", "name": "Ops"}


def test_the_role_is_changed(owned):
    id_ = printed(owned("device", "add", OWNER, "webhook", URL, "--preset", "slack"))
    assert printed(owned("device", "set", OWNER, id_, "--role", "fallback", "--after", "600")) == (
        "Slack: priority 4 and higher, no quiet hours, fallback after 600 s."
    )
    assert printed(owned("device", "set", OWNER, id_, "--role", "always")).endswith(", always.")


def test_the_option_after_says_from_when_to_when(owned):
    refused = owned("device", "add", OWNER, "webhook", URL, "--after", "1")
    assert (refused.exit_code, "'--after': 1 is not in the range 60<=x<=3600." in refused.output) == (2, True)
