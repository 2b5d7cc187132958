// Shows every push, whatever it holds: a browser withdraws a subscription whose pushes show nothing. Keeps a page for
// when there is no network, and nothing that belongs to an account.
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

// From the network, and kept; from what was kept when there is none.
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
    const message = event.data.json();
    const { title, body = "", tag, navigate } = message.notification ?? message; // the declarative form, or a plain one
    if ([title, body].every((text) => typeof text === "string")) return { title, body, tag: String(tag ?? ""), navigate };
  } catch {
    // shown in general words below
  }
  return { title: "Pocketbell", body: "A notification arrived that could not be read." };
}

self.addEventListener("push", (event) => {
  const { title, body, tag, navigate } = read(event);
  const pictures = { icon: "/app/static/icon-192.png", badge: "/app/static/badge-96.png" };
  event.waitUntil(self.registration.showNotification(title, { body, tag, ...pictures, data: { navigate } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data));
});

// The whole address of a page of ours: a path alone could begin with two slashes, and so name another host.
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
  const page = ours(data && data.navigate);
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const here = windows.find((client) => new URL(client.url).pathname.startsWith("/app/"));
  if (!here) return self.clients.openWindow(page);
  try {
    await here.navigate(page);
  } catch {
    return self.clients.openWindow(page); // this worker does not control that one
  }
  return here.focus();
}

// The push service gave this browser another subscription, or took it away: the server must hear of the new one.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(resync(event.newSubscription)));

async function resync(given) {
  const token = await recall("token");
  if (!token) return; // at the next visit, then
  const subscription = given ?? (await subscribe(self.registration, await recall("publicKey")));
  const answer = await fetch("/app/devices/resync", {
    method: "POST",
    credentials: "omit",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ subscription: subscription.toJSON() }),
  });
  if (answer.status === 401) await forget("token"); // the next visit gets another
}
