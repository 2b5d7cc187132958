// On Home and the history: offers a link to new notifications while the page is visible (nothing moves while somebody
// reads), and deletes after a time in which that can be undone.
"use strict";

const POLL_MS = 5000, UNDO_MS = 8000;

const news = document.querySelector("[data-news]");

async function lookForNews() {
  if (document.hidden || !news.dataset.news || !(news.checkVisibility?.() ?? true)) return;
  const answer = await fetch(news.dataset.news);
  if (answer.redirected) news.dataset.news = ""; // signed out: the next page says so
  if (answer.redirected || !answer.ok) return;
  const many = (await answer.json()).new, link = news.firstChild, words = `${many} new`;
  if (!many || link.textContent === words) return;
  const list = news.nextElementSibling, before = list.getBoundingClientRect().top;
  link.lastChild.textContent = words;
  link.hidden = false;
  scrollBy(0, list.getBoundingClientRect().top - before); // the rows stay under the finger
}

// The parts of Home that say how everything is: put anew when they have changed, but not while somebody is about to
// press a button in them.
async function lookForChanges() {
  const first = document.querySelector("[data-live]");
  if (document.hidden || !first?.dataset.live) return;
  const address = first.dataset.live;
  const answer = await fetch(address);
  if (answer.redirected) first.dataset.live = "";
  if (answer.redirected || !answer.ok) return;
  const heading = document.querySelector("h1").textContent;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(part.id);
    if (!now || now.isEqualNode(part) || part.querySelector("form:hover, :focus")) continue;
    part.replaceChildren(...now.childNodes);
  }
  const said = document.querySelector("h1").textContent;
  if (said === heading) return;
  document.querySelector("[data-said]").textContent = said;
  document.title = `${said} – Pocketbell`;
}

if (news) {
  const look = () => Promise.all([lookForNews(), lookForChanges()]).catch(() => {}); // offline: the next look may succeed
  setInterval(look, POLL_MS);
  document.addEventListener("visibilitychange", look);
}

// Deleting several: they are hidden at once and deleted a little later, unless the owner taps "Undo".
const several = document.getElementById("several");
const boxes = [...document.querySelectorAll(".pick input")];
const chosen = () => boxes.filter((box) => box.checked && !box.closest("li").hidden);

function undoable(rows, many, sent) {
  const bar = document.createElement("p"), button = document.createElement("button");
  const put = (hidden) => rows.forEach((row) => { row.hidden = hidden; });
  const end = () => { clearTimeout(timer); removeEventListener("pagehide", send); bar.remove(); };
  const failed = () => {
    const said = document.createElement("p");
    said.className = "note bad";
    said.setAttribute("role", "alert");
    said.textContent = "Could not delete them. Try again.";
    put(false);
    several.before(said);
  };
  const send = () => {
    end();
    const body = new URLSearchParams([...sent, ["confirmed", "1"]]);
    fetch("/app/notifications/delete", { method: "POST", body, keepalive: true }).then((answer) => answer.ok || failed(), failed);
  };
  const timer = setTimeout(send, UNDO_MS);
  addEventListener("pagehide", send);
  bar.className = "toast";
  bar.setAttribute("role", "status");
  Object.assign(button, { type: "button", className: "button" });
  button.textContent = "Undo";
  button.addEventListener("click", () => { end(); put(false); boxes[0].focus(); });
  put(true);
  document.body.append(bar);
  bar.append(`${many} deleted `, button);
}

if (several) {
  const all = several.querySelector("[data-all]");
  all.hidden = false;
  all.addEventListener("click", () => {
    const isOn = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = isOn;
  });
  several.addEventListener("submit", (event) => {
    if (!new URL(event.submitter.formAction).pathname.endsWith("/delete") || !chosen().length) return;
    event.preventDefault();
    const ids = chosen().flatMap((box) => box.value.split(",")); // a row may be several
    undoable(chosen().map((box) => box.closest("li")), ids.length, new FormData(several));
    for (const box of boxes) box.checked = false;
  });
}
