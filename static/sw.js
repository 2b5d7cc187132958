// Shows every push, even an unreadable one: browsers revoke subscriptions whose pushes show nothing. Caches a page for
// when there is no network, but nothing that belongs to an account.
"use strict";

importScripts("/app/static/push.js");

const OFFLINE = "/app/static/offline.html";
const KEPT = [OFFLINE, "/app/static/app.css", "/app/static/dark.css", "/app/static/icon.svg"];
const CACHE = "pocketbell-1";

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(KEPT)).catch(() => {}));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname } = new URL(request.url);
  if (request.mode === "navigate") event.respondWith(fetch(request).catch(() => kept(OFFLINE)));
  else if (KEPT.includes(pathname)) event.respondWith(fresh(request, pathname));
});

const kept = async (path) => (await caches.match(path)) || Response.error();

// Fetches from the network and updates the cache; without a network, answers from the cache.
async function fresh(request, path) {
  try {
    const answer = await fetch(request);
    if (answer.ok) await caches.open(CACHE).then((cache) => cache.put(path, answer.clone())).catch(() => {});
    return answer;
  } catch {
    return kept(path);
  }
}

function read(event) {
  try {
    const message = event.data ? event.data.json() : event; // Safari has read a declarative push itself
    const notification = message.notification ?? message; // declarative Web Push, or plain JSON
    const { title, body = "", tag, navigate, silent, requireInteraction } = notification;
    if (![title, body].every((text) => typeof text === "string")) return UNREADABLE;
    const urgency = { ...(silent === true && { silent }), ...(requireInteraction === true && { requireInteraction }) };
    const data = isElsewhere(navigate) ? { url: navigate } : { navigate };
    return { title, body, tag: String(tag ?? ""), data, ...urgency };
  } catch {
    return UNREADABLE;
  }
}

const UNREADABLE = { title: "Pocketbell", body: "A notification arrived that could not be read." };

self.addEventListener("push", (event) => event.waitUntil(show(read(event))));

async function show({ title, ...options }) {
  const pictures = { icon: "/app/static/icon-192.png", badge: "/app/static/badge-96.png" };
  if (options.tag) await closeEarlier(options.tag);
  return self.registration.showNotification(title, { ...pictures, ...options });
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
  event.waitUntil(openPage(event.notification.data));
});

// Whether that is a web address which is not a page of ours: the URL that the sender gave the notification.
function isElsewhere(navigate) {
  try {
    const { href, protocol } = new URL(navigate);
    return ["http:", "https:"].includes(protocol) && !href.startsWith(new URL("/app/", self.location.origin).href);
  } catch {
    return false;
  }
}

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
