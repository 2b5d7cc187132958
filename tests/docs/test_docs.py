"""The README and docs/ name every variable, command and route that exists, and nothing else."""

import json
import re
import tomllib

import click

import app
import cli
import config
from bench.__main__ import PARTS
from core import alerts, message_templates
from tests.support.rows import each
from tests.support.server import ROOT
from web import mcp
from wire.strict_json import parse_event

README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs/command-line.md").read_text()
API = (ROOT / "docs/api.md").read_text()


def commands():
    for name, command in cli.pocketbell.commands.items():
        if isinstance(command, click.Group):
            yield from (f"pocketbell {name} {inner}" for inner in command.commands)
        else:
            yield f"pocketbell {name}"


def test_the_readme_names_no_variable_that_is_not_there():
    table = README.split("## Settings")[1].split("## ")[0]
    named = {name for row in re.findall(r"^\| (`[^|]*) \|", table, re.M) for name in re.findall(r"`([A-Z_]+)`", row)}
    assert named == {variable.name for variable in config.variables()}


@each("variable", config.variables())
def test_the_readme_states_the_default_of_a_variable(variable):
    row = next(line for line in README.splitlines() if line.startswith("|") and f"`{variable.name}`" in line)
    shown_otherwise = variable.name == "WEBPUSH_HOSTS" or variable.default is None
    assert shown_otherwise or f"`{variable.default}`" in row


def test_the_page_on_alerts_names_all_icons():
    told = (ROOT / "docs/alerts.md").read_text().split("## Icons")[1].split("##")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", told)) == alerts.ICONS


@each("command", sorted(commands()))
def test_the_page_on_the_command_line_names_every_command(command):
    assert f"`{command}" in COMMANDS


def test_no_command_is_named_that_is_not_there():
    groups = "|".join(name for name, one in cli.pocketbell.commands.items() if isinstance(one, click.Group))
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    named = set(re.findall(rf"(pocketbell (?:(?:{groups}) [a-z]+|backup|import|doctor|send))\b", pages))
    assert named and named <= set(commands())


def test_no_page_calls_flask_by_its_path():
    pages = [page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "bin/flask" in page.read_text()]
    assert pages == []


def written(route):
    return re.sub(r"<\w+:", "<", f"{route.method} {route.rule}")


@each("route", [r for r in app.ROUTES if not r.rule.startswith("/app") and r.rule != "/"])
def test_the_api_page_names_every_route(route):
    assert f"`{written(route)}`" in API


def test_the_api_page_names_no_route_that_is_not_there():
    named = set(re.findall(r"^\| `([A-Z]+ /\S+)`", API, re.M))
    assert named <= {written(route) for route in app.ROUTES}


ALERTS = (ROOT / "docs/alerts.md").read_text()
EXAMPLES = re.findall(r"^\|.*\| `(\{\{.*\}\})` \| `(.*)` \|$", ALERTS, re.M)


@each("template, text", EXAMPLES)
def test_a_filter_gives_the_result_in_the_page_on_alerts(template, text):
    payload = parse_event(re.search(r"on `(\{.*\})` \| gives", ALERTS)[1].encode())
    assert message_templates.fill(template.replace("\\|", "|"), payload, 100) == (text, ())


def test_the_page_on_alerts_shows_every_filter():
    assert {name for name in message_templates.FILTERS if f"`{name}" in ALERTS} == set(message_templates.FILTERS)


