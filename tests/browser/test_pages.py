"""Every page in a real browser, on small and large screens, light and dark, with nothing on it and with everything.

Each is measured for what a script can see: axe's rules, width, faint texts, small targets, what the navigation
covers, what jumps, the browser's own complaints; and what its first load weighs.
"""

import gzip
import json
from dataclasses import replace
from importlib import resources

import pytest
from playwright.sync_api import expect

import push
from store.database import EVERYBODY, run, transaction
from tests.support.accounts import PASSWORD
from tests.support.browser import GROUND, OBSERVE, Phone, jumps, listen, settle, state, until
from tests.support.full_site import LONG_EMAIL, LONG_NAME, OFFLINE, PLAIN, SEARCHES, TEXTS, full_pages
from tests.support.pages import PUBLIC
from tests.support.server import ROOT
from tests.support.wrong_forms import Form
from web import guards

AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# axe takes longest of all, so it looks at the full account's pages on a large screen, where most is seen, and at
# other pages on a small one. It sees three of the siblings that are alike. Its rule on contrast takes most of that:
# of the texts of all pages that look alike, it is asked of one, beside our own measure of all texts in every place.
SMALL, LARGE = (320, "light"), (1280, "dark")
# Where pages are measured. The style sheet has rules for less than 960 px, less than 1,120, and more.
PLACES = [SMALL, (320, "dark"), LARGE, (1280, "light")]
KNOWN = {}  # by width and theme, the looks of the texts that axe was asked about
HEIGHT = 800
SMALLEST_TARGET_PX = {320: 44, 1280: 24}  # high: for a thumb, or for a mouse
NARROWEST_TARGET_PX = 24
LARGEST_LOAD = 45 * 1024  # bytes of a page's first load, gzipped
LARGEST_STYLE, LARGEST_PACKED_STYLE = 36 * 1024, 9 * 1024
LARGEST_CHART = 26 * 1024  # more on a page with a chart: what draws it
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


# --- what is measured ---------------------------------------------------------------------------------------


