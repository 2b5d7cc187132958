"""docs/senders.md and docs/coming-from.md name every sender; what can run here runs against a real service.

Alertmanager, Apprise, PyYAML and systemd take part where they are installed.
"""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

import app
from core import presets
from tests.support.payloads import PRESETS, made
from tests.support.rows import each
from tests.support.server import BIN, PATIENCE_S, ROOT, bearer, free_port, serving, wait_until

SENDERS = (ROOT / "docs/senders.md").read_text()
COMING_FROM = (ROOT / "docs/coming-from.md").read_text()
HEADINGS = re.findall(r"^## (.+)$", SENDERS, re.M)
SCRIPTS = ["curl", "A shell function", "cron", "systemd", "Monit", "Python", "Apprise"]
PROGRAMS = [preset for preset in presets.PRESETS if preset is not presets.OWN_JSON]
OTHERS = ["changedetection.io", "Watchtower", "borgmatic"]  # with Own JSON
TABLE = re.findall(r"^\| ([^|]+) \| (`MCP - [^|]+) \| ([^|]*)\|$", SENDERS, re.M)  # program, arrives, remember
FOUND = [name for name in ("sh", "bash", "dash", "zsh", "ksh", "busybox") if shutil.which(name)]
SHELLS = {os.path.realpath(shutil.which(name)): name for name in FOUND}.values()  # one of several names
ANY = '-n --help it\'s "done"\n\nC:\\temp\\new \\\\ \\" \\u0041\r\n größer 🔔 ¥ \u2028 é\n$HOME `id` $(id) %s %d !'
ANY += " & * ~\x01\x1b\td\n"
TEXTS = [  # as given, and as it arrives
    (ANY, ANY.translate(dict.fromkeys(map(ord, "\r\x01\x1b\t"), " ")).removesuffix("\n")),
    ("caf\udce9 \udcff\udcfe \udcc3", "caf  "),
    ("", os.uname().nodename),
    ("ü" * 10_000, "ü" * 10_000),
]

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="no curl")


