// A phone with a quarter of this processor, 400 ms from the server by a line of 400 kbit/s: a first visit of pages costs little, nothing
// jumps, and what failed can be read and requeued before the script has come.
//
//   slow-phone.js ADDRESS FAILURE PATH…
"use strict";

const { run, open, assert } = require("./browser");

// Uncompressed, in which case few proxies leave them.
const MAX_BYTES = 80_000;
const MAX_SHIFT = 0.02;
// Of the time that the line alone takes, how much of the processor's the page may take in one go, and in all by long tasks.
const MAX_LONGEST_SHARE = 0.25;
const MAX_BUSY_SHARE = 0.5;
// What the browsers call a long task.
const LONG_MS = 50;
// Other work of this machine only adds to what the processor seems to take, so one of a few visits must keep within the shares.
const MAX_VISITS = 3;
const LATENCY_MS = 400;
const BYTES_PER_S = 50_000;
// One after the other: the connection, the document, what it names.
const ROUND_TRIPS = 3;
const PHONE = { isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

function observe() {
  window.seen = { shift: 0, largest: 0 };
  const { seen } = window;
  const on = (type, note) => new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type, buffered: true });
  on("layout-shift", (it) => { if (!it.hadRecentInput) seen.shift += it.value; });
  on("largest-contentful-paint", (it) => { seen.largest = it.startTime; });
}

// A phone that has been here never before.
async function phone(browser, options = {}) {
  const page = await open(browser, { width: 360, context: PHONE, ...options });
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false, latency: LATENCY_MS, downloadThroughput: BYTES_PER_S, uploadThroughput: BYTES_PER_S,
  });
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  return { page, session };
}

// The time of the processor that each task of the page's thread took, by the browser's own trace: what else runs on this machine does not
// count, as it would in a task's duration.
function tasks(trace) {
  const events = JSON.parse(trace).traceEvents;
  const threads = events.filter((it) => it.name === "thread_name" && it.args.name === "CrRendererMain");
  const all = threads.map(({ pid, tid }) => events
    .filter((it) => it.pid === pid && it.tid === tid && it.name === "RunTask" && it.tdur !== undefined)
    .map((it) => it.tdur / 1000));
  // Of a renderer that waits for a page to come, nearly nothing.
  const sum = (times) => times.reduce((total, it) => total + it, 0);
  const times = all.sort((one, other) => sum(other) - sum(one))[0] || [];
  const long = times.filter((it) => it > LONG_MS);
  return { total: sum(times), longest: Math.max(0, ...times), busy: sum(long) };
}

async function visit(browser, address, path) {
  const { page, session } = await phone(browser);
  await page.addInitScript(observe);
  let bytes = 0;
  session.on("Network.loadingFinished", (it) => { bytes += it.encodedDataLength; });
  await browser.startTracing(page, { categories: ["disabled-by-default-devtools.timeline"] });
  const answer = await page.goto(address + path, { waitUntil: "load" });
  assert(answer.status() === 200, `${path}: ${answer.status()}`);
  await page.locator("h1").waitFor();
  // What is observed is handed over in a task of its own; the paint may come after the load.
  await page.waitForFunction(() => window.seen.largest > 0 && performance.getEntriesByName("first-contentful-paint").length > 0);
  const seen = await page.evaluate(() => {
    const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const blocking = performance.getEntriesByType("resource").filter((it) => it.renderBlockingStatus === "blocking");
    const loaded = performance.getEntriesByType("navigation")[0].loadEventEnd;
    return { ...window.seen, painted, loaded, blocking: blocking.map((it) => it.name) };
  });
  const { total, longest, busy } = tasks(await browser.stopTracing());
  assert(bytes > 0 && bytes <= MAX_BYTES, `${path}: ${bytes} bytes`);
  // Only the style sheet holds up the paint, beside the document.
  const isStyle = (name) => new URL(name).pathname.endsWith(".css");
  assert(seen.blocking.length === 1 && seen.blocking.every(isStyle), `${path}: [${seen.blocking.join(", ")}] hold up the paint`);
  assert(seen.shift <= MAX_SHIFT, `${path}: the layout shifts by ${seen.shift}`);
  assert(total > 0, `${path}: no task was traced`);
  const line = ROUND_TRIPS * LATENCY_MS + (bytes / BYTES_PER_S) * 1000;
  assert(page.faults.length === 0, page.faults.join("\n"));
  await page.context().close();
  return { ...seen, bytes, total, longest, busy, line };
}

async function firstVisit(browser, address, path) {
  let seen;
  for (let visits = 0; visits < MAX_VISITS; visits += 1) {
    seen = await visit(browser, address, path);
    if (seen.longest <= MAX_LONGEST_SHARE * seen.line && seen.busy <= MAX_BUSY_SHARE * seen.line) break;
  }
  const { bytes, total, longest, busy, line } = seen;
  const ms = (time) => Math.round(time);
  console.log(
    `MEASURED ${path.replace(/[0-9a-f-]{36}/, "{id}")} on a slow phone: first paint ${ms(seen.painted)} ms, largest ${ms(seen.largest)} ms, ` +
    `loaded ${ms(seen.loaded)} ms, ${bytes} bytes, ${seen.blocking.length} requests hold up the paint, shift ${seen.shift.toFixed(3)}, ` +
    `the processor taken for ${ms(total)} ms, ${ms(longest)} ms of them in one go`,
  );
  assert(longest <= MAX_LONGEST_SHARE * line, `${path}: a task takes ${longest} ms, and the line ${line} ms`);
  assert(busy <= MAX_BUSY_SHARE * line, `${path}: long tasks take ${busy} ms, and the line ${line} ms`);
}

async function requeueWithoutScript(browser, address, failure) {
  const { page } = await phone(browser);
  let held = 0;
  // The browser waits for them: they never come.
  await page.route("**/assets/*.js", () => { held += 1; });
  await page.goto(address + failure, { waitUntil: "commit" });
  await page.locator("pre.error").waitFor();
  await page.locator("summary", { hasText: /^Requeue$/ }).tap();
  await page.getByLabel("Reason").first().fill("from a train");
  await page.getByRole("button", { name: "Requeue", exact: true }).tap({ noWaitAfter: true });
  await page.getByText("You have requeued it").waitFor();
  assert(held > 0, "the scripts were not held");
}

run(async ({ browser, address, arguments: [failure, ...paths] }) => {
  for (const path of paths) await firstVisit(browser, address, path);
  await requeueWithoutScript(browser, address, failure);
});