MEASURES = """
async ({ least, narrowest, tags, known }) => {
  const main = document.querySelector("main");
  const start = (text, length) => text.trim().slice(0, length).toWellFormed(); // half a character cannot be reported
  const named = (element) => {
    const name = element.getAttribute("aria-label") || element.textContent || element.name || "";
    return `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} “${start(name, 40)}”`;
  };
  const found = [];
  const fit = () => {
    const width = document.documentElement.scrollWidth;
    if (width <= innerWidth) return;
    const all = [...document.body.querySelectorAll("*")];
    const wide = all.filter((it) => it.getBoundingClientRect().right > innerWidth + 1);
    found.push(`needs ${width} px: ${wide.slice(-1).map(named)}`);
  };
  fit();
  const inFlow = new CSSStyleSheet(); // what opens over the page would hide it, and each other
  inFlow.replaceSync(`.menu > .pop { position: static !important; width: 11rem !important }
    .menu > summary::before { display: none !important }`);
  document.adoptedStyleSheets = [inFlow];
  const folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true; // all else is measured of what is unfolded too
  if (!found.length) fit();

  const isSeen = (element) => {
    const { width, height, right } = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true }) && width > 1 && height > 1 && right > 0;
  };
  const hasText = (it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const inSentence = (link) => getComputedStyle(link).display === "inline" && hasText(link.parentElement);
  const targets = [], controls = "button, input:not([type=hidden]), select, textarea, summary, a[href]";
  for (const control of document.querySelectorAll(controls)) {
    if (!isSeen(control) || control.closest("[aria-hidden=true]") || inSentence(control)) continue;
    const target = ["radio", "checkbox"].includes(control.type) ? control.closest("label") ?? control : control;
    const place = target.getBoundingClientRect(), reach = parseFloat(getComputedStyle(control, "::before").height);
    const height = Math.max(place.height, reach || 0);
    if (height < least - 0.1) found.push(`${height.toFixed(1)} px high: ${named(control)}`);
    if (place.width < narrowest - 0.1) found.push(`${place.width.toFixed(1)} px wide: ${named(control)}`);
    targets.push(target);
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
  const isPicture = (it) => it.closest("svg"); // has its own ground: test_pages.py of the dashboard measures that
  const texts = [...document.body.querySelectorAll("*")].filter((it) => hasText(it) && isSeen(it) && !isPicture(it));
  for (const element of texts) {
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${named(element)}`);
  }

  const nav = document.querySelector("nav");
  if (nav) {
    scrollTo({ left: 0, top: document.documentElement.scrollHeight, behavior: "instant" });
    const bar = nav.getBoundingClientRect();
    for (const element of main.querySelectorAll("*")) { // some scroll by themselves, and end there
      const part = element.parentElement.closest(".paths, .icons, .payload, .row, .scroll, #preview");
      const end = part ? part.getBoundingClientRect().bottom : Infinity;
      const { left, top, right, bottom: below } = element.getBoundingClientRect(), bottom = Math.min(below, end);
      const isOver = left < bar.right - 1 && right > bar.left + 1 && top < bar.bottom - 1 && bottom > bar.top + 1;
      if (isOver && isSeen(element)) { found.push(`under the navigation at the end: ${named(element)}`); break; }
    }
    scrollTo({ left: 0, top: 0, behavior: "instant" });
  }

  const apart = []; // of siblings with the same elements and attributes, those that axe need not see
  if (tags) {
    const shapes = new Map(), shapeOf = new Map();
    for (const it of [...document.body.querySelectorAll("*")].reverse()) { // children before their parent
      const parts = [...it.children].map((child) => shapeOf.get(child));
      const shape = `${it.tagName} ${it.getAttribute("class")} ${it.getAttributeNames()} (${parts})`;
      shapes.set(shape, shapes.get(shape) ?? shapes.size);
      shapeOf.set(it, shapes.get(shape));
    }
    for (const parent of document.body.querySelectorAll("*")) {
      const counts = new Map();
      for (const child of [...parent.children]) {
        const shape = shapeOf.get(child), place = document.createComment("");
        counts.set(shape, 1 + (counts.get(shape) ?? 0));
        if (counts.get(shape) <= 3) continue;
        child.replaceWith(place);
        apart.push([place, child]);
      }
    }
    const looks = new Set(known);
    const isNews = (text) => { // no other with the same colours, size and place was asked about
      const { color, fontSize, fontWeight } = getComputedStyle(text), over = text.parentElement;
      let opacity = 1;
      for (let at = text; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
      const place = [text, over, over.parentElement].map((it) => `${it.tagName} ${it.getAttribute("class")}`);
      const look = [color, ground(text), fontSize, fontWeight, opacity, ...place].join();
      return !looks.has(look) && looks.add(look);
    };
    const typed = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")].filter(isSeen);
    const samples = {
      "color-contrast": [...texts, ...typed].filter((it) => it.isConnected && isNews(it)),
      "target-size": [...new Set(targets)].filter((it) => it.isConnected),
    };
    known = [...looks];
    for (const [rule, elements] of Object.entries(samples)) {
      for (const element of elements) element.setAttribute(`data-${rule}`, "");
      axe.configure({ rules: [{ id: rule, selector: `[data-${rule}]`, enabled: true }] });
    }
    const options = { runOnly: tags, resultTypes: ["violations"], preload: false, iframes: false };
    const { violations, passes } = await axe.run(document, options);
    for (const rule in samples) for (const element of samples[rule]) element.removeAttribute(`data-${rule}`);
    if (passes.length < 10) found.push(`axe looked at next to nothing: ${passes.length} rules`);
    for (const { id, nodes } of violations) {
      found.push(`axe ${id}, ${nodes.length} times: ${nodes[0].target} ${start(nodes[0].html, 120)}`);
    }
  }
  for (const [place, child] of apart.reverse()) place.replaceWith(child);
  for (const one of folded) one.open = false;
  document.adoptedStyleSheets = [];
  return [found, known];
}
"""


