"""The alert rules and the dashboard in deploy/: they ask for figures that exist, and promtool finds them valid."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.server import ROOT

HERE = Path(__file__).parent
RULES = ROOT / "deploy/prometheus-rules.yml"
DASHBOARD = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
OF_GRAFANA = {"$__rate_interval": "5m", "$instance": ".*"}  # variables, with values that they may have
PARTS = ("_total", "_bucket", "_count", "_sum")


def asked_by_rules():
    return [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def asked_by_dashboard():
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def figures(text):
    """The names of our figures in a text, without the endings that their kind gives them."""
    return {re.sub(f"({'|'.join(PARTS)})$", "", name) for name in re.findall(r"\bpocketbell_\w+", text)}


def promtool(*words):
    program = shutil.which("promtool") or pytest.skip("promtool is not installed")
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_ask_for_figures_that_the_page_on_deployment_names():
    """That page names the figures of /metrics and no other (tests/web/test_prometheus.py)."""
    known = figures((ROOT / "docs/deployment.md").read_text())
    assert figures(" ".join(asked_by_rules())) <= known
    assert figures(" ".join(asked_by_dashboard())) == known


def test_the_panels_of_the_dashboard_have_numbers_and_places_of_their_own():
    places = [tuple(panel["gridPos"][name] for name in "xywh") for panel in DASHBOARD["panels"]]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(set(places)) == len(places)
    cells = [(x + dx, y + dy) for x, y, w, h in places for dx in range(w) for dy in range(h)]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


def test_promtool_finds_the_rules_valid_and_they_fire_when_they_should():
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(HERE / "prometheus-rules.test.yml"))


def test_promtool_finds_the_queries_of_the_dashboard_valid(tmp_path):
    queries = asked_by_dashboard()
    for name, value in OF_GRAFANA.items():
        queries = [query.replace(name, value) for query in queries]
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "rules.yml"))
