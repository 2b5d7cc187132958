// Guesses the time zone on the set-up page; copies a new key; subscribes this browser to pushes on the Devices page.
"use strict";

const zone = document.querySelector("select[data-guess=yes]");
if (zone) {
  const guessed = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zone.options].some((option) => option.value === guessed)) zone.value = guessed;
}

for (const copy of document.querySelectorAll("button[data-copy]")) {
  copy.hidden = !navigator.clipboard; // over plain http there is none: the text can be selected
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent);
    copy.textContent = "Copied";
  });
}

const state = document.getElementById("push-state");
const button = document.getElementById("enable");
const SUBSCRIBE_LIMIT_MS = 20000;

function say(sentence, offer) {
  state.textContent = sentence;
  button.hidden = !offer;
}

function keyBytes(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function within(milliseconds, promise) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("late")), milliseconds));
  return Promise.race([promise, late]);
}

async function keep(subscription, only_known = false) {
  const answer = await fetch("/app/devices", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content },
    body: JSON.stringify({ subscription: subscription.toJSON(), name: deviceName(), only_known }),
  });
  if (answer.redirected) throw new Error("you are signed out: sign in again.");
  if (answer.status === 404) return false;
  if (answer.status !== 201) throw new Error((await answer.json()).error);
  return true;
}

function deviceName() {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrome\//.test(agent) ? "Chrome" : "Safari";
  const system = /iPhone/.test(agent) ? "iPhone" : /iPad/.test(agent) ? "iPad" : /Android/.test(agent) ? "Android" : /Mac/.test(agent) ? "Mac" : /Windows/.test(agent) ? "Windows" : "Linux";
  return `${browser} on ${system}`;
}

async function enable(registration) {
  say("Asking the browser…", false);
  try {
    const options = { userVisibleOnly: true, applicationServerKey: keyBytes(state.dataset.publicKey) };
    await keep(await within(SUBSCRIBE_LIMIT_MS, registration.pushManager.subscribe(options)));
    location.reload();
  } catch (fault) {
    say(explain(fault), Notification.permission !== "denied");
  }
}

function explain(fault) {
  if (Notification.permission === "denied") return "Notifications are blocked for this site: allow them in the browser's site settings, then reload.";
  if (fault.message === "late") return "This browser cannot reach its push service. Check its network, then try again.";
  return `That did not work: ${fault.message}`;
}

async function offer() {
  if (!isSecureContext) return say("Browsers allow notifications over https or on localhost only: open this page that way.", false);
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) {
    const apple = /iPhone|iPad/.test(navigator.userAgent) || (/Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
    return say(apple ? "Tap Share, then “Add to Home Screen”, open Pocketbell from there and sign in: then it can be enabled." : "This browser has no Web Push.", false);
  }
  const registration = await navigator.serviceWorker.register("/app/sw.js", { scope: "/app/" });
  await navigator.serviceWorker.ready;
  const subscription = await registration.pushManager.getSubscription();
  if (subscription && (await keep(subscription, true))) return say("This browser gets your notifications.", false);
  button.addEventListener("click", () => enable(registration));
  if (Notification.permission === "denied") return say(explain({}), false);
  say("This browser does not get your notifications yet.", true);
}

if (state) offer().catch((fault) => say(explain(fault), false));
