"""Heartbeats: making them, pinging them, and what they said."""

EMAIL = "owner@example.org"


class Pinged:
    """A heartbeat with its address."""

    def __init__(self, service, caller, *options, name="Backup"):
        result = service.flask("heartbeat", "create", EMAIL, name, *options)
        assert result.exit_code == 0, result.output
        self.service, self.caller, self.url, self.name = service, caller, result.output.strip(), name
        self.path = "/ping/" + self.url.rpartition("/")[2]
        self.id = next(line.split("\t")[0] for line in self.run("list").splitlines() if self.url in line)

    def run(self, command, *args):
        """A command on the owner's heartbeats, and what it printed."""
        result = self.service.flask("heartbeat", command, EMAIL, *args)
        assert result.exit_code == 0, result.output
        return result.output

    def ping(self, signal="", method="POST", **more):
        answer = self.service.client.open(self.path + signal, method=method, **more)
        assert answer.status_code == 200, answer.text
        return answer

    @property
    def watch(self):
        watches = self.caller.get("/watches").json["watches"]
        return next(watch for watch in watches if watch["id"] == self.id)

    @property
    def state(self):
        return self.watch["state"]


def told(caller):
    """The titles, without the prefix, and bodies of what the owner was told, the oldest first."""
    listed = caller.listed("?limit=100")
    return [(one["title"].removeprefix("MCP - "), one["body"]) for one in reversed(listed)]