def section(heading, page=SENDERS):
    return re.split(r"^##+ ", page.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def snippets(heading, page=SENDERS):
    return re.findall(r"^```\w*\n(.*?)\n```$", section(heading, page), re.M | re.S)


def arrives(heading):
    """The title and the lines of the body that the page promises for it, in its table of programs or its section."""
    rows = {program: promised for program, promised, _ in TABLE}
    promised = rows.get(heading) or section(heading).split("\nArrives", 1)[1].split("\n\n")[0]
    return re.findall("`([^`]+)`", promised)


def tidy(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def slug(heading):
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


# --- the page -----------------------------------------------------------------------------------------------


def test_every_sender_has_a_section_and_every_section_is_a_senders():
    assert ["Programs with presets", *SCRIPTS, *OTHERS, "Anything else"] == HEADINGS


def test_every_program_with_a_preset_has_a_row_and_every_row_is_a_programs():
    assert [program for program, _, _ in TABLE] == [preset.name for preset in PROGRAMS]


def test_the_contents_name_every_section_in_its_order():
    contents = SENDERS.split("\n- **KEY**")[0]
    assert re.findall(r"\]\(#([^)]+)\)", contents) == [slug(heading) for heading in HEADINGS]


def test_the_docs_send_senders_without_a_preset_to_own_json():
    assert re.findall(r"choose \*\*(.+?)\*\*\.", SENDERS) == [presets.OWN_JSON.name]
    assert set(re.findall(r"from \*\*(.+?)\*\*", COMING_FROM)) == {presets.OWN_JSON.name}


@each("preset", PROGRAMS)
def test_a_documented_sender_gives_its_presets_notification(preset):
    text = made(preset, preset.sample)
    assert text.missing == () and arrives(preset.name) == tidy(f"MCP - {text.title}\n{text.body}")


@each("preset", [preset for preset in PROGRAMS if preset.marks])
def test_the_sample_of_a_preset_is_recognized_as_its_own(preset):
    assert presets.recognized(preset.sample) is preset


# --- a running service --------------------------------------------------------------------------------------


class Place:
    """The service, and the files of the page in a folder of this test."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.write("/etc/pocketbell", snippets("curl")[0])
        self.write("/usr/local/lib/bell.sh", snippets("A shell function")[0])

    def write(self, path, text):
        file = self.folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.filled(text) + "\n")
        return file

    def filled(self, text, key=None, address=""):
        """A snippet with this service's address, key and places."""
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.server.port}").replace("ADDRESS", address)
        text = re.sub(r"(Bearer(?: |%20))KEY", rf"\g<1>{key or self.server.key}", text)
        for path in ("/etc/pocketbell", "/usr/local/"):
            text = text.replace(path, f"{self.folder}{path}")
        return text

    def run(self, script, *arguments, shell="sh", address="", **environ):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        command = [
            *(["busybox", "sh"] if shell == "busybox" else [shell]),
            "-c",
            self.filled(script, address=address),
        ]
        environ = {"PATH": path, "LC_ALL": "C.UTF-8", **environ}
        return subprocess.run(
            [*command, shell, *arguments], env=environ, capture_output=True, text=True, timeout=PATIENCE_S
        )

    def with_another_key(self):
        self.write("/etc/pocketbell", snippets("curl")[0].replace("KEY", "sk_test_" + "0" * 48))

    @property
    def listed(self):
        """The titles and bodies of the newest notifications, newest first."""
        return [(one["title"], one["body"]) for one in self.got("/notifications?limit=5")["notifications"]]

    @property
    def count(self):
        return self.got("/stats")["stats"]["totalNotificationsAllTime"]

    def got(self, path):
        return json.loads(self.server.get(f"/api/v1{path}", self.server.key).text)

    def alert(self, preset=presets.OWN_JSON):
        alert = json.dumps({"name": preset.name, "title": preset.title, "body": preset.body})
        made = self.server.request("POST", "/api/v1/alerts", alert, bearer(self.server.key))
        return json.loads(made.text)["alert"]["url"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("senders") / "data") as running:
        running.key = running.owner_key()
        yield running.wait_until_ready()


@pytest.fixture
def place(server, tmp_path):
    return Place(server, tmp_path)


def succeeded(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return True


def test_curl_sends_with_the_file_and_prints_the_answer(place):
    done = place.run(snippets("curl")[1])
    assert (done.returncode, json.loads(done.stdout)["notification"]["status"]) == (0, "delivered")
    assert list(place.listed[0]) == arrives("curl")


def test_curl_tells_that_a_key_is_refused_and_why(place):
    place.with_another_key()
    done = place.run(snippets("curl")[1])
    assert (done.returncode, json.loads(done.stdout)["code"]) == (22, "UNAUTHORIZED")
    assert re.search(r"refused \(`(.*)`\)", section("curl"))[1] == done.stderr.strip()


def test_curl_tells_that_nobody_answers(place):
    place.write("/etc/pocketbell", snippets("curl")[0].replace(":8000", f":{free_port()}"))
    assert place.run(snippets("curl")[1]).returncode not in (0, 22)


@each("shell, given, arrived", [(shell, *text) for shell in SHELLS for text in TEXTS])
def test_the_shell_function_sends_any_text_prints_nothing_and_leaves_no_variables(place, shell, given, arrived):
    script = '. /usr/local/lib/bell.sh; bell "$1" "$2"; echo ${answer-none} ${code-none}'
    done = place.run(script, f"T {given[:50]}", given, shell=shell)
    assert (done.stdout, done.stderr) == ("none none\n", "")
    title, body = place.listed[0]
    assert body == arrived
    assert given == "" or title == f"MCP - T {arrived[:50]}"


@each("shell", SHELLS)
def test_the_shell_function_says_why_it_was_refused_and_ends_like_curl(place, shell):
    before = place.count
    for arguments, reason in (([""], "title must not be blank"), (["t", "x" * 10_001], "body is 10001 characters")):
        done = place.run('set -eu; . /usr/local/lib/bell.sh; bell "$@"', *arguments, shell=shell)
        assert (done.returncode, done.stdout, place.count) == (22, "", before) and reason in done.stderr


@each("shell", SHELLS)
def test_the_shell_function_says_that_nobody_answers(place, shell):
    place.write("/etc/pocketbell", snippets("curl")[0].replace(":8000", f":{free_port()}"))
    done = place.run(". /usr/local/lib/bell.sh; bell t x", shell=shell)
    assert done.returncode == 7 and done.stdout == "" and "curl: (7)" in done.stderr


def test_the_shell_function_does_without_iconv(place):
    place.write("/bin/iconv", "#!/bin/sh\nexit 127").chmod(0o755)
    place.run('. /usr/local/lib/bell.sh; bell "größer" "text"').check_returncode()
    assert place.listed[0] == ("MCP - größer", "text")


def test_the_example_of_the_shell_function_runs(place):
    assert succeeded(place.run(snippets("A shell function")[1]))
    title, body = place.listed[0]
    assert title == "MCP - Backup" and "%" in body


@pytest.mark.parametrize("outcome", ["false", "true"])
def test_the_line_of_cron_tells_of_a_failure_alone(place, outcome):
    (line,) = snippets("cron")
    *when, command = line.split(" ", 5)
    assert len(when) == 5 and "%" not in command
    before = place.count
    assert succeeded(place.run(command.replace("/usr/local/bin/backup", outcome), shell="/bin/sh"))
    assert place.count - before == (outcome == "false")
    assert outcome == "true" or place.listed[0] == tuple(arrives("cron"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_takes_the_units(place):
    unit, script, drop_in = snippets("systemd")
    place.write("/usr/local/bin/unit-failed", script).chmod(0o755)
    units = [
        place.write("/unit-failed@.service", unit),
        place.write("/backup.service", f"{drop_in}\n[Service]\nType=oneshot\nExecStart=/bin/false"),
    ]
    environ = {**os.environ, "SYSTEMD_UNIT_PATH": f"{place.folder}:"}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    ours = [line for line in done.stderr.splitlines() if "unit-failed" in line or "backup" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.skipif(not shutil.which("iconv"), reason="no iconv")
@pytest.mark.parametrize("unit", ["backup.service", r"srv-my\x2ddisk.mount"])
def test_the_script_of_systemd_sends_the_unit_and_the_end_of_its_log(place, unit):
    """Whatever bytes the log has, and however long its lines are."""
    service, script, drop_in = snippets("systemd")
    path, argument = re.search("^ExecStart=(.*)$", service, re.M)[1].split()
    assert argument == "%i" and "OnFailure=unit-failed@%n.service" in drop_in
    place.write(path, script).chmod(0o755)
    log = "printf 'old %03000d\\n\"no\" space \\\\ left\\377 ü\\n' 7"
    place.write("/bin/journalctl", f"#!/bin/sh\n[ \"$2\" = '{unit}' ] && {log}").chmod(0o755)
    assert succeeded(place.run(f'{path} "$1"', unit))
    title, body = place.listed[0]
    assert title == arrives("systemd")[0].replace("backup.service", unit)
    assert body.endswith('7\n"no" space \\ left ü') and len(body) <= 2000


def test_the_script_of_monit_sends_monits_message(place):
    script, rule = snippets("Monit")
    (path,) = set(re.findall(r'exec "(.+?)"', rule))
    place.write(path, script).chmod(0o755)
    (title, body) = arrives("Monit")
    host, service, event = re.fullmatch("MCP - (\\w+) (\\w+): (.+)", title).groups()
    told = {"MONIT_HOST": host, "MONIT_SERVICE": service, "MONIT_EVENT": event, "MONIT_DESCRIPTION": body}
    assert succeeded(place.run(path, **told))
    assert place.listed[0] == (title, body)


def test_the_function_of_python_sends(place):
    (source,) = snippets("Python")
    names = {}
    exec(place.filled(source), names)
    assert names["bell"]("From Python", ANY) == "delivered"
    assert place.listed[0] == ("MCP - From Python", ANY)


def test_the_python_function_raises_on_a_refusal(place):
    names = {}
    exec(place.filled(snippets("Python")[0]), names)
    with pytest.raises(urllib.error.HTTPError) as raised:
        names["bell"]("", "text")
    assert json.load(raised.value)["code"] == "VALIDATION_ERROR"
    exec(place.filled(snippets("Python")[0], key="sk_test_" + "0" * 48), names)
    with pytest.raises(urllib.error.HTTPError, match="401") as raised:
        names["bell"]("title", "text")
    raised.value.close()


APPRISE = shutil.which("apprise", path=f"{BIN}:{os.environ.get('PATH', '')}")


@pytest.mark.skipif(not APPRISE, reason="no apprise")
def test_apprise_sends(place):
    (command,) = snippets("Apprise")
    place.run(f"{APPRISE} {command.removeprefix('apprise ')}", HOME=str(place.folder)).check_returncode()
    assert list(place.listed[0]) == arrives("Apprise")
    refused = command.replace("KEY", "sk_test_" + "0" * 48).removeprefix("apprise ")
    assert place.run(f"{APPRISE} {refused}", HOME=str(place.folder)).returncode != 0


# --- programs -----------------------------------------------------------------------------------------------

ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")


@pytest.mark.skipif(not ALERTMANAGER, reason="no Alertmanager")
def test_alertmanager_sends(place):
    sample, port = PRESETS["alertmanager"].sample, free_port()
    title, *lines = arrives("Alertmanager")
    receiver = place.filled(PRESETS["alertmanager"].snippet, address=place.alert(PRESETS["alertmanager"]))
    config = place.write(
        "/alertmanager.yml", f"{receiver}\nroute: {{receiver: pocketbell, group_wait: 0s, group_by: [alertname]}}"
    )
    command = [ALERTMANAGER, f"--config.file={config}", f"--storage.path={place.folder}/storage"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    fired = [{"labels": sample["groupLabels"], "annotations": sample["alerts"][0]["annotations"]}]
    with (place.folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: posted(f"http://127.0.0.1:{port}/api/v2/alerts", fired))
        wait_until(lambda: [title, *lines] in [[title, *tidy(body)] for title, body in place.listed])
    finally:
        process.kill()
        process.wait()


def posted(url, payload):
    """Whether the event was accepted; False while nobody listens."""
    request = urllib.request.Request(url, json.dumps(payload).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status == 200
    except urllib.error.URLError as error:
        assert not isinstance(error, urllib.error.HTTPError), error
        return False


def test_home_assistant_sends_its_configured_message(place):
    yaml = pytest.importorskip("yaml", reason="no PyYAML")
    snippet = place.filled(PRESETS["home-assistant"].snippet, address=place.alert(PRESETS["home-assistant"]))
    (notify,) = yaml.safe_load(snippet)["notify"]
    assert (notify["platform"], notify["name"], notify["method"]) == ("rest", "pocketbell", "POST_JSON")
    assert posted(notify["resource"], {"message": "It works", notify["title_param_name"]: "Front door"})
    assert list(place.listed[0]) == arrives("Home Assistant")


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_netdatas_function_sends_alarm_notifys_values(place):
    """alarm-notify.sh is bash, and its `docurl` answers with the HTTP status."""
    around = "docurl() { curl -sS -o /dev/null -w '%{http_code}' \"$@\"; }\n"
    sample = {**PRESETS["netdata"].sample, "alarm": 'C:\\new "disk" = 91% ü', "info": "one\ntwo\t&"}
    address = place.alert(PRESETS["netdata"])
    script = f"{around}{PRESETS['netdata'].snippet}\ncustom_sender $DEFAULT_RECIPIENT_CUSTOM"
    assert succeeded(place.run(script, shell="bash", address=address, **sample))
    text = 'C:\\new "disk" = 91% ü\none two &\ndisk_space._srv, it was clear'
    assert place.listed[0] == ("MCP - Warning: disk_space_usage · nas", text)
    assert place.run(script, shell="bash", address=f"{address[:-7]}0000000", **sample).returncode == 1


def rendered(template, values):
    """As Proxmox VE fills the body of a webhook: `escape` is a JSON string without its quotes, `json` is JSON."""

    def fill(match):
        helper, value = match[1], values[match[2]]
        return {"escape ": json.dumps(value)[1:-1], "json ": json.dumps(value), None: str(value)}[helper]

    return re.sub(r"\{\{ (escape |json )?(\w+) \}\}", fill, template)


def test_the_body_of_proxmox_ve_is_json_whatever_the_message_is():
    values = {**PRESETS["proxmox-ve"].sample, "message": 'Details\n=======\n\t"vm\\100" ü', "title": 'a "b"'}
    payload = json.loads(rendered(PRESETS["proxmox-ve"].snippet, values))
    assert payload == values and presets.recognized(payload) is PRESETS["proxmox-ve"]
    assert made(PRESETS["proxmox-ve"], payload)[:2] == (values["title"], values["message"])


def test_curl_sends_to_an_address(place):
    place.run(snippets("Anything else")[0], address=place.alert()).check_returncode()
    assert list(place.listed[0]) == arrives("Anything else")


def test_curl_sends_text_to_an_address(place):
    place.run(snippets("Anything else")[1], address=place.alert()).check_returncode()
    by_query, (title, body) = place.listed[:2]
    assert title == "MCP - Disk" and "Mounted on" in body and by_query == ("MCP - Backup", "done")


@pytest.mark.parametrize(
    "payload, title, body",
    [
        ({"topic": "pocketbell", "title": "Gatus", "message": "shop is down", "tags": ["x"], "priority": 3},
         "Gatus", "shop is down"),
        ({"channel": "#alerts", "username": "x", "text": "disk full", "attachments": []}, "Own JSON", "disk full"),
        ({"username": "x", "avatar_url": "", "content": "disk full"}, "Own JSON", "disk full"),
        ({"version": "1.0", "title": "t", "message": "m", "attachments": [], "type": "info"}, "t", "m"),
    ],
    ids=["ntfy", "Slack", "Discord", "Apprise"],
)  # fmt: skip
def test_an_address_takes_messages_made_for_other_services(place, payload, title, body):
    """Without templates, as the last table of the page says."""
    assert posted(place.alert(), payload)
    assert place.listed[0] == (f"MCP - {title}", body)


@pytest.mark.skipif(not shutil.which("shoutrrr"), reason="no shoutrrr")
def test_shoutrrr_sends_as_watchtower_does(place):
    (line,) = snippets("Watchtower")
    code = place.alert().rpartition("/")[2]
    url = line.partition("=")[2].replace("CODE", code)
    place.run(
        f"shoutrrr send --url '{url}' --title Updates --message done", HOME=str(place.folder)
    ).check_returncode()
    assert place.listed[0] == ("MCP - Updates", "done")


def test_the_configuration_of_borgmatic_has_the_address_as_the_server():
    yaml = pytest.importorskip("yaml", reason="no PyYAML")
    found = yaml.safe_load(snippets("borgmatic")[0])["ntfy"]
    assert (found["server"], found["topic"]) == ("ADDRESS", "pocketbell")


def test_the_configuration_of_diun_posts_to_the_address():
    """By default, Diun's webhook is a GET: https://crazymax.dev/diun/notif/webhook."""
    yaml = pytest.importorskip("yaml", reason="no PyYAML")
    found = yaml.safe_load(PRESETS["diun"].snippet)["notif"]["webhook"]
    assert (found["endpoint"], found["method"]) == ("ADDRESS", "POST")


# --- coming from elsewhere ----------------------------------------------------------------------------------

REWRITTEN = re.findall(r"# after\n(.*?)\n```", COMING_FROM, re.S)
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in re.findall(r"^\|.*\|$", COMING_FROM, re.M)
]
CALLS = {row[0]: row[4] for row in ROWS if len(row) == 5}


@pytest.mark.parametrize("after", REWRITTEN, ids=range(len(REWRITTEN)))
def test_a_rewritten_line_says_the_same(place, after):
    before = place.count
    address = place.alert() if "ADDRESS" in after else ""
    place.run(f". /usr/local/lib/bell.sh\n{after}", address=address).check_returncode()
    assert place.listed[0] == ("MCP - Backup", "finished in 42 s") and place.count == before + 1


def test_each_line_of_the_others_has_one_of_ours():
    assert len(REWRITTEN) == COMING_FROM.count("# before") == 2


def test_the_calls_that_are_named_are_there():
    named = set(re.findall(r"`([A-Z]+ /\S+)`", " ".join(CALLS.values())))
    assert named == {"POST /api/v1/notifications/send", "GET /api/v1/notifications", "GET /healthz"}
    assert named <= {f"{route.method} {route.rule}" for route in app.ROUTES}