def measure(page, troubles, refused=False, asked=SMALL):
    """What is wrong with the page that is open, on all widths. `refused`: it is the answer to something wrong.

    `asked` is where axe looks at it, if it does.
    """
    page.wait_for_load_state()
    settle(page)
    if refused:  # the browser notes the status of the page itself
        troubles[:] = [
            it for it in troubles if "Failed to load resource: the server responded with a status" not in it
        ]
    found = []
    for width, theme in places(page):
        place = f"{width} {theme}"
        values = {
            "least": SMALLEST_TARGET_PX[width],
            "narrowest": NARROWEST_TARGET_PX,
            "tags": AXE_TAGS if (width, theme) == asked else None,
            "known": KNOWN.get(place, []),
        }
        wrongs, KNOWN[place] = page.evaluate(MEASURES, values)
        found += [(place, wrong) for wrong in wrongs]
    found += [("any", trouble) for trouble in troubles]
    troubles.clear()
    return found


def places(page):
    """Set the page, which is light, to each of the places, one after the other."""
    light, is_light = page.evaluate(GROUND), True
    for width, theme in PLACES:
        if page.viewport_size["width"] != width:
            page.set_viewport_size({"width": width, "height": HEIGHT})
        if is_light != (theme == "light"):
            page.emulate_media(color_scheme=theme)
            is_light = not is_light
            until(lambda is_light=is_light: (page.evaluate(GROUND) == light) == is_light, page, lambda: page.url)
        yield width, theme


USED = "performance.getEntriesByType('resource').map((one) => one.name)"


class Scales:
    """Weighs what pages load. It fetches each file once."""

    def __init__(self, context):
        self.context, self.sizes = context, {}

    def too_heavy(self, page, answer):
        """What is wrong with the first load of the page that came with this answer."""
        for file in ("app.css", "icons.svg") if page.locator("svg use").count() else ("app.css",):
            until(lambda file=file: any(file in url for url in page.evaluate(USED)), page)
        load = {answer.url: len(gzip.compress(answer.body(), 6))}
        load |= {url: self._size(url) for url in page.evaluate(USED)}
        charts = sum(size for url, size in load.items() if "uPlot" in url or "charts.js" in url)
        is_heavy = charts > LARGEST_CHART or sum(load.values()) - charts > LARGEST_LOAD
        return [("any", f"the first load is large: {load}")] if is_heavy else []

    def _size(self, url):
        """The file's bytes after gzip; a picture is no part of the limit."""
        if url not in self.sizes:
            answer = self.context.request.get(url)
            is_text = answer.headers["content-type"].startswith(("text/", "image/svg+xml"))
            self.sizes[url] = len(gzip.compress(answer.body(), 6)) if is_text else 0
        return self.sizes[url]


def must_be_sound(found):
    """Fail with a line for each fault of the pages."""
    lines = {}
    for name, wrongs in found.items():
        for width, wrong in wrongs:
            lines.setdefault(f"{name}: {wrong}", []).append(width)
    if lines:
        pytest.fail("\n".join(f"{line} {widths}" for line, widths in lines.items()), pytrace=False)


# --- a site with everything on it ---------------------------------------------------------------------------


def watch(page):
    """Load axe with each page from now on, and return a list that collects the browser's complaints."""
    page.add_init_script(AXE)  # to send it for each page costs five times as much
    page.emulate_media(reduced_motion="reduce")  # else colours would change gradually
    return listen(page)


def opened(context):
    page = context.new_page()
    return page, watch(page)


def parts(pages, count):
    """The pages' names in `count` parts of about the same work."""
    names = sorted(pages)
    return [names[start::count] for start in range(count)]


# --- tests --------------------------------------------------------------------------------------------------


def test_the_stylesheet_is_small():
    style = (ROOT / "static" / "app.css").read_bytes()
    assert len(style) <= LARGEST_STYLE and len(gzip.compress(style, 6)) <= LARGEST_PACKED_STYLE


