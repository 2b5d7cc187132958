// Shows every push, whatever it holds: a browser withdraws a subscription whose pushes show nothing.
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function read(event) {
  try {
    const { title, ...options } = event.data.json().notification;
    if (typeof title === "string") return { title, options };
  } catch {
    // shown in general words below
  }
  return { title: "Pocketbell", options: { body: "A notification arrived that could not be read." } };
}

self.addEventListener("push", (event) => {
  const { title, options } = read(event);
  const { body, tag, navigate } = options;
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: "/app/static/icon-192.png", data: { navigate } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

// Only a path of our own is ever opened.
async function open(data) {
  const wanted = new URL((data && data.navigate) || "/app/", self.location.origin);
  const page = wanted.origin === self.location.origin ? wanted.pathname : "/app/";
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const here = windows.find((client) => new URL(client.url).pathname.startsWith("/app/"));
  if (!here) return self.clients.openWindow(page);
  await here.navigate(page);
  return here.focus();
}
