// On the pages: guesses the time zone at set-up, copies texts, closes menus, subscribes this browser to pushes, keeps its
// subscription on the server up to date, and previews templates.
"use strict";

const zone = document.querySelector("select[data-guess=yes]");
if (zone) {
  const guessed = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zone.options].some((option) => option.value === guessed)) zone.value = guessed;
}

async function copy(element) {
  if (navigator.clipboard) return navigator.clipboard.writeText(element.textContent);
  getSelection().selectAllChildren(element); // browsers have no clipboard API over plain http
  if (!document.execCommand("copy")) throw new Error("select it and copy it");
}

document.addEventListener("click", ({ target }) => {
  const copier = target.closest("button[data-copy]");
  const tell = (words) => { copier.lastElementChild.textContent = words; };
  if (copier) copy(document.getElementById(copier.dataset.copy)).then(() => tell("Copied"), () => tell("Select it above and copy it"));
});

// An open menu closes with a tap elsewhere, or with Escape.
const openMenus = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", ({ target }) => {
  for (const one of openMenus()) one.open = one.contains(target);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const one of openMenus()) {
    event.preventDefault();
    one.open = false;
    one.querySelector("summary").focus();
  }
});

// The same button again, as of a double click, sends nothing while the answer to its first press is on its way.
const ON_ITS_WAY_MS = 10000;
let sent = {};

addEventListener("submit", (event) => {
  const { target, submitter, timeStamp } = event;
  if (submitter === sent.submitter && timeStamp < sent.until) event.preventDefault();
  else if (target.method === "post") setTimeout(() => { if (!event.defaultPrevented) sent = { submitter, until: timeStamp + ON_ITS_WAY_MS }; });
});
for (const what of ["input", "pageshow"]) addEventListener(what, () => { sent = {}; }); // another text, or the page again

const SUBSCRIBE_LIMIT_MS = 20000;
const TRYING_AFTER_MS = 4000;

// An error whose message is meant for people, unlike those of the browser.
class Told extends Error {}

const NO_WORKER = "The browser did not start Pocketbell's service worker. Use a normal window instead of a private one, allow cookies for this site, and use an https certificate that the browser trusts.";
const NO_ANSWER = "Pocketbell did not answer. Check the network, then try again.";
const NOT_ALLOWED = "The browser did not allow it. Try again, and choose Allow when it asks.";

function reason(fault) {
  if (fault instanceof Told) return fault.message;
  if (fault.name === "NotAllowedError") return NOT_ALLOWED;
  return "The browser reported a problem of its own. Reload this page and try again, or use another browser.";
}

const instead = (sentence) => () => { throw new Told(sentence); };
const card = document.getElementById("push");
const button = document.getElementById("enable");

// Shows the sentences of a state; `offer` also shows the button that enables this browser. What the browser itself said
// of a fault is for whoever opens the details.
function show(name, offer = false, reason = "", fault = null) {
  document.cookie = `push=${name}; path=/app; max-age=31536000; samesite=lax`; // the next page keeps room for this
  const state = document.getElementById("push-state");
  state.replaceChildren(card.querySelector(`[data-state=${name}]`).content.cloneNode(true));
  const place = state.querySelector("[data-reason]");
  if (place) place.textContent = reason;
  button.hidden = !offer;
  const details = document.getElementById("push-fault");
  details.hidden = !fault || fault instanceof Told;
  details.querySelector("code").textContent = fault ? `${fault.name}: ${fault.message}` : "";
}

function within(milliseconds, promise) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("late")), milliseconds));
  return Promise.race([promise, late]);
}

// Sends this browser's subscription to the server. With `only_known`, resolves to null if the server has no device for it.
async function keep(subscription, only_known) {
  const token = await recall("token").catch(() => null);
  const answer = await fetch("/app/devices", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content },
    body: JSON.stringify({ subscription: subscription.toJSON(), token, only_known }),
  }).catch(instead(NO_ANSWER));
  if (answer.redirected) throw new Told("You are signed out. Sign in again.");
  const kept = await answer.json().catch(instead(NO_ANSWER));
  if (answer.status === 404) return null;
  if (answer.status !== 201) throw new Told(kept.error);
  await remember("publicKey", kept.publicKey).catch(() => {}); // private windows store nothing
  if (kept.token) await remember("token", kept.token).catch(() => {});
  return kept;
}

function isOf(subscription, publicKey) {
  const key = subscription.options.applicationServerKey;
  return !key || String(new Uint8Array(key)) === String(keyBytes(publicKey));
}

async function enable(registration) {
  let trying, isLeaving = false;
  addEventListener("submit", () => { isLeaving = true; }); // a reload would end what was pressed meanwhile
  try {
    const subscribing = subscribe(registration, card.dataset.publicKey);
    show("subscribing"); // not before: Safari asks for permission only in the task of the tap itself
    trying = setTimeout(show, TRYING_AFTER_MS, "trying");
    await keep(await within(SUBSCRIBE_LIMIT_MS, subscribing).finally(() => clearTimeout(trying)), false);
    if (!isLeaving) location.reload();
  } catch (fault) {
    if (Notification.permission === "denied") show("denied");
    else if (fault.name === "AbortError") show(navigator.brave ? "brave" : "late", true, "", fault);
    else if (fault.message === "late") show("late", true);
    else show("failed", true, reason(fault), fault);
  }
}

