// Shared by the pages and the service worker: subscribing, and values stored in this browser.
"use strict";

function keyBytes(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function subscribe(registration, publicKey) {
  return registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: keyBytes(publicKey) });
}

// An IndexedDB store: token, publicKey, and under its address each press of a button that has not arrived yet, with the
// title of its notification. It holds nothing else that belongs to an account.
function store(mode, use) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("pocketbell", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("push");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction("push", mode);
      const request = use(transaction.objectStore("push"));
      transaction.oncomplete = () => { opening.result.close(); resolve(request.result); };
      transaction.onerror = transaction.onabort = () => { opening.result.close(); reject(transaction.error); };
    };
  });
}

const recall = (name) => store("readonly", (kept) => kept.get(name));
const remember = (name, value) => store("readwrite", (kept) => kept.put(value, name));
const forget = (name) => store("readwrite", (kept) => kept.delete(name));
const namesFrom = (start) => store("readonly", (all) => all.getAllKeys(IDBKeyRange.bound(start, `${start}\uffff`)));
