// What pages do beyond links and forms. Without this script everything can be read and done all the same.
"use strict";

const base = document.body.dataset.base;
const live = document.getElementById("live");

// Times by the clock of the person who looks, if that person wants it so.
function showTimes() {
  const local = localStorage.getItem("zone") === "local";
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const text = local
      ? at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })
      : at.toISOString().slice(0, 19).replace("T", " ") + " UTC";
    if (time.classList.contains("at")) time.textContent = text;
    else time.title = text;
  }
  const button = document.getElementById("zone");
  if (button) button.textContent = local ? "Times: yours" : "Times: UTC";
}

function addZoneSwitch() {
  const button = document.createElement("button");
  button.id = "zone";
  button.type = "button";
  button.addEventListener("click", () => {
    localStorage.setItem("zone", localStorage.getItem("zone") === "local" ? "utc" : "local");
    showTimes();
  });
  document.querySelector(".top").append(button);
}

// A page that a person works in is not replaced under the pointer.
function isInUse() {
  const active = document.activeElement;
  const writes = active && active.closest("main") && active.matches("input, textarea, select");
  return writes || document.querySelector("details.action[open]") || document.querySelector("dialog[open]") || !getSelection().isCollapsed;
}

// At least this long between two fetches of a page, and after one that failed, in milliseconds. As long as the server takes between two
// looks for changes: together with a fetch that is less than a second.
const PAUSE = 400;
const PAUSE_AFTER_FAILURE = 5_000;
// Longer than the server takes for a page.
const FETCH_TIMEOUT = 35_000;

let fetching = false;
let waiting = false;

// Fetches the page again and changes what differs. What is refused leaves the page as it was.
async function refresh() {
  if (fetching) { waiting = true; return; }
  fetching = true;
  let pause = PAUSE;
  try {
    const signal = AbortSignal.timeout(FETCH_TIMEOUT);
    const answer = await fetch(location.href, { headers: { accept: "text/html", "sexton-refresh": "1" }, redirect: "manual", signal });
    if (answer.type === "opaqueredirect") say("You are not logged in any more: load the page again.");
    else if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    else throw new Error(`${answer.status}`);
  } catch {
    waiting = true;
    pause = PAUSE_AFTER_FAILURE;
  } finally {
    setTimeout(() => {
      fetching = false;
      if (waiting && !document.hidden) { waiting = false; refresh(); }
    }, pause);
  }
}

function show(page) {
  const fresh = page.getElementById("main");
  if (isNewVersion(page) && !isInUse()) location.reload();
  else if (fresh) apply(fresh);
}

// Whether the server was replaced by a version with another script or style.
function isNewVersion(page) {
  const files = (document) => [...document.querySelectorAll("head script, head link")].map((it) => it.getAttribute("src") ?? it.getAttribute("href"));
  return files(page).join() !== files(document).join();
}

// Says something above the page; what is said again takes its place.
function say(...content) {
  live.replaceChildren(...content);
  live.hidden = content.length === 0;
}

let pending = null;

function apply(fresh) {
  if (!isInUse()) { replace(fresh); return; }
  pending = fresh;
  const added = [...fresh.querySelectorAll("tbody tr[id]")].filter((row) => !document.getElementById(row.id)).length;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = added ? `${added} new: show` : "This page has changed: show";
  button.addEventListener("click", () => { if (pending) replace(pending); });
  say(button);
}

function replace(fresh) {
  pending = null;
  say();
  const open = [...document.querySelectorAll("details[open][id]")].map((element) => element.id);
  Idiomorph.morph(document.getElementById("main"), fresh, { ignoreActiveValue: true });
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  showTimes();
  addCopyButtons();
}

// How long a server may stay silent before the page says so, and until the next try where it refuses the stream, in milliseconds.
const SILENCE = 5_000;
const NEXT_TRY = 10_000;

// Changes come by one stream; the server polls the database once for all who look. A stream begins with a sign, too: something may have
// changed between the page and the stream.
function listen() {
  const topics = document.getElementById("main").dataset.topics;
  if (!topics) return;
  if (topics === "retry") { setTimeout(() => location.reload(), PAUSE_AFTER_FAILURE); return; }
  let stream = null;
  let silence = null;
  const heard = () => { clearTimeout(silence); silence = null; };
  const close = () => { heard(); stream?.close(); stream = null; };
  const open = () => {
    close();
    stream = new EventSource(`${base}/events?topics=${encodeURIComponent(topics)}`);
    stream.addEventListener("open", heard);
    stream.addEventListener("changed", () => { if (!pending) say(); refresh(); });
    stream.addEventListener("lost", () => say("PostgreSQL does not answer. What you see is as it was; the page follows again by itself."));
    // A stream ends now and then, and the browser opens another one, except where the server refuses it.
    stream.addEventListener("error", () => {
      // Each try that fails is an error; the silence began with the first.
      silence ??= setTimeout(() => {
        silence = null;
        say("The server does not answer. What you see is as it was; the page follows again by itself.");
        // By now the browser tries by itself, or has given up.
        if (stream?.readyState === EventSource.CLOSED) setTimeout(() => { if (!document.hidden) open(); }, NEXT_TRY);
      }, SILENCE);
    });
  };
  // A page that nobody sees costs nothing; it is fetched when it is seen again.
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  if (!document.hidden) open();
}

function addCopyButtons() {
  for (const code of document.querySelectorAll(".copy pre")) {
    if (code.nextElementSibling?.matches("button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    });
    code.after(button);
  }
}

// Ctrl-K, or a slash, leads to the search from everywhere.
document.addEventListener("keydown", (event) => {
  const search = document.getElementById("q");
  const types = event.target.matches("input, textarea, select");
  if (search && ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !types))) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

addZoneSwitch();
showTimes();
addCopyButtons();
listen();