def test_the_pages_of_a_visitor_pass_the_layout_and_accessibility_checks(site, open_context):
    page, troubles = opened(open_context())
    found, scales = {}, Scales(page.context)

    def see(name, refused=False, answer=None):
        heavy = scales.too_heavy(page, answer) if answer else []
        found[name] = heavy + measure(page, troubles, refused)

    link = site.setup_link()
    see("set-up", answer=page.goto(link))
    page.get_by_label("E-mail address").fill("owner@example.org")
    page.get_by_label("Password").evaluate("input => { input.minLength = 0; input.value = 'short'; }")
    page.get_by_role("button", name="Create account").click()
    see("set-up, wrong", refused=True)
    page.goto(site.service.flask("account", "create", LONG_EMAIL).output.strip().replace("lan.test", "localhost"))
    see("password link")
    see("sign-in", answer=page.goto(f"{site.base}/app/login"))
    page.get_by_label("E-mail address").fill(LONG_EMAIL)
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    see("sign-in, wrong", refused=True)
    page.goto(f"{site.base}/app/phone")
    see("code to type")
    see("error", refused=True, answer=page.goto(link))
    see("offline", answer=page.goto(site.base + OFFLINE))
    page.goto(f"{site.base}/docs")
    see("API reference")
    page.goto(f"{site.base}/p/{site.service.alert(email=LONG_EMAIL).code}")
    expect(page.get_by_role("heading", level=1)).to_have_text("This address is for programs")
    see("webhook address", refused=True)
    must_be_sound(found)


def test_the_steps_of_a_phones_sign_in_pass_the_layout_and_accessibility_checks(site, open_context, monkeypatch):
    monkeypatch.setattr(guards, "origin", lambda: PUBLIC)
    context = open_context()
    context.add_cookies([site.cookie(LONG_EMAIL)])
    (computer, its_troubles), (phone, troubles) = opened(context), opened(open_context())
    computer.goto(f"{site.base}/app/devices/phone")
    found = {"no code": measure(computer, its_troubles)}
    computer.get_by_role("button", name="Show a code").click()
    found["code"] = measure(computer, its_troubles)
    phone.goto(f"{site.base}/app/phone/{computer.locator('#code').inner_text().replace(' ', '')}")
    found["link"] = measure(phone, troubles)
    phone.get_by_role("button", name="Sign in here").click()
    found["waiting"] = measure(phone, troubles)
    expect(computer.get_by_role("heading", name="Is this your phone?")).to_be_visible()
    found["question"] = measure(computer, its_troubles)
    computer.get_by_role("button", name="No", exact=True).click()
    found["refused"] = measure(computer, its_troubles)
    expect(phone.get_by_role("heading", level=1)).to_have_text("Not confirmed")
    found["not confirmed"] = measure(phone, troubles)
    must_be_sound(found)


def test_the_list_of_shortcuts_passes_the_layout_and_accessibility_checks(owners_page, site):
    troubles = watch(owners_page)
    owners_page.goto(f"{site.base}/app/")
    owners_page.keyboard.press("?")
    expect(owners_page.get_by_role("dialog")).to_be_visible()
    must_be_sound({"keys": measure(owners_page, troubles)})


def test_the_pages_of_a_new_account_pass_the_layout_and_accessibility_checks(site, owners_page):
    page, troubles, found = owners_page, watch(owners_page), {}
    for name, path in {**PLAIN, "no match": SEARCHES["history without a match"]}.items():
        page.goto(site.base + path)
        found[name] = measure(page, troubles)
    page.goto(f"{site.base}/app/alerts/{site.service.alert().id}")
    found["alert, fresh"] = measure(page, troubles)
    page.goto(f"{site.base}/app/notifications/unknown")
    found["error"] = measure(page, troubles, refused=True)
    site.service.flask("device", "add", "owner@example.org", "apns", "ab" * 32)
    with transaction(EVERYBODY):
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
    *(f"alert, {part}" for part in ("connect", "activity", "settings")),
    *(f"watch: {kind}" for kind in ("down", "late")),
    *(f"metric, {name}" for name in ("24 h", "7 d", "30 d", "1 y", "extreme")),
    *(f"metric, changing a {kind} rule" for kind in ("value", "silent")),
    "metric without values",
    "metric that is unknown",
    "metrics, 30 d",
]
# For axe, these are like others. Some show a long text more, which is for our own measures.
ALIKE = {"history of a term in right-to-left text", "history, older", "alert: recent", "watch: late"}
ALIKE |= {"metric, 24 h", "metric, 7 d", "metric, 1 y", "metric, changing a silent rule", "this device"}
PARTS = parts(FULL_PAGES, 6)


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_the_pages_of_a_full_account_pass_the_layout_and_accessibility_checks(full, open_context, push_service, part):
    phone = Phone(full.site, open_context(), push_service, is_signed_in=False)
    phone.context.add_cookies([full.cookie])
    troubles, addresses, found = watch(phone.page), full_pages(full), {}
    phone.page.add_init_script(OBSERVE)
    scales = Scales(phone.context)
    for name in PARTS[part]:
        answer = phone.page.goto(full.site.base + addresses[name])
        settle(phone.page)
        found[name] = [("1280", f"jumped while it loaded: {one}") for one in jumps(phone.page)]
        asked = None if name in ALIKE else LARGE
        found[name] += scales.too_heavy(phone.page, answer) + measure(phone.page, troubles, asked=asked)
    must_be_sound(found)


