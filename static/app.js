// Guesses the time zone on the set-up page; copies; subscribes this browser to pushes and keeps the server told.
"use strict";

const zone = document.querySelector("select[data-guess=yes]");
if (zone) {
  const guessed = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zone.options].some((option) => option.value === guessed)) zone.value = guessed;
}

async function copy(element) {
  if (navigator.clipboard) return navigator.clipboard.writeText(element.textContent);
  getSelection().selectAllChildren(element); // over plain http there is no clipboard
  if (!document.execCommand("copy")) throw new Error("select it and copy it");
}

for (const copier of document.querySelectorAll("button[data-copy]")) {
  copier.hidden = false;
  copier.addEventListener("click", () => {
    copy(document.getElementById(copier.dataset.copy)).then(
      () => { copier.textContent = "Copied"; },
      () => { copier.textContent = "Select it above and copy it"; },
    );
  });
}

const SUBSCRIBE_LIMIT_MS = 20000;
const card = document.getElementById("push");
const button = document.getElementById("enable");

// Puts the sentences of a state on the page; `offer` is whether enabling is what to do next.
function show(name, offer = false, reason = "") {
  const state = document.getElementById("push-state");
  state.replaceChildren(card.querySelector(`[data-state=${name}]`).content.cloneNode(true));
  const place = state.querySelector("[data-reason]");
  if (place) place.textContent = reason;
  button.hidden = !offer;
}

function within(milliseconds, promise) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("late")), milliseconds));
  return Promise.race([promise, late]);
}

// Tells the server of this browser's subscription; with `only_known`, null when it has no device of it.
async function keep(subscription, only_known) {
  const token = await recall("token").catch(() => null);
  const answer = await fetch("/app/devices", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content },
    body: JSON.stringify({ subscription: subscription.toJSON(), token, only_known }),
  });
  if (answer.redirected) throw new Error("you are signed out: sign in again.");
  const kept = await answer.json();
  if (answer.status === 404) return null;
  if (answer.status !== 201) throw new Error(kept.error);
  await remember("publicKey", kept.publicKey).catch(() => {}); // a private window keeps nothing
  if (kept.token) await remember("token", kept.token).catch(() => {});
  return kept;
}

function isOf(subscription, publicKey) {
  const key = subscription.options.applicationServerKey;
  return !key || String(new Uint8Array(key)) === String(keyBytes(publicKey));
}

async function enable(registration) {
  try {
    const subscribing = subscribe(registration, card.dataset.publicKey);
    show("subscribing"); // after it: Safari asks only in the very task of a tap
    await keep(await within(SUBSCRIBE_LIMIT_MS, subscribing), false);
    location.reload();
  } catch (fault) {
    if (Notification.permission === "denied") show("denied");
    else if (fault.message === "late") show("late", true);
    else show("failed", true, fault.message);
  }
}

const hasWebPush = () => "serviceWorker" in navigator && "PushManager" in window;
const isAppleTouch = () => /iPhone|iPad/.test(navigator.userAgent) || (/Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);

async function offer() {
  if (!isSecureContext) return show("insecure");
  if (!hasWebPush()) return show(isAppleTouch() ? "install" : "unsupported");
  const registration = await navigator.serviceWorker.register("/app/sw.js", { scope: "/app/" });
  await navigator.serviceWorker.ready;
  const subscription = await registration.pushManager.getSubscription();
  button.addEventListener("click", () => enable(registration));
  if (Notification.permission === "denied") return show("denied");
  if (!subscription) return show(Notification.permission === "granted" ? "off" : "default", true);
  if (!isOf(subscription, card.dataset.publicKey)) {
    await subscription.unsubscribe(); // else subscribing with the new key fails
    return show("changed", true);
  }
  if (await keep(subscription, true)) return show("on");
  return show("lost", true);
}

// Once in each tab's life: the server hears that this browser is still there, and what its subscription is now.
async function visit() {
  if (!isSecureContext || !hasWebPush() || sessionStorage.getItem("visited")) return;
  const registration = await navigator.serviceWorker.getRegistration("/app/");
  const subscription = registration && (await registration.pushManager.getSubscription());
  const kept = subscription && (await keep(subscription, true));
  if (kept && !isOf(subscription, kept.publicKey)) {
    await subscription.unsubscribe(); // it was made with a key that the server has no more
    await keep(await subscribe(registration, kept.publicKey), true);
  }
  sessionStorage.setItem("visited", "yes");
}

if (card) offer().catch((fault) => show("failed", true, fault.message));
else if (document.body.classList.contains("app")) visit().catch(() => {}); // at the next page
