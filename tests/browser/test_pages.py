"""Every page in a real browser, on small and large screens, light and dark, with nothing on it and with everything.

Each is measured for what a script can see: axe's rules, width, faint texts, small targets, what the navigation
covers, the browser's own complaints; and what its first load weighs.
"""

import gzip
import json
from importlib import resources
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from core import alerts, local_time
from models import Account, new_id
from process import clock, recent_requests
from process.clock import DAY_MS
from store.custom_metrics import Metric, MetricValue
from store.database import database, run, transaction
from tests.support.accounts import PASSWORD
from tests.support.browser import Phone, listen, state, until

WIDTHS = (320, 390, 1280)
AXE_WIDTHS = (320, 1280)  # between them nothing changes that a rule looks at, and it takes longer than all else
HEIGHT = 800
SMALLEST_TARGET_PX = 44
LARGEST_LOAD = 40 * 1024  # bytes of the first load, gzipped
ROWS = 1_000
DEVICES = 20
KEYS, REVOKED_KEYS, ALERTS, SESSIONS, SERIES = 40, 15, 40, 12, 60
MINUTE_MS = 60_000
OFFLINE = "/app/static/offline.html"
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
LONG_NAME = "W" * 100
LONG_EMAIL = f"{'long' * 58}@name.localhost"
TEXTS = [
    "Backup finished",
    "W" * 200,
    "אזהרה: הדיסק של web-1 מלא ב־98 %",
    "تنبيه: القرص ممتلئ بنسبة 98 ٪ (web-1)",
    "🔥🚨 👩‍👩‍👧‍👦 🏳️‍🌈 CPU 94 %",
    "<script>alert(1)</script> & “quotes” {{ host }}",
    "備份完成。磁碟空間不足。",
    "first line\nsecond line\n\n\tfifth " + "and so on " * 60,
]

# --- what is measured ---------------------------------------------------------------------------------------

MEASURES = """
async ({ least, withRules }) => {
  const main = document.querySelector("main");
  const named = (element) => {
    const name = element.getAttribute("aria-label") || element.textContent || element.name || "";
    return `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} “${name.trim().slice(0, 40)}”`;
  };
  const found = [];
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth) {
    const all = [...document.body.querySelectorAll("*")];
    const wide = all.filter((it) => it.getBoundingClientRect().right > innerWidth + 1);
    found.push(`needs ${width} px: ${wide.slice(-1).map(named)}`);
  }

  const isSeen = (element) => {
    const { width, height, right } = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true }) && width > 1 && height > 1 && right > 0;
  };
  const hasText = (it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const inSentence = (link) => getComputedStyle(link).display === "inline" && hasText(link.parentElement);
  const controls = "button, input:not([type=hidden]), select, textarea, summary, a[href]";
  for (const control of document.querySelectorAll(controls)) {
    if (!isSeen(control) || control.closest("[aria-hidden=true]") || inSentence(control)) continue;
    const target = ["radio", "checkbox"].includes(control.type) ? control.closest("label") ?? control : control;
    const { height } = target.getBoundingClientRect();
    if (height < least - 0.1) found.push(`${height.toFixed(1)} px high: ${named(control)}`);
  }

  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (text) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parse(text).map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.body.querySelectorAll("*")].filter((it) => hasText(it) && isSeen(it));
  for (const element of texts) {
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${named(element)}`);
  }

  const nav = document.querySelector("nav");
  if (nav) {
    scrollTo({ left: 0, top: document.documentElement.scrollHeight, behavior: "instant" });
    const bar = nav.getBoundingClientRect();
    for (const element of main.querySelectorAll("*")) {
      const part = element.parentElement.closest(".paths, .texts .body"); // has an end of its own
      const end = part ? part.getBoundingClientRect().bottom : Infinity;
      const { left, top, right, bottom: below } = element.getBoundingClientRect(), bottom = Math.min(below, end);
      const isOver = left < bar.right - 1 && right > bar.left + 1 && top < bar.bottom - 1 && bottom > bar.top + 1;
      if (isOver && isSeen(element)) { found.push(`under the navigation at the end: ${named(element)}`); break; }
    }
    scrollTo({ left: 0, top: 0, behavior: "instant" });
  }

  if (!withRules) return found;
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const runOnly = { type: "tag", values: tags };
  const options = { runOnly, resultTypes: ["violations"], preload: false, iframes: false };
  const { violations, passes } = await axe.run(document, options);
  if (passes.length < 10) found.push(`axe looked at next to nothing: ${passes.length} rules`);
  for (const { id, nodes } of violations) {
    found.push(`axe ${id}, ${nodes.length} times: ${nodes[0].target} ${nodes[0].html.slice(0, 120)}`);
  }
  return found;
}
"""


