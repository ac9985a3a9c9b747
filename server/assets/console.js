// What pages do beyond links and forms. Without this script everything can be read and done all the same.
"use strict";

const base = document.body.dataset.base;
const live = document.getElementById("live");

// The clocks by which times are shown, in the order of the switch: UTC, those of the person who looks, those of the job.
const CLOCKS = new Map([["utc", "UTC"], ["local", "yours"], ["job", "the job’s"]]);

function chosenClock() {
  const chosen = localStorage.getItem("zone");
  return CLOCKS.has(chosen) ? chosen : "utc";
}

// Writes an instant; by UTC, too, where the page does not know the job's zone or the browser does not.
function writeTime(at, clock, jobZone) {
  const utc = at.toISOString().slice(0, 19).replace("T", " ") + " UTC";
  const format = { dateStyle: "medium", timeStyle: "medium" };
  if (clock === "local") return at.toLocaleString(undefined, format);
  if (clock === "utc" || !jobZone) return utc;
  try {
    return `${at.toLocaleString(undefined, { ...format, timeZone: jobZone })} ${jobZone}`;
  } catch {
    return utc;
  }
}

// A relative time has its absolute one beside it.
function showTimes() {
  const clock = chosenClock();
  for (const text of document.querySelectorAll(".at")) {
    const time = text.closest("time");
    text.textContent = writeTime(new Date(time.dateTime), clock, time.closest("[data-zone]")?.dataset.zone);
  }
  const button = document.getElementById("zone");
  if (button) button.textContent = `Times: ${CLOCKS.get(clock)}`;
}

function addZoneSwitch() {
  const button = document.createElement("button");
  button.id = "zone";
  button.type = "button";
  button.addEventListener("click", () => {
    const clocks = [...CLOCKS.keys()];
    localStorage.setItem("zone", clocks[(clocks.indexOf(chosenClock()) + 1) % clocks.length]);
    showTimes();
  });
  document.querySelector(".top").append(button);
}

// A page that a person works in is not replaced.
function isInUse() {
  const active = document.activeElement;
  const writes = active && active.closest("main") && active.matches("input, textarea, select");
  return writes || document.querySelector("details.action[open]") || document.querySelector("dialog[open]") || !getSelection().isCollapsed;
}

// Whether this page would move the row under the pointer, since other rows come or go above it, or would take away the button under the
// pointer that shows it. A finger leaves its last row hovered: where people point with fingers, nothing is held back.
function movesUnderPointer(fresh) {
  if (!matchMedia("(hover: hover)").matches) return false;
  if (document.querySelector("#live button:hover")) return true;
  const row = document.querySelector("tbody tr:hover");
  if (!row) return false;
  const rows = (root) => [...root.querySelectorAll("tbody tr")];
  const count = rows(document).indexOf(row) + 1;
  const names = (root) => rows(root).slice(0, count).map(rowName).join();
  return names(document) !== names(fresh);
}

// What tells a row from others while its cells change: its id, or the instant or the text of its first cell.
function rowName(row) {
  const first = row.cells[0];
  return row.id || first.querySelector("time")?.dateTime || first.textContent;
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
    else if (answer.ok) apply(new DOMParser().parseFromString(await answer.text(), "text/html"));
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

// Whether the server was replaced by a version with another script or style.
function isNewVersion(page) {
  const files = (document) => [...document.querySelectorAll("head script, head link")].map((it) => it.getAttribute("src") ?? it.getAttribute("href"));
  return files(page).join() !== files(document).join();
}

// Shows a message or a button above the page, in the place of the one before.
function say(...content) {
  const box = document.createElement("span");
  box.append(...content);
  live.replaceChildren(box);
  live.hidden = content.length === 0;
}

// The page that is held back, and whether only a pointer holds it back.
let pending = null;
let waitsForPointer = false;

// One button for all changes that come meanwhile: another one in its place would lose a click under way.
const showPending = document.createElement("button");
showPending.type = "button";
showPending.addEventListener("click", () => { if (pending) replace(pending.getElementById("main")); });

// Shows a page that was fetched, or keeps it while that would disturb.
function apply(page) {
  const fresh = page.getElementById("main");
  if (!fresh) return;
  const inUse = isInUse();
  if (!inUse && !movesUnderPointer(fresh)) {
    if (isNewVersion(page)) location.reload();
    else replace(fresh);
    return;
  }
  pending = page;
  waitsForPointer = !inUse;
  const added = [...fresh.querySelectorAll("tbody tr[id]")].filter((row) => !document.getElementById(row.id)).length;
  const text = added ? `${added} new: show` : "This page has changed: show";
  if (showPending.textContent !== text) showPending.textContent = text;
  if (!showPending.isConnected) say(showPending);
}

// The pointer has come to something else, perhaps away from the rows.
function applyPending() {
  // A message in the place of the button stays: the next sign brings the page.
  if (pending && waitsForPointer && showPending.isConnected) apply(pending);
}

document.addEventListener("mouseover", applyPending);
// Until this event is over, the row may still count as hovered.
document.documentElement.addEventListener("mouseleave", () => setTimeout(applyPending));

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
