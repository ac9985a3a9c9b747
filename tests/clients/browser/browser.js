// What the stories have in common: a browser, a page that reports its faults, and checks that hold on every page.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { chromium } = require("playwright-core");

const axe = fs.readFileSync(require.resolve("axe-core"), "utf8");
const TIMEOUT = 30_000;
// This machine's network is closed to everything that a browser does by itself.
const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];

// A proxy that removes what it was configured for from the beginning of each path.
function removeBasePath(address) {
  const { origin, hostname, port, pathname } = new URL(address);
  const proxy = http.createServer((request, answer) => {
    const { method, headers, url } = request;
    const forwarded = http.request({ host: hostname, port, method, headers, path: url.replace(pathname, "") || "/" }, (upstream) => {
      answer.writeHead(upstream.statusCode, upstream.headers);
      upstream.pipe(answer);
    });
    forwarded.on("error", () => answer.destroy());
    request.pipe(forwarded);
  });
  return new Promise((resolve) => {
    proxy.listen(0, "127.0.0.1", () => resolve(address.replace(origin, `http://${hostname}:${proxy.address().port}`)));
  });
}

// Runs a story, and ends the process with its outcome.
function run(story) {
  let [address, ...rest] = process.argv.slice(2);
  (async () => {
    if (process.env.BASE_PATH_REMOVED) address = await removeBasePath(address);
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ARGUMENTS });
    try {
      await story({ browser, address, arguments: rest });
      console.log("seen to the end");
      // Streams that nobody reads any more keep a proxy alive.
      setImmediate(() => process.exit(0));
    } finally {
      await browser.close();
    }
  })().catch((error) => {
    console.error(error.stack || error);
    process.exit(1);
  });
}

// Opens a page whose scripts and console may report nothing.
async function open(browser, { width = 1440, scheme = "light", script = true, context: options = {} } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, javaScriptEnabled: script, ...options,
  });
  context.setDefaultTimeout(TIMEOUT);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // The browser itself says that a document had a status above 400.
    const expected = message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !expected) page.faults.push(message.text());
  });
  return page;
}

// Fails if people could not use the page: by the rules of axe, of which only some may be named, for the width of its text, or because of a
// fault.
async function check(page, rules) {
  const where = `${page.url()} at ${page.viewportSize().width} px`;
  if (await page.evaluate(() => typeof window.axe === "undefined")) await page.evaluate(`${axe}; undefined`);
  const options = rules ? { runOnly: { type: "rule", values: rules } } : {};
  const result = await page.evaluate((it) => window.axe.run(it), options);
  await judge(page, where, result);
}

// As check, without the rules of axe.
async function fits(page) {
  await judge(page, `${page.url()} at ${page.viewportSize().width} px`, { violations: [] });
}

async function judge(page, where, result) {
  const violations = result.violations.map((it) => `${it.id}: ${it.help}: ${it.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (sideways > 0) violations.push(`the page scrolls sideways by ${sideways} px`);
  assert(violations.length === 0, `${where}:\n${violations.join("\n")}`);
  assert(page.faults.length === 0, `${where}:\n${page.faults.join("\n")}`);
}

// Opens an action's form, fills in the reason if one is given, and sends it.
async function act(page, name, reason) {
  const summary = page.locator("summary.button", { hasText: new RegExp(`^${name}$`) });
  const action = page.locator("details.action", { has: summary });
  await action.locator("summary.button").click();
  if (reason) await action.getByLabel(/^Reason/).fill(reason);
  await action.getByRole("button", { name, exact: true }).click();
}

async function logIn(page, account, password) {
  await page.getByRole("heading", { level: 1, name: "Log in" }).waitFor();
  await page.getByLabel("Account").fill(account);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".who").waitFor();
}

async function picture(page, name, options = {}) {
  if (process.env.PICTURES) {
    await page.screenshot({ path: path.join(process.env.PICTURES, `${name}.png`), ...options });
  }
}

function assert(condition, message) {
  if (!condition) throw new Error(message);
}

module.exports = { run, open, check, fits, act, logIn, picture, assert };
