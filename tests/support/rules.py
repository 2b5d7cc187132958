"""Rules on metrics: making them, and sending values to them."""

from tests.support.heartbeats import EMAIL


class Ruled:
    """A rule on a metric of the owner."""

    def __init__(self, service, caller, *words, project="web", metric="cpu", name="CPU"):
        result = service.flask("rule", "create", EMAIL, project, metric, *words)
        assert result.exit_code == 0, result.output
        self.caller, self.id = caller, result.output.strip()
        self.project, self.metric, self.name = project, metric, name

    def sends(self, *values, **more):
        """One batch of values, or of pairs of a value and its timestamp."""
        send(self.caller, *values, project=self.project, metric=self.metric, name=self.name, **more)

    @property
    def listed(self):
        rules = self.caller.get("/watches").json["rules"]
        return next(rule for rule in rules if rule["id"] == self.id)

    @property
    def state(self):
        return self.listed["state"]


def send(caller, *values, project="web", metric="cpu", name="CPU", unit="%"):
    """One batch of values, or of pairs of a value and its timestamp."""
    pairs = [value if isinstance(value, tuple) else (value, None) for value in values]
    metrics = [
        {"metricId": metric, "metricName": name, "value": value, "unit": unit}
        | ({} if at is None else {"timestamp": at})
        for value, at in pairs
    ]
    answer = caller.request("POST", "/api/webhooks/custom", json={"projectId": project, "metrics": metrics})
    assert answer.status_code == 200, answer.text