def measure(page, troubles, refused=False):
    """What is wrong with the page that is open, on all widths. `refused`: it is the answer to something wrong.

    In the dark on those alone that axe looks at: a theme changes colours, and no other thing.
    """
    page.wait_for_load_state()
    if state(page).count():
        expect(state(page)).not_to_be_empty()
    if refused:  # the browser notes the status of the page itself
        troubles[:] = [
            it for it in troubles if "Failed to load resource: the server responded with a status" not in it
        ]
    page.evaluate(AXE)
    closed = page.evaluate("document.querySelectorAll('details:not([open])').length")
    widths = AXE_WIDTHS if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else WIDTHS
    found = [("any", trouble) for trouble in troubles]
    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        needed = page.evaluate("document.documentElement.scrollWidth")
        found += [(width, f"needs {needed} px")] if needed > width else []
    if closed:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        asked = {"least": SMALLEST_TARGET_PX, "withRules": width in AXE_WIDTHS}
        found += [(width, wrong) for wrong in page.evaluate(MEASURES, asked)]
    troubles.clear()
    return found


def must_be_sound(found):
    """Fails with what is wrong with the pages, a line for each."""
    lines = {}
    for name, wrongs in found.items():
        for width, wrong in wrongs:
            lines.setdefault(f"{name}: {wrong}", []).append(width)
    if lines:
        pytest.fail("\n".join(f"{line} {widths}" for line, widths in lines.items()), pytrace=False)


# --- a site with everything on it ---------------------------------------------------------------------------


