// The server is replaced by a version with another script: a page that nobody works in is loaded again, and one that somebody works in
// stays as it is.
//
//   version.js ADDRESS PATH
"use strict";

const { run, open, assert } = require("./browser");

// Opens the page, whose first refresh names another script and comes only after `release`.
async function openOld(browser, address) {
  const page = await open(browser);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let refreshes = 0;
  await page.route(address, async (route) => {
    if (!route.request().headers()["sexton-refresh"]) return route.continue();
    await held;
    refreshes += 1;
    if (refreshes > 1) return route.continue();
    const answer = await route.fetch();
    const text = await answer.text();
    const body = text.replace(/console-[0-9a-f]+\.js/, "console-another.js");
    if (body === text) page.faults.push("the page names no script");
    return route.fulfill({ status: 200, contentType: "text/html; charset=utf-8", body });
  });
  await page.goto(address);
  await page.evaluate(() => { window.isOld = true; });
  return { page, release };
}

const isOld = (page) => page.evaluate(() => window.isOld === true);

run(async ({ browser, address, arguments: [path] }) => {
  const idle = await openOld(browser, address + path);
  const loaded = idle.page.waitForEvent("load");
  idle.release();
  await loaded;
  assert(!(await isOld(idle.page)), "the page was not loaded again");
  await idle.page.locator("h1").waitFor();
  assert(idle.page.faults.length === 0, idle.page.faults.join("\n"));

  const used = await openOld(browser, address + path);
  await used.page.locator("summary.button", { hasText: /^Requeue$/ }).click();
  const reason = used.page.getByLabel(/^Reason/).first();
  await reason.fill("half a sent");
  used.release();
  await used.page.getByRole("button", { name: /changed/ }).waitFor();
  assert(await isOld(used.page), "a page in which somebody works was loaded again");
  assert((await reason.inputValue()) === "half a sent", "what was typed is lost");
  assert(used.page.faults.length === 0, used.page.faults.join("\n"));
});
