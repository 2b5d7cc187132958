// Shows every push, even an unreadable one: browsers revoke subscriptions whose pushes show nothing. Caches a page for
// when there is no network, but nothing that belongs to an account.
"use strict";

importScripts("/app/static/push.js");

const OFFLINE = "/app/static/offline.html";
const KEPT = [OFFLINE, "/app/static/app.css", "/app/static/logo.svg"];
const CACHE = "pocketbell-1";

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(KEPT)).catch(() => {}));
});

self.addEventListener("activate", (event) => event.waitUntil(Promise.all([self.clients.claim(), sendPresses()])));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname } = new URL(request.url);
  if (request.mode === "navigate") {
    event.respondWith(fetch(request).catch(() => cached(OFFLINE)));
    event.waitUntil(sendPresses());
  }
  else if (KEPT.includes(pathname)) event.respondWith(fresh(request, pathname));
});

const cached = async (path) => (await caches.match(path)) || Response.error();

// Fetches from the network and updates the cache; without a network, answers from the cache.
async function fresh(request, path) {
  try {
    const answer = await fetch(request);
    if (answer.ok) await caches.open(CACHE).then((cache) => cache.put(path, answer.clone())).catch(() => {});
    return answer;
  } catch {
    return cached(path);
  }
}

function read(event) {
  try {
    const message = event.data ? event.data.json() : event; // Safari has read a declarative push itself
    const notification = message.notification ?? message; // declarative Web Push, or plain JSON
    const { title, body = "", tag, navigate, silent, requireInteraction, actions, image } = notification;
    if (![title, body].every((text) => typeof text === "string")) return UNREADABLE;
    const urgency = { ...(silent === true && { silent }), ...(requireInteraction === true && { requireInteraction }) };
    const data = destination(navigate);
    if (Array.isArray(actions)) {
      data.actions = actions.filter(isButton).map(({ action, title, navigate }) => ({ action, title, navigate }));
    }
    const picture = typeof image === "string" ? { image } : {}; // Safari shows none
    return { title, body, tag: String(tag ?? ""), data, ...urgency, ...picture };
  } catch {
    return UNREADABLE;
  }
}

// Without these texts no notification with the button would be shown.
const isButton = (one) => [one?.action, one?.title].every((text) => typeof text === "string");

const UNREADABLE = { title: "Pocketbell", body: "You have a notification that could not be read." };

self.addEventListener("push", (event) => event.waitUntil(Promise.all([show(read(event)), sendPresses()])));

async function show({ title, ...options }) {
  const pictures = { icon: "/app/static/icon-192.png", badge: "/app/static/badge-96.png" };
  if (options.tag) await closeEarlier(options.tag);
  await self.registration.showNotification(title, { ...pictures, ...options, ...buttons(options.data) });
  await countOnIcon();
}

// As many buttons as the browser shows; the notification's page has all of them. Safari shows none, and ignores them.
function buttons(data) {
  const shown = (data?.actions ?? []).slice(0, Notification.maxActions ?? 2);
  return shown.length ? { actions: shown.map(({ action, title }) => ({ action, title })) } : {};
}

// The number on the web app's icon: how many of the notifications that are shown want to be acknowledged.
async function countOnIcon(closed) {
  try {
    const shown = await self.registration.getNotifications();
    const waits = ({ tag, data }) => tag !== closed && data?.actions?.some(({ action }) => action === "acknowledge");
    const count = shown.filter(waits).length;
    await (count ? navigator.setAppBadge(count) : navigator.clearAppBadge());
  } catch {
    // this browser has no such number
  }
}

// Safari shows the notifications of a tag beside each other; elsewhere the newest would replace them without a sound.
async function closeEarlier(tag) {
  try {
    for (const earlier of await self.registration.getNotifications({ tag })) earlier.close();
  } catch {
    // better two on the screen than none
  }
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(Promise.all([follow(event.action, event.notification), countOnIcon(event.notification.tag)]));
});

self.addEventListener("notificationclose", (event) => event.waitUntil(countOnIcon(event.notification.tag)));

