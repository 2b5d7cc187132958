// Makes forms quicker: saves a choice when it changes, and filters icons and senders
// by their names. Without scripts there are buttons, and no filter.
"use strict";

// Shows the page in the theme that was just saved.
function wear(theme) {
  document.documentElement.dataset.theme = theme;
  document.querySelector('meta[name="color-scheme"]').content = theme === "system" ? "light dark" : theme;
}

async function save(form) {
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!answer.ok || new URL(answer.url).pathname === "/app/login") throw new Error(String(answer.status));
  if (form.elements.theme) wear(form.elements.theme.value);
  form.querySelector(".saved").textContent = "Saved";
}

for (const form of document.querySelectorAll("form[data-saves]")) {
  let open = 0, areSeveral = false;
  const send = async () => {
    areSeveral ||= open > 0;
    open += 1;
    await save(form);
    open -= 1;
    if (open || !areSeveral) return;
    areSeveral = false;
    await send(); // of several at once, an earlier one may have arrived last
  };
  form.querySelector("button").hidden = true;
  form.addEventListener("change", () => {
    form.querySelector(".saved").textContent = "";
    send().catch(() => form.submit()); // the page that follows says what is wrong
  });
}

for (const filter of document.querySelectorAll("input[data-filters]")) {
  const choices = [...document.querySelectorAll(`#${filter.dataset.filters} label`)];
  const none = document.querySelector("[data-none]");
  (filter.closest("[hidden]") ?? filter).hidden = false;
  filter.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/[\s-]+/);
    for (const choice of choices) {
      const name = (choice.title || choice.textContent).toLowerCase();
      choice.hidden = !words.every((word) => name.includes(word));
    }
    none.hidden = choices.some((choice) => !choice.hidden);
  });
}
