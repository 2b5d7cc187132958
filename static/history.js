// On the history: deletes several after a time in which that can be undone.
"use strict";

const UNDO_MS = 8000;

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
