// On the history: deletes several after a time in which that can be undone.
"use strict";

const UNDO_MS = 8000;
const LEAVE_MS = 3000; // that leaving the page waits for a deletion at most
const AGAIN = "Could not delete them. Try again.";

// Deleting several: they are hidden at once and deleted a little later, unless the owner taps "Undo".
const several = document.getElementById("several");
const boxes = [...document.querySelectorAll(".pick input")];
const chosen = () => boxes.filter((box) => box.checked && !box.closest("li").hidden);
let unsent = null; // sends the deletion that can still be undone, and resolves to whether it worked

function undoable(rows, many, sent) {
  unsent?.(); // one toast at a time
  const bar = document.createElement("p"), button = document.createElement("button");
  const put = (hidden) => rows.forEach((row) => { row.hidden = hidden; });
  const end = () => { clearTimeout(timer); removeEventListener("pagehide", send); bar.remove(); unsent = null; };
  const failed = (sentence) => {
    const said = document.createElement("p");
    said.className = "note bad";
    said.setAttribute("role", "alert");
    said.textContent = sentence;
    put(false);
    several.before(said);
    said.scrollIntoView({ block: "nearest" });
    return false;
  };
  const send = () => {
    end();
    const body = new URLSearchParams([...sent, ["confirmed", "1"]]);
    return fetch("/app/notifications/delete", { method: "POST", body, keepalive: true }).then((answer) => {
      if (new URL(answer.url).pathname === "/app/login") return failed("Could not delete them: you are signed out. Sign in again.");
      return answer.ok || failed(AGAIN);
    }, () => failed(AGAIN));
  };
  unsent = send;
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

// What leaves the page waits for the deletion, so that the next page does not list the rows. If it fails, this page says so.
function delay(event, leave) {
  event.preventDefault();
  within(LEAVE_MS, unsent()).catch(() => true).then((isDone) => isDone && leave());
}

if (several) {
  const all = several.querySelector("[data-all]");
  all.hidden = false;
  all.addEventListener("click", () => {
    const isOn = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = isOn;
  });
  several.addEventListener("submit", (event) => {
    if (!new URL(event.submitter.formAction).pathname.endsWith("/delete") || !(chosen().length || unsent)) return;
    event.preventDefault();
    if (!chosen().length) return; // a double click
    const ids = chosen().flatMap((box) => box.value.split(",")); // a row may be several
    undoable(chosen().map((box) => box.closest("li")), ids.length, new FormData(several));
    for (const box of boxes) box.checked = false;
  });
  addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="/"]:not([download])');
    const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey; // a new tab or window
    if (unsent && link && !isElsewhere && !event.defaultPrevented) delay(event, () => location.assign(link.href));
  });
  addEventListener("submit", (event) => {
    const { target, submitter } = event, isForNothing = (submitter?.formMethod || target.method) === "dialog";
    if (unsent && !isForNothing && !event.defaultPrevented) delay(event, () => target.requestSubmit(submitter));
  });
}
