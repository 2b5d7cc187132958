// What changes by itself while the page is visible: a link to new notifications (nothing moves while somebody reads), and
// the parts with `data-live`.
"use strict";

const POLL_MS = 5000;

const news = document.querySelector("[data-news]"), first = document.querySelector('[data-live^="/"]');

// Makes a change, and scrolls by as much as it moves the element: that stays under the finger. A page that is too short
// for that is made longer.
function keeping(element, change) {
  const before = element?.getBoundingClientRect().top;
  change();
  if (!element?.isConnected) return;
  const moved = element.getBoundingClientRect().top - before;
  if (moved > 0) document.body.style.minHeight = `${innerHeight + scrollY + moved}px`;
  scrollBy(0, moved);
}

async function lookForNews() {
  if (document.hidden || !news?.dataset.news || !(news.checkVisibility?.() ?? true)) return;
  const answer = await fetch(news.dataset.news);
  if (answer.redirected) news.dataset.news = ""; // signed out: the next page says so
  if (answer.redirected || !answer.ok) return;
  const many = (await answer.json()).new, link = news.firstChild, words = `${many} new`;
  if (!many || link.textContent === words) return;
  link.lastChild.textContent = words;
  link.hidden = false;
}

// The parts with `data-live` are put anew when they have changed, but not while somebody is about to press a button in
// them. One of them names the address that has them all.
async function lookForChanges() {
  if (document.hidden || !first?.dataset.live) return;
  const answer = await fetch(first.dataset.live, { headers: { "X-Live": "1" } });
  if (answer.redirected) first.dataset.live = "";
  if (answer.redirected || !answer.ok) return;
  const heading = document.querySelector("h1").textContent;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(part.id);
    if (!now || now.isEqualNode(part) || part.querySelector("form:hover, :focus, details[open]")) continue;
    const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    keeping(middle?.contains(part) ? part.nextElementSibling : middle, () => part.replaceChildren(...now.childNodes));
  }
  const said = document.querySelector("h1").textContent;
  if (said === heading) return;
  document.querySelector("[data-said]").textContent = said;
  document.title = `${said} – Pocketbell`;
}

if (news || first) {
  const look = () => Promise.all([lookForNews(), lookForChanges()]).catch(() => {}); // offline: the next look may succeed
  setInterval(look, POLL_MS);
  document.addEventListener("visibilitychange", look);
}
