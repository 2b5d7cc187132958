// Keyboard shortcuts of every page: letters alone, and only outside of fields. Whoever does not want them, such as users of
// speech input, switches them off in the list of keys or in Settings; that is kept in this browser.
"use strict";

const OFF = "keys off", SECOND_KEY_MS = 1500;
const PAGES = {
  h: ["Home", "/app/"],
  n: ["History", "/app/notifications"],
  a: ["Alerts", "/app/alerts"],
  w: ["Watches", "/app/watches"],
  m: ["Metrics", "/app/metrics"],
  d: ["Devices", "/app/devices"],
  k: ["API keys", "/app/keys"],
  q: ["Quiet hours", "/app/quiet"],
  s: ["Settings", "/app/settings"],
};
const KEYS = [
  ["/", "Search"], ["j", "Next in a list"], ["k", "Previous in a list"], ["Enter", "Open"], ["Escape", "Back to the list"],
  ["?", "This list"],
];

const isOff = () => { try { return localStorage.getItem(OFF) !== null; } catch { return false; } };
const isSeen = (element) => element?.checkVisibility?.() ?? Boolean(element); // Safari has it from 17.4 on
const search = () => { const field = document.getElementById("search"); return isSeen(field) ? field : null; };

function made(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function keyRow(words, ...keys) {
  const pressed = keys.flatMap((key, place) => (place ? [" then ", made("kbd", {}, key)] : [made("kbd", {}, key)]));
  return made("div", {}, made("dt", {}, ...pressed), made("dd", {}, words));
}

function switchFor() {
  const box = made("input", { type: "checkbox", checked: !isOff() });
  box.dataset.keysOn = "";
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
    for (const one of document.querySelectorAll("[data-keys-on]")) one.checked = box.checked; // the list and Settings have one each
  });
  return made("label", { className: "check" }, box, "Use keyboard shortcuts");
}

function makeList() {
  const rows = [
    ...KEYS.map(([key, words]) => keyRow(words, key)),
    ...Object.entries(PAGES).map(([key, [words]]) => keyRow(words, "g", key)),
  ];
  const close = made("form", { method: "dialog" }, made("button", { className: "button" }, "Close"));
  const heading = made("h2", { id: "keys-heading" }, "Keyboard shortcuts");
  const list = made("dialog", { id: "keys-list" }, heading, made("dl", { className: "list" }, ...rows), switchFor(), close);
  list.setAttribute("aria-labelledby", "keys-heading");
  document.body.append(list);
  return list;
}

const showKeys = () => (document.getElementById("keys-list") ?? makeList()).showModal();

// Moves along the rows that are seen: from the focused one, or from the one whose page this is.
function move(step) {
  const seen = [...document.querySelectorAll("main a.row")].filter(isSeen), listed = seen.filter((row) => row.closest(".list"));
  const rows = listed.length ? listed : seen;
  const focused = rows.findIndex((row) => row.parentElement.contains(document.activeElement)); // or the box that selects it
  const at = focused < 0 ? rows.findIndex((row) => row.hasAttribute("aria-current")) : focused;
  rows[Math.max(0, at + step)]?.focus();
}

// From what is open to its row in the list: beside it, or on the page before.
function leave() {
  const back = document.querySelector("#detail .back");
  if (isSeen(openRow)) openRow.focus();
  else if (back) {
    sessionStorage.setItem(LEFT, location.pathname);
    location.assign(back.href);
  }
}

const ACTIONS = {
  "/": () => { if (search()) search().focus(); else location.assign("/app/notifications#search"); },
  "?": showKeys,
  j: () => move(1),
  k: () => move(-1),
  Escape: leave,
};
const OPENED = "opened row", LEFT = "left row";
const openRow = document.querySelector(".list .row[aria-current]");
let prefixAt = -Infinity; // when "g" was pressed

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || isOff()) return;
  const field = event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable], dialog");
  if (field && isSeen(field)) return; // a field of the list that was just closed may still have the focus
  const page = event.timeStamp - prefixAt < SECOND_KEY_MS && PAGES[event.key];
  prefixAt = event.key === "g" && !page ? event.timeStamp : -Infinity;
  const act = page ? () => document.querySelector(`.side [href="${page[1]}"]`).click() : ACTIONS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

for (const opener of document.querySelectorAll("[data-keys]")) {
  opener.hidden = false;
  opener.addEventListener("click", showKeys);
}
for (const hint of document.querySelectorAll("[data-hint]")) hint.hidden = isOff();
const setting = document.getElementById("keys-setting");
if (setting) {
  setting.firstElementChild.after(switchFor());
  setting.hidden = false;
}
if (location.hash === "#search") search()?.focus();

// Opening a row keeps the list beside the page scrolled as it was; a page opened otherwise scrolls to its row.
// After the keyboard opened it, the heading has the focus; after Escape, its row.
document.querySelector(".split > .list")?.addEventListener("click", (event) => {
  const row = event.target.closest("a.row"), byKey = event.detail === 0;
  if (row) sessionStorage.setItem(OPENED, JSON.stringify([row.pathname, row.getBoundingClientRect().top, byKey]));
});

const [opened, openedAt, byKey] = JSON.parse(sessionStorage.getItem(OPENED) ?? "[]");
if (byKey && opened === location.pathname) document.querySelector("#detail h1")?.focus({ preventScroll: true });
const left = sessionStorage.getItem(LEFT);
if (left && !openRow) [...document.querySelectorAll(".list a.row")].find((row) => row.pathname === left)?.focus();
sessionStorage.removeItem(LEFT);

if (isSeen(openRow)) {
  if (opened === openRow.pathname) scrollBy(0, openRow.getBoundingClientRect().top - openedAt);
  else openRow.scrollIntoView({ block: "nearest" });
}