@each("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_a_page_links_to_files_that_are_there(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists()


def test_the_files_that_the_readme_places_are_there():
    table = README.split("## Where things are")[1]
    paths = re.findall(r"`([\w/.]+(?:\.(?:py|sql|md)|/))`", table)
    assert paths and all((ROOT / path).exists() for path in paths)


def test_the_page_on_performance_names_parts_of_the_measurements_that_are_there():
    rows = (ROOT / "docs/performance.md").read_text().split("`make bench ONLY=` |\n")[1].split("\n\n")[0]
    named = {part for parts in re.findall(r"\| `\"?([a-z ]+)\"?` \|$", rows, re.M) for part in parts.split()}
    assert named and named <= set(PARTS)


def test_the_readme_can_be_read_in_one_go():
    assert len(README.splitlines()) <= 220, "move a part of it to a page in docs/"


ASSISTANTS = (ROOT / "docs/assistants.md").read_text()
CONFIGURATIONS = {
    heading: json.loads(block) if language == "json" else tomllib.loads(block)
    for heading, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", ASSISTANTS, re.M | re.S)
    for language, block in re.findall(r"```(json|toml)\n(.*?)```", text, re.S)
    if heading != "curl"
}


def server_of(configuration):
    [servers] = [configuration[name] for name in ("mcpServers", "servers", "mcp_servers") if name in configuration]
    return servers["pocketbell"]


def test_the_page_on_assistants_configures_the_common_ones():
    named = ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex CLI", "Gemini CLI"]
    assert list(CONFIGURATIONS) == named


@each("assistant", CONFIGURATIONS)
def test_a_configuration_names_our_address_and_the_key_as_bearer(assistant):
    server = server_of(CONFIGURATIONS[assistant])
    if "command" in server:
        address, header = server["args"][2], server["args"][-1]
        assert header == "Authorization:${AUTHORIZATION}"
        authorization = server["env"]["AUTHORIZATION"]
    else:
        [address] = [server[name] for name in ("url", "httpUrl") if name in server]
        authorization = server.get("headers", {}).get("Authorization")
    assert address == f"http://127.0.0.1:8000{app.ASSISTANTS}"
    assert authorization in ("Bearer sk_test_...", "Bearer ${input:pocketbell-key}") or (
        server["bearer_token_env_var"] == "POCKETBELL_KEY" and "export POCKETBELL_KEY=sk_test_..." in ASSISTANTS
    )


def test_the_page_on_assistants_names_every_tool():
    assert re.findall(r"^\| `(\w+)` \|", ASSISTANTS, re.M) == list(mcp.TOOLS)


def test_the_curl_example_on_assistants_prints_its_shown_output(owner):
    text = ASSISTANTS.split("## curl")[1]
    sent, answer = re.search(r"-d '(.*?)'", text, re.S)[1], json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1])
    given = owner.request("POST", "/mcp", data=sent).json
    for one in (given, answer):
        written_out = json.loads(one["result"]["content"][0].pop("text"))
        assert written_out == one["result"]["structuredContent"]
        for name in ("id", "createdAt"):
            one["result"]["structuredContent"]["notification"].pop(name)
    assert given == answer


def test_the_page_on_assistants_names_every_version():
    assert all(f"`{version}`" in ASSISTANTS for version in mcp.VERSIONS)


ARCHITECTURE = re.sub(r"```.*?```", "", (ROOT / "docs/architecture.md").read_text(), flags=re.S)
APART = (".venv", "bench", "tests", "tools", "torture")
OUR_PYTHON = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in APART]


@each("path", sorted(set(re.findall(r"`([\w./-]+(?:\.(?:py|sql|md|yaml)|/))`", ARCHITECTURE))))
def test_the_files_that_the_page_on_architecture_names_are_there(path):
    assert (ROOT / path).exists()


def test_the_functions_that_the_page_on_architecture_names_are_there():
    source = "".join(path.read_text() for path in OUR_PYTHON)
    named = set(re.findall(r"`(\w+)\(\)`", ARCHITECTURE))
    assert named and {name for name in named if f"def {name}(" not in source} == set()


FILE = r"`([\w./-]+\.py)`"
PLACED = {(name, path) for name, path in re.findall(rf"`(\w+(?:\(\))?)`\s+(?:in\s+|\(){FILE}", ARCHITECTURE)}
PLACED |= {(name, path) for path, name in re.findall(rf"{FILE}\s+\(`(\w+(?:\(\))?)`\)", ARCHITECTURE)}


@each("name, path", sorted(PLACED))
def test_a_file_has_what_the_page_on_architecture_says_is_in_it(name, path):
    function = name.removesuffix("()")
    wanted = rf"\b{name}\b" if function == name else rf"^ *def {function}\("
    assert re.search(wanted, (ROOT / path).read_text(), re.M)
