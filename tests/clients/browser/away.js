// Pages while the database is away, slow, and while the server is replaced: they say so, nothing hangs, and they come back by themselves.
//
//   away.js ADDRESS PATH
//
// The one that calls this changes the world after each line.
"use strict";

const { run, open, check } = require("./browser");

run(async ({ browser, address, arguments: [path] }) => {
  const page = await open(browser);
  await page.goto(address + path);
  await page.locator("h1").waitFor();
  const live = page.locator("#live");
  const follows = () => live.waitFor({ state: "hidden", timeout: 60_000 });
  console.log("open");

  await live.filter({ hasText: "PostgreSQL does not answer" }).waitFor({ timeout: 60_000 });
  // Another page says so, too, in time.
  const other = await open(browser);
  const answer = await other.goto(address + path);
  if (answer.status() !== 503) throw new Error(`a page without a database answers ${answer.status()}`);
  await other.locator(".refusal").waitFor();
  // Without its script the page is not loaded again while it is examined.
  const still = await open(browser);
  await still.route("**/assets/*.js", (route) => route.abort());
  await still.goto(address + path);
  await still.locator(".refusal").waitFor();
  await check(still);
  await still.close();
  console.log("away");

  await follows();
  await other.locator(".refusal").waitFor({ state: "detached", timeout: 60_000 });
  console.log("back");

  const slow = await open(browser);
  const late = await slow.goto(address + path);
  if (late.status() !== 503) throw new Error(`a page of a slow database answers ${late.status()}`);
  await slow.locator(".refusal").waitFor();
  console.log("slow");

  await slow.locator(".refusal").waitFor({ state: "detached", timeout: 60_000 });
  console.log("fast");

  await live.filter({ hasText: "The server does not answer" }).waitFor({ timeout: 60_000 });
  console.log("replaced");

  await follows();
  console.log("follows");
});