REFUSED = {  # the page that each stands on is named as in `full_pages`
    "key": Form("name", "keys", "Create key", {"name": " "}),
    "password": Form("current", "settings", "Change password", {"current": "wrong password", "new": PASSWORD}),
    "quiet hours": Form("end-0", "quiet", "Save", {"begin-0": "07:00", "end-0": "07:00"}),
    "device": Form("token-token", "devices", "Add device", {"token-token": "short"}, "Add a native app by its token"),
    "ring": Form("later", "ring", "Ring", {"title": "W" * 200, "text": TEXTS[2], "later": "2020-01-01T00:00"}),
    "heartbeat": Form("grace", "new heartbeat", "Create heartbeat", {"name": LONG_NAME, "grace": "W" * 40}),
    "changed heartbeat": Form("period", "watch, editing", "Save", {"period": "W" * 40}),
    "rule": Form("for", "metric, 24 h", "Add rule", {"for": "W" * 40}, "Add a rule"),
    "changed rule": Form("for", "metric, changing a value rule", "Save", {"for": "W" * 40}),
    "new alert": Form("name", "new alert", "Create alert", {"name": "W" * 101}),
    "alert, draft": Form("title", "alert: large", "Save", {"title": "{{ title | " + "W" * 100 + " }}"}),
    "alert, settings": Form("name", "alert, settings", "Save settings", {"name": " "}),
}
REFUSED_PARTS = parts(REFUSED, 2)


@pytest.mark.parametrize("part", range(len(REFUSED_PARTS)))
def test_the_pages_that_refuse_a_form_pass_the_layout_and_accessibility_checks(full, full_page, monkeypatch, part):
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))  # so there is a form for native apps
    page, troubles, addresses, found = full_page, watch(full_page), full_pages(full), {}
    for name in REFUSED_PARTS[part]:
        replace(REFUSED[name], path=addresses[REFUSED[name].path]).send(page, full.site.base, {})
        expect(page.get_by_role("alert")).to_be_visible()
        found[name] = measure(page, troubles, refused=True)
    must_be_sound(found)


def test_the_pages_that_answer_a_form_pass_the_layout_and_accessibility_checks(full, full_page):
    page, troubles, addresses, found = full_page, watch(full_page), full_pages(full), {}
    page.goto(full.site.base + addresses["keys"])
    page.get_by_label("New key").fill(LONG_NAME[:-1])  # there is one with the whole name
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#full-key")).to_be_visible()
    found["new key"] = measure(page, troubles)
    page.goto(full.site.base + addresses["alert: recent"])  # not the large one: axe's time grows with the page
    page.get_by_text("Preview with other JSON").click()
    page.get_by_label("JSON", exact=True).fill(json.dumps({"W" * 150: 1, TEXTS[2]: "x"}))
    page.get_by_label("Title", exact=True).fill("{{ " + "W" * 149 + " }}")
    page.get_by_role("button", name="Preview").click()
    found["alert, other JSON"] = measure(page, troubles)
    page.get_by_role("switch").click()
    expect(page.get_by_role("status").filter(has_text="Alert switched o")).to_be_visible()
    found["alert, switched"] = measure(page, troubles)
    page.goto(full.site.base + addresses["alert, settings"])
    page.get_by_text("Delete this alert…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("deleted")
    found["alert, deleted"] = measure(page, troubles)
    must_be_sound(found)


def test_the_state_of_this_browser_fits_its_page(site, open_context, push_service):
    """Each state is reached in test_at_work.py; here their sentences stand on one page."""
    phone = Phone(site, open_context(), push_service)
    troubles = watch(phone.page)
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