const hasWebPush = () => "serviceWorker" in navigator && "PushManager" in window;
const isAppleTouch = () => /iPhone|iPad/.test(navigator.userAgent) || (/Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);

async function offer() {
  if (!isSecureContext) return show("insecure");
  if (!hasWebPush()) return show(isAppleTouch() ? "install" : "unsupported");
  let registration;
  try {
    registration = await navigator.serviceWorker.register("/app/sw.js", { scope: "/app/" });
  } catch (fault) {
    return show("failed", false, NO_WORKER, fault);
  }
  await navigator.serviceWorker.ready;
  const subscription = await registration.pushManager.getSubscription();
  button.addEventListener("click", () => enable(registration));
  if (Notification.permission === "denied") return show("denied");
  if (!subscription) return show(Notification.permission === "granted" ? "off" : "default", true);
  if (!isOf(subscription, card.dataset.publicKey)) {
    await subscription.unsubscribe(); // otherwise subscribing with the new key fails
    return show("changed", true);
  }
  if (await keep(subscription, true)) return show("on");
  return show("lost", true);
}

// Once per tab, tells the server that this browser is still in use, and its present subscription.
async function visit() {
  if (!isSecureContext || !hasWebPush() || sessionStorage.getItem("visited")) return;
  const registration = await navigator.serviceWorker.getRegistration("/app/");
  const subscription = registration && (await registration.pushManager.getSubscription());
  const kept = subscription && (await keep(subscription, true));
  if (kept && !isOf(subscription, kept.publicKey)) {
    await subscription.unsubscribe(); // it belongs to a key that the server no longer has
    await keep(await subscribe(registration, kept.publicKey), true);
  }
  sessionStorage.setItem("visited", "yes");
}

if (card) offer().catch((fault) => show("failed", true, reason(fault), fault));
else if (document.body.classList.contains("app")) visit().catch(() => {}); // the next page tries again

// On an alert's page: previews the templates while they are edited. A tap on a value inserts its variable.
const template = document.getElementById("template");

function insert(path) {
  const field = insert.last ?? template.elements.body;
  field.focus();
  if (!insert.last) field.setSelectionRange(field.value.length, field.value.length);
  const text = `{{ ${path} }}`;
  if (!document.execCommand("insertText", false, text)) { // preferred, because the user can undo it
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    preview().catch(() => {});
  }
}

function inserter(code) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "chip";
  button.textContent = code.textContent;
  button.addEventListener("click", () => insert(code.textContent));
  code.replaceWith(button);
}

const values = document.getElementById("values");
let listed = null; // the values as the page had them

function offerAll(list) {
  if (list.isEqualNode(listed)) return; // do not replace a button that is just being tapped
  listed = list.cloneNode(true);
  values.hidden = !list.children.length;
  values.querySelector("ul").replaceChildren(...list.childNodes);
  for (const code of values.querySelectorAll("code")) inserter(code);
}

let asking = new AbortController();

// Sends the form as its button Preview does, and takes the preview from the page that comes.
async function preview() {
  asking.abort(); // an older response must not replace a newer one
  asking = new AbortController();
  const body = new URLSearchParams([...new FormData(template), ["preview", "1"]]);
  const answer = await fetch(template.action, { method: "POST", body, signal: asking.signal });
  if (answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html"), made = page.getElementById("preview");
  if (!made.querySelector(".error")) offerAll(page.querySelector("#values ul"));
  document.getElementById("preview").replaceChildren(...made.childNodes);
}

// Where something is waited for, such as an alert's first request: reloads the page when it has come, unless a field
// has been edited.
const isWritten = (field) =>
  (field.defaultValue !== undefined && field.value.toLowerCase() !== field.defaultValue.toLowerCase()) ||
  (field.defaultChecked !== undefined && field.checked !== field.defaultChecked) ||
  [...(field.options ?? [])].some((option) => option.selected !== option.defaultSelected && field.id);

const waiting = document.querySelector("[data-waiting]");

async function hasCome() {
  const answer = await fetch(location.href);
  return answer.status < 500 && !(await answer.text()).includes(`data-waiting="${waiting.dataset.waiting}"`);
}

async function reloadWhenCome() {
  const fields = [...document.querySelectorAll("main :is(input:not([type=hidden]), textarea, select)")];
  if (!document.hidden && !fields.some(isWritten) && (await hasCome().catch(() => false))) return location.reload();
  setTimeout(reloadWhenCome, waitMs); // not before the answer: two at once could overwrite each other's cookie
}

const waitMs = 1000 * (waiting?.dataset.every ?? 5);
if (waiting) setTimeout(reloadWhenCome, waitMs);

if (template) {
  let timer;
  const fields = ["title", "body", "priority", "url", "tag"];
  const use = ({ target, key }) => { if (fields.includes(target.name) && !["Tab", "Shift"].includes(key)) insert.last = target; };
  for (const what of ["input", "pointerdown", "keydown"]) template.addEventListener(what, use);
  template.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => preview().catch(() => {}), 300); });
  offerAll(values.querySelector("ul"));
}