def large_payload():
    """300 paths: long ones, right-to-left, emoji, markup."""
    odd = [*TEXTS, "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "key with a dot. and more"]
    payload = {text[:150]: text for text in odd}
    payload |= {f"{number:03}{'k' * 190}": "W" * 100 for number in range(40)}
    payload["labels"] = {f"label-{number}": {"value": "אזהרה " * 3, "at": number} for number in range(150)}
    return payload


class Full:
    """An account with all that there can be, as wrong as it can be."""

    def __init__(self, site, push_service):
        self.site = site
        self.cookie = site.cookie(LONG_EMAIL)
        self.now = clock.now_ms()
        with transaction():
            self.account = Account.find(LONG_EMAIL).seq
            self._set_account()
            self._add_keys()
            self._add_alerts()
            self._add_devices(push_service)
            self._add_sessions()
            self._add_notifications()
            self._add_metrics()
            self._add_payloads()

    def _insert(self, table, rows):
        names = list(rows[0])
        values = [[row[name] for name in names] for row in rows]
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        database.connection().executemany(insert, values)

    def _set_account(self):
        zone, hour = "America/Argentina/ComodRivadavia", 60 * MINUTE_MS
        begin, end = (local_time.local_time(self.now + shift, zone)[-5:] for shift in (-hour, hour))
        run(
            "UPDATE account SET plan = 'scale', time_zone = ?, quiet_hours = ?, notification_count = 1234567",
            (zone, f"{begin}-{end}"),
        )

    def _add_keys(self):
        self._insert(
            "api_key",
            [
                {
                    "id": new_id(self.now),
                    "account_seq": self.account,
                    "name": (LONG_NAME, "x y " * 25, TEXTS[2], TEXTS[4], "ci")[number % 5],
                    "preview": f"sk_test_{number:08x}",
                    "key_hash": number.to_bytes(32, "big"),
                    "created_at": self.now - number * DAY_MS,
                    "last_used_at": self.now - number * 50 * MINUTE_MS if number % 3 else None,
                    "revoked_at": self.now if number > KEYS else None,
                }
                for number in range(1, KEYS + REVOKED_KEYS + 1)
            ],
        )

    def _add_alerts(self):
        self.alerts = [new_id(self.now) for _ in range(ALERTS)]  # the id of the alert with the number 1, 2, …
        self._insert(
            "alert",
            [
                {
                    "id": self.alerts[number - 1],
                    "account_seq": self.account,
                    "short_code": f"{number:07}",
                    "name": (LONG_NAME, TEXTS[3], "CPU", TEXTS[5][:100], TEXTS[4])[number % 5],
                    "icon": ("bell", "no-such-icon", "server")[number % 3],
                    "color": ("#FFFFFF", "#000000", "#3B82F6", "#FFE48A")[number % 4],
                    "frequency": "instant",
                    "ignores_quiet_hours": 0,
                    "is_active": int(number % 4 > 0 and number % 7 > 0),
                    "notification_count": (0, 7, 1_234_567)[number % 3],
                    "last_triggered_at": (None, self.now, self.now - 40 * DAY_MS)[number % 3],
                    "created_at": self.now - 40 * DAY_MS,
                    "switched_on_at": 0,
                    "paused_at": None if number % 4 else self.now - number * 90 * MINUTE_MS,
                }
                for number in range(1, ALERTS + 1)
            ],
        )

    def _add_payloads(self):
        """What came last to the alerts that have a page of their own in the matrix."""
        self.alert_ids = {"fresh": self.alerts[1], "large": self.alerts[2], "recent": self.alerts[4]}
        self.alert_ids.update(proposed=self.alerts[5], oversized=self.alerts[6])
        grafana = {"alerts": [], "orgId": 1, "title": TEXTS[2], "message": TEXTS[5], "commonAnnotations": {}}
        payloads = {"large": large_payload(), "recent": {"title": "W" * 10_000}, "proposed": grafana}
        for name, payload in payloads.items():
            self._put(name, json.dumps(payload, ensure_ascii=False))
        self._put("oversized", None)
        template = "{{ title | upcase }} {{ W.W }} {{ not.there }} {{ " + "k" * 190 + " }}"
        values = {"title_template": template, "body_template": "\n".join(TEXTS)}
        alerts.change_alert(self.account, self.alert_ids["large"], values, self.now)
        run("UPDATE alert SET preset = 'github' WHERE id = ?", (self.alert_ids["fresh"],))
        seq = 1 + self.alerts.index(self.alert_ids["recent"])
        for number in range(30):
            status = (200, 400, 429, 413)[number % 4]
            for _ in range(2_000 if status == 429 else 1):
                recent_requests.note(
                    seq, status, f"{number} " + ("delivered", "W" * 200, TEXTS[2], "…")[number % 4], self.now
                )

    def _put(self, name, payload):
        values = {"alert_seq": 1 + self.alerts.index(self.alert_ids[name]), "payload": payload}
        self._insert("alert_payload", [{**values, "received_at": self.now}])

    def _add_metrics(self):
        """60 series with what a name, a unit and a value can be; the values of the last are older than each range."""
        names, units = (LONG_NAME * 2, TEXTS[2], TEXTS[4], "CPU", TEXTS[5]), ("W" * 32, "°C", None, "٪", "<b>%</b>")
        numbers = (1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.1, 123_456_789_012_345.0, -0.0, 21.5)
        ids = []
        for series in range(SERIES):
            project, metric, values = ("W" * 100, "home", TEXTS[3])[series % 3], f"{series}/<&?#{'i' * 80}", []
            for step in range(60):
                age = step * (10 + step) * 60 * MINUTE_MS // 4 if series < SERIES - 1 else (40 + step) * DAY_MS
                value = numbers[(series + step) % 7] if series % 2 else 20 + step / 7
                unit = units[series % 5 if series % 4 else 0]
                values.append(MetricValue(metric, names[series % 5], value, unit, self.now - age, None))
            Metric.add_all(self.account, project, values)
            ids.append((project, metric))
        self.first_series, self.extreme_series, self.last_series = ids[0], ids[1], ids[-1]

    def _add_devices(self, push_service):
        words = "X" * 60
        errors = (
            f"The push service answered 403 ({words}).",
            "Apple refuses Web Push from the contact.",
            None,
        )
        self._insert(
            "device",
            [
                {
                    "id": new_id(self.now),
                    "account_seq": self.account,
                    "kind": ("webpush", "apns", "fcm")[number % 3],
                    "token": f"https://push.example.com/{number}",
                    **{name: push_service.browser().subscription["keys"][name] for name in ("p256dh", "auth")},
                    "origin": self.site.base,
                    "name": (LONG_NAME, TEXTS[2], TEXTS[4], "Chrome on Linux")[number % 4],
                    "api_key_seq": number if number % 2 else None,
                    "created_at": self.now - 50 * DAY_MS,
                    "last_delivered_at": (None, self.now, self.now - 40 * DAY_MS)[number % 3],
                    "last_error": errors[number % 3],
                    "last_error_at": self.now,
                }
                for number in range(1, DEVICES + 1)
            ],
        )

    def _add_sessions(self):
        self._insert(
            "session",
            [
                {
                    "token_hash": number.to_bytes(32, "big"),
                    "account_seq": self.account,
                    "created_at": self.now - number * DAY_MS,
                    "expires_at": self.now + DAY_MS,
                    "name": ("", "Chrome on Linux", "Safari on iPhone")[number % 3],
                    "last_seen_at": self.now - number * DAY_MS,
                }
                for number in range(SESSIONS)
            ],
        )

    def _add_notifications(self):
        """The oldest first, as they came; of `kinds`, the last of each is kept in `self.ids`."""
        kinds = ("key", "alert", "deleted", "page", "pending", "failed", "no device", "held", "in a digest")
        self.ids, rows, held, deliveries = {}, [], [], []
        for seq in range(1, ROWS + 1):
            kind, text, at = (
                kinds[seq % len(kinds)],
                TEXTS[seq % len(TEXTS)],
                self.now - (ROWS - seq) * 40 * MINUTE_MS,
            )
            row = {
                "seq": seq,
                "id": new_id(at),
                "account_seq": self.account,
                "api_key_seq": 1 + seq % KEYS if kind in ("key", "no device") else None,
                "alert_seq": None if kind in ("key", "page", "no device") else 1 + seq % ALERTS,
                "title": f"MCP - {text}",
                "body": TEXTS[seq % 7],
                "status": "delivered",
                "created_at": at,
                "is_digest": 0,
                "missing": None,
            }
            if kind == "alert":
                row["missing"] = json.dumps(["runbook", LONG_NAME, TEXTS[2], *(f"labels.{n}" for n in range(20))])
            if kind == "deleted":
                row["alert_seq"] = 999
            if kind in ("pending", "failed"):
                row["status"] = kind
            if kind in ("held", "in a digest"):
                row["status"] = "held"
                values = {"notification_seq": seq, "account_seq": self.account, "alert_seq": row["alert_seq"]}
                held.append({**values, "created_at": at, "digest_seq": ROWS + 1 if kind == "in a digest" else None})
            if kind in ("key", "alert", "pending", "failed"):
                deliveries += self._deliveries(seq, kind, DEVICES if seq > ROWS - len(kinds) else 2)
            self.ids[kind] = row["id"]
            rows.append(row)
        digest = {**rows[-1], "seq": ROWS + 1, "id": new_id(self.now), "title": "MCP - 111 notifications"}
        rows.append({**digest, "body": "\n".join(TEXTS), "is_digest": 1, "status": "pending", "missing": None})
        rows[-1].update(alert_seq=None, api_key_seq=None)
        long = next(row for row in rows if row["id"] == self.ids["page"])
        long.update(title="W" * 1_000, body="W" * 5_000 + " רשת" * 1_250)
        self.ids.update(digest=digest["id"], long=long["id"])
        self._insert("notification", rows)
        self._insert("held", held)
        self._insert("delivery", deliveries + self._deliveries(ROWS + 1, "pending", DEVICES))
        days = local_time.last_days(30, "UTC", self.now)
        counts = [{"account_seq": self.account, "day": day, "notification_count": 36} for day in days]
        self._insert("notification_day", counts)

    def _deliveries(self, seq, kind, count):
        statuses = {"key": ("delivered", "pending", "failed"), "alert": ("delivered", "failed")}.get(kind, (kind,))
        error = "The push service answered 403 (" + "X" * 60 + ")."
        found = [(device, statuses[device % len(statuses)]) for device in range(1, count + 1)]
        return [
            {
                "notification_seq": seq,
                "device_seq": device,
                "status": status,
                "attempts": device % 3 if status == "pending" else 2,
                "next_attempt_at": self.now + 30 * MINUTE_MS if status == "pending" else None,
                "answered_at": None if status == "pending" and device % 3 == 0 else self.now,
                "error": None if status == "delivered" else error,
            }
            for device, status in found
        ]


@pytest.fixture
def full(make_site, push_service):
    """A full account, whose pages take a plain http address of another machine for the public one."""
    return Full(make_site(host="lan.test"), push_service)


PLAIN = {
    "home": "/app/",
    "history": "/app/notifications",
    "alerts": "/app/alerts",
    "new alert": "/app/alerts/new",
    "metrics": "/app/metrics",
    "devices": "/app/devices",
    "keys": "/app/keys",
    "quiet": "/app/quiet",
    "settings": "/app/settings",
}
SEARCHES = {
    "history with everything asked": "/app/notifications?search=W&status=delivered&day={day}",
    "history of a term in right-to-left text": "/app/notifications?search=%D7%93%D7%99%D7%A1%D7%A7",
    "history without a match": f"/app/notifications?search={'nothing' * 28}",
    "history, older": "/app/notifications?before=500",
}


def full_pages(full):
    """Addresses of a full site by what is there."""
    day = local_time.local_day(full.now - 5 * DAY_MS, "UTC")
    searches = {name: path.format(day=day) for name, path in SEARCHES.items()}
    kinds = {f"notification: {kind}": f"/app/notifications/{id_}" for kind, id_ in full.ids.items()}
    of_alerts = {f"alert: {kind}": f"/app/alerts/{id_}" for kind, id_ in full.alert_ids.items()}
    return {**PLAIN, **searches, **kinds, **of_alerts, **metric_pages(full)}


def metric_pages(full):
    """The address of a metric's page in each range."""
    asked = {f"metric, {name}": (full.first_series, name) for name in ("24 h", "7 d", "30 d")}
    asked |= {"metric, extreme": (full.extreme_series, "7 d"), "metric without values": (full.last_series, "30 d")}
    asked |= {"metrics, 30 d": (("", ""), "30 d")}
    return {
        name: f"/app/metrics{'/one' if series[0] else ''}?"
        + urlencode({"project": series[0], "metric": series[1], "range": chosen})
        for name, (series, chosen) in asked.items()
    }


def opened(context):
    page = context.new_page()
    return page, listen(page)


def parts(pages, count):
    """The names of pages in parts of about the same work, so that a test does not take all day."""
    names = sorted(pages)
    return [names[start::count] for start in range(count)]


# --- tests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_a_visitor_are_sound(site, open_context, theme):
    page, troubles = opened(open_context(color_scheme=theme))
    found = {}

    def see(name, refused=False):
        found[name] = measure(page, troubles, refused)

    link = site.setup_link()
    page.goto(link)
    see("set-up")
    page.get_by_label("E-mail address").fill("owner@example.org")
    page.get_by_label("Password").evaluate("input => { input.minLength = 0; input.value = 'short'; }")
    page.get_by_role("button", name="Start").click()
    see("set-up, wrong", refused=True)
    page.goto(site.service.flask("account", "create", LONG_EMAIL).output.strip().replace("lan.test", "localhost"))
    see("password link")
    page.goto(f"{site.base}/app/login")
    see("sign-in")
    page.get_by_label("E-mail address").fill(LONG_EMAIL)
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    see("sign-in, wrong", refused=True)
    page.goto(link)
    see("error", refused=True)
    page.goto(site.base + OFFLINE)
    see("offline")
    page.goto(f"{site.base}/docs")
    see("API reference")
    page.goto(f"{site.base}/p/0000000")
    expect(page.get_by_role("heading", level=1)).to_have_text("This address takes POST requests")
    see("webhook address", refused=True)
    must_be_sound(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_a_new_account_are_sound(site, open_context, theme):
    context = open_context(color_scheme=theme)
    context.add_cookies([site.cookie()])
    page, troubles = opened(context)
    found = {}
    for name, path in {**PLAIN, "no match": SEARCHES["history without a match"]}.items():
        page.goto(site.base + path)
        found[name] = measure(page, troubles)
    page.goto(f"{site.base}/app/alerts/{site.service.alert().id}")
    found["alert, fresh"] = measure(page, troubles)
    page.goto(f"{site.base}/app/notifications/unknown")
    found["error"] = measure(page, troubles, refused=True)
    site.service.flask("device", "add", "owner@example.org", "apns", "ab" * 32)
    with transaction():
        run("UPDATE device SET removed_at = 1, removed_as = 'dead', token = ''")
    for name in ("home", "devices"):
        page.goto(site.base + PLAIN[name])
        found[f"{name}, last device gone"] = measure(page, troubles)
    must_be_sound(found)


FULL_PAGES = [
    *PLAIN,
    *SEARCHES,
    *(f"notification: {kind}" for kind in ("digest", "alert", "failed", "held", "long", "key")),
    *(f"alert: {kind}" for kind in ("fresh", "large", "recent", "proposed", "oversized")),
    *(f"metric, {name}" for name in ("24 h", "7 d", "30 d", "extreme")),
    "metric without values",
    "metrics, 30 d",
]
PARTS = parts(FULL_PAGES, 6)


@pytest.mark.parametrize("part", range(len(PARTS)))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_a_full_account_are_sound(full, open_context, push_service, theme, part):
    phone = Phone(full.site, open_context(color_scheme=theme), push_service, is_signed_in=False)
    phone.context.add_cookies([full.cookie])
    troubles, addresses, found = listen(phone.page), full_pages(full), {}
    for name in PARTS[part]:
        phone.go(addresses[name])
        found[name] = measure(phone.page, troubles)
    must_be_sound(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_that_answer_a_form_are_sound(full, open_context, theme):
    context = open_context(color_scheme=theme)
    context.add_cookies([full.cookie])
    page, troubles = opened(context)
    found = {}
    page.goto(f"{full.site.base}/app/keys")
    page.get_by_label("Name of a new key").fill(LONG_NAME)
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("#full-key")).to_be_visible()
    found["new key"] = measure(page, troubles)
    page.get_by_label("Name of a new key").evaluate("input => { input.value = ' '; }")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["key, wrong"] = measure(page, troubles, refused=True)
    page.goto(f"{full.site.base}/app/settings")
    page.get_by_label("Current password").fill("wrong password")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["settings, wrong"] = measure(page, troubles, refused=True)
    page.goto(f"{full.site.base}/app/quiet")
    page.get_by_label("From").fill("07:00")
    page.get_by_label("To").fill("07:00")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["quiet, wrong"] = measure(page, troubles, refused=True)
    page.goto(f"{full.site.base}/app/devices")
    page.get_by_text("Add a device of a native app by hand").click()
    page.get_by_label("Token").fill("short")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="APNs is not configured")).to_be_visible()
    found["devices, wrong"] = measure(page, troubles, refused=True)
    must_be_sound(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_alert_pages_that_answer_a_form_are_sound(full, open_context, theme):
    context = open_context(color_scheme=theme)
    context.add_cookies([full.cookie])
    page, troubles = opened(context)
    found = {}
    page.goto(f"{full.site.base}/app/alerts/new")
    page.get_by_label("Name", exact=True).evaluate("input => { input.removeAttribute('maxlength'); }")
    page.get_by_label("Name", exact=True).fill("W" * 101)
    page.get_by_role("button", name="Create and show its address").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["new alert, wrong"] = measure(page, troubles, refused=True)
    page.goto(f"{full.site.base}/app/alerts/{full.alert_ids['large']}")
    page.get_by_label("Title", exact=True).fill("{{ title | " + "W" * 100 + " }}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["alert, wrong draft"] = measure(page, troubles, refused=True)
    smaller = f"{full.site.base}/app/alerts/{full.alert_ids['recent']}"  # axe's time grows with the page
    page.goto(smaller)
    page.get_by_label("Icon", exact=True).fill("no icon")
    page.get_by_role("button", name="Save the settings").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["alert, wrong settings"] = measure(page, troubles, refused=True)
    page.goto(smaller)
    page.get_by_text("Try with other JSON").click()
    page.get_by_label("JSON", exact=True).fill(json.dumps({"W" * 150: 1, TEXTS[2]: "x"}))
    page.get_by_label("Title", exact=True).fill("{{ " + "W" * 149 + " }}")
    page.get_by_role("button", name="Preview").click()
    found["alert, other JSON"] = measure(page, troubles)
    page.get_by_role("button", name="Switch o").click()
    expect(page.get_by_role("status").filter(has_text="It is o")).to_be_visible()
    found["alert, switched"] = measure(page, troubles)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("is deleted")
    found["alert, deleted"] = measure(page, troubles)
    must_be_sound(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_page_says_of_this_browser_fits(site, open_context, push_service, theme):
    """Each state is reached in test_at_work.py; here their sentences stand on one page."""
    phone = Phone(site, open_context(color_scheme=theme), push_service)
    troubles = listen(phone.page)
    phone.go()
    expect(state(phone.page)).not_to_be_empty()
    count = phone.page.evaluate("""() => {
      const states = document.querySelectorAll("template[data-state]");
      const place = document.getElementById("push-state");
      states.forEach((one) => place.append(one.content.cloneNode(true)));
      document.getElementById("enable").hidden = false;
      return states.length;
    }""")
    assert count >= 12
    found = {"all states": measure(phone.page, troubles)}
    must_be_sound(found)


# Whether nothing lies over what has the focus; null once the focus has left the page.
NOT_COVERED = """
() => {
  const focused = document.activeElement;
  if (focused === document.body) return null;
  const { left, top, width, height } = focused.getClientRects()[0];
  const isFree = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95].some((part) => {
    const hit = document.elementFromPoint(left + width / 2, top + part * height);
    return hit && (focused.contains(hit) || hit.contains(focused));
  });
  return [focused.id || focused.textContent.trim().slice(0, 40), isFree];
}
"""


@pytest.mark.parametrize("name", ["home", "devices", "settings", "new alert", "alert: recent", "metric, 24 h"])
def test_what_has_the_focus_is_never_covered(full, open_context, name):
    context = open_context(viewport={"width": 390, "height": 640})
    context.add_cookies([full.cookie])
    page = context.new_page()
    page.goto(full.site.base + full_pages(full)[name])
    covered, seen = [], 0
    for _ in range(150):
        page.keyboard.press("Tab")
        answer = page.evaluate(NOT_COVERED)
        if answer is None:
            break
        seen += 1
        covered += [] if answer[1] else [answer[0]]
    assert seen >= 10
    assert covered == []


USED = "performance.getEntriesByType('resource').map((one) => one.name)"


def weigh(context, base, paths):
    """What the first load of each page weighs: bytes after gzip, by file."""
    page, sizes, loads = context.new_page(), {}, {}

    def size(url):
        if url not in sizes:
            answer = context.request.get(url)
            is_text = answer.headers["content-type"].startswith(("text/", "image/svg+xml"))
            sizes[url] = len(gzip.compress(answer.body(), 6)) if is_text else 0
        return sizes[url]

    for name, path in paths.items():
        page.goto(base + path)
        for file in ("app.css", "icons.svg") if page.locator("svg use").count() else ("app.css",):
            until(lambda file=file: any(file in url for url in page.evaluate(USED)), page)
        loads[name] = {url: size(url) for url in (base + path, *page.evaluate(USED))}
    return loads


def must_be_light(loads):
    """Fails with the pages whose first load is beyond the limit."""
    assert {name: load for name, load in loads.items() if sum(load.values()) > LARGEST_LOAD} == {}


def test_the_first_load_of_a_visitors_page_is_small(site, open_context):
    link = site.setup_link().removeprefix(site.base)
    paths = {"set-up": link, "sign-in": "/app/login", "error": "/app/setup/x", "offline": OFFLINE}
    must_be_light(weigh(open_context(), site.base, paths))


def test_the_first_load_of_every_page_is_small(full, open_context):
    context = open_context()
    context.add_cookies([full.cookie])
    must_be_light(weigh(context, full.site.base, full_pages(full)))