// What a tap asks for: the page, or what the button that was pressed does.
function follow(action, { title, data }) {
  const pressed = action && data?.actions?.find((one) => one.action === action);
  const path = pressed && pathOfPress(pressed.navigate);
  if (path) return press(path, title);
  const opened = pressed ? destination(pressed.navigate) : data;
  return Promise.all([openPage(opened), sendPresses()]);
}

// --- buttons that answer or acknowledge ---------------------------------------------------------------------

const PRESS = /^\/a\/[\w-]{22}$/;
const ENDS = { 404: "This button no longer works.", 409: "This was already answered." };

// The path of the button's address if a press on it is sent to us, and not opened.
function pathOfPress(navigate) {
  try {
    const { origin, pathname } = new URL(navigate);
    return origin === self.location.origin && PRESS.test(pathname) ? pathname : null;
  } catch {
    return null;
  }
}

// Keeps the press until it has arrived: a phone may have no network just now.
async function press(path, title) {
  const isKept = await remember(path, title).then(() => true, () => false); // private windows store nothing
  const isLeft = isKept ? await sendPresses() : await send(path, title);
  if (isLeft && isKept) await self.registration.sync?.register("presses").catch(() => {});
}

// Where there is no Background Sync, they are sent with the next push, tap or page.
self.addEventListener("sync", (event) => {
  event.waitUntil(sendPresses().then((isLeft) => { if (isLeft) throw new Error("They are sent again later."); }));
});

let sending = Promise.resolve(false);

// Sends what is kept, each press once. Resolves to whether anything is left.
function sendPresses() {
  sending = sending.then(sendAll).catch(() => true);
  return sending;
}

async function sendAll() {
  let isLeft = false;
  for (const path of await namesFrom("/a/")) isLeft = (await send(path, await recall(path))) || isLeft;
  return isLeft;
}

// Resolves to whether it must be sent again. Tells when it came too late.
async function send(path, title) {
  const answer = await fetch(path, { method: "POST", credentials: "omit" }).catch(() => null);
  if (!answer || answer.status >= 500 || answer.status === 429) return true;
  await forget(path).catch(() => {});
  if (ENDS[answer.status]) await show({ title, body: ENDS[answer.status], tag: path, silent: true });
  return false;
}

// Whether that is a web address which is not a page of ours: the URL that the sender gave the notification.
function isElsewhere(navigate) {
  try {
    const { href, protocol } = new URL(navigate);
    return ["http:", "https:"].includes(protocol) && !href.startsWith(new URL("/app/", self.location.origin).href);
  } catch {
    return false;
  }
}

const destination = (navigate) => (isElsewhere(navigate) ? { url: navigate } : { navigate });

// The absolute URL of a page of ours. Opening a bare path is not safe: one that begins with // names another host.
function ours(navigate) {
  const home = new URL("/app/", self.location.origin);
  try {
    const wanted = new URL(navigate || home, home);
    return wanted.href.startsWith(home.href) ? wanted.href : home.href;
  } catch {
    return home.href;
  }
}

async function openPage(data) {
  if (data && isElsewhere(data.url)) return self.clients.openWindow(data.url);
  const page = ours(data && data.navigate);
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const here = windows.find((client) => new URL(client.url).pathname.startsWith("/app/"));
  if (!here) return self.clients.openWindow(page);
  try {
    await here.navigate(page);
  } catch {
    return self.clients.openWindow(page); // this worker does not control that window
  }
  return here.focus();
}

// The push service replaced or revoked this browser's subscription: send the new one to the server.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(resync(event.newSubscription)));

async function resync(given) {
  const token = await recall("token");
  if (!token) return; // the next visit sends it instead
  const subscription = given ?? (await subscribe(self.registration, await recall("publicKey")));
  const answer = await fetch("/app/devices/resync", {
    method: "POST",
    credentials: "omit",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ subscription: subscription.toJSON() }),
  });
  if (answer.status === 401) await forget("token"); // the next visit gets a new one
}
