// What is better with a script, and works without one: a question that is followed, copying, keys, the clock.
// Own code rather than a library's: this is all the pages need, and no text of a question is read as an instruction.
"use strict";

// A source opens where the reader is. Close leads to no place, so the page stays, and the mark has the focus again.
let opener = null;
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".cite, .source > a, .close");
  if (link?.matches(".close")) return void setTimeout(() => opener?.focus({ preventScroll: true }));
  if (link) {
    event.preventDefault();
    opener = link;
    const at = scrollY;
    location.hash = link.hash;
    scrollTo(0, at);
  }
  const copied = event.target.closest?.("[data-copy] > summary");
  if (copied && navigator.clipboard && !copied.parentElement.open) {
    event.preventDefault(); // where the browser refuses, the text is shown
    navigator.clipboard.writeText(copied.nextElementSibling.textContent).then(
      () => (copied.textContent = "Copied"),
      () => (copied.parentElement.open = true),
    );
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelector(".passage:target .close")?.click();
  const writes = event.target.matches?.("textarea, input, select"), alone = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (writes && event.key === "Escape") event.target.blur();
  const meant = !writes && alone && document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (meant) event.preventDefault(), meant.matches("textarea, input") ? meant.focus() : meant.click();
  const asks = event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches?.("textarea");
  if (asks) event.preventDefault(), event.target.form.requestSubmit();
});

// Two runs make a comparison.
const compare = document.querySelector("button[data-needs]");
const count = () => (compare.disabled = document.querySelectorAll(".runs :checked").length < compare.dataset.needs);
if (compare) document.addEventListener("change", count), count();

// A question on its way: a message holds what changes, and takes its place. What is open and focused stays so.
const followed = document.querySelector("[data-events]");
if (followed) {
  const source = new EventSource(followed.dataset.events);
  let began = 0;
  const start = () => (began = performance.now() - 1000 * Number(document.querySelector("[data-clock]")?.textContent));
  const clock = setInterval(() => {
    const shown = document.querySelector("[data-clock]");
    if (shown) shown.textContent = ((performance.now() - began) / 1000).toFixed(1);
  }, 200);
  const name = (fold) => `${fold.closest("[id]").id} ${fold.matches(".fork") || fold.querySelector("summary").textContent}`;
  const show = (message) => {
    const fresh = new DOMParser().parseFromString(message.data, "text/html");
    const said = document.getElementById("status"), says = fresh.getElementById("status").textContent;
    if (said.textContent !== says) said.textContent = says; // a screen reader watches the element
    const live = document.getElementById("live"), now = fresh.getElementById("live");
    const was = new Map([...live.querySelectorAll("details")].map((fold) => [name(fold), fold]));
    const focused = document.activeElement;
    live.replaceWith(now);
    for (const fold of now.querySelectorAll("details")) {
      const before = was.get(name(fold));
      if (!before) continue;
      fold.open = before.open;
      if (before.contains(focused)) fold.querySelector("summary").focus({ preventScroll: true });
    }
  };
  const end = () => (source.close(), clearInterval(clock));
  start();
  source.addEventListener("piece", (message) => (show(message), start()));
  source.addEventListener("end", (message) => (end(), show(message)));
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    end();
    document.getElementById("status").className = "bad";
    document.getElementById("status").textContent = "The connection to the server is lost. Load the page again.";
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // brought back by the back button, its events have gone on meanwhile
  });
}

// Of a long list at the side, the part is seen in which the reader is.
const listed = document.querySelector(".still [aria-current]");
if (listed) listed.closest(".still").scrollTop = listed.offsetTop - 100;
