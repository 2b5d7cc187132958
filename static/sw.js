// Shows every push, whatever it holds: a browser withdraws a subscription whose pushes show nothing.
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function read(event) {
  try {
    const { title, body = "", tag, navigate } = event.data.json().notification;
    if ([title, body].every((text) => typeof text === "string")) return { title, body, tag: String(tag ?? ""), navigate };
  } catch {
    // shown in general words below
  }
  return { title: "Pocketbell", body: "A notification arrived that could not be read." };
}

self.addEventListener("push", (event) => {
  const { title, body, tag, navigate } = read(event);
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: "/app/static/icon-192.png", data: { navigate } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
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

async function open(data) {
  const page = ours(data && data.navigate);
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const here = windows.find((client) => new URL(client.url).pathname.startsWith("/app/"));
  try {
    await here.navigate(page);
  } catch {
    return self.clients.openWindow(page); // no page, or one that this worker does not control
  }
  return here.focus();
}
