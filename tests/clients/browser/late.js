// A change comes after the page was made and before its stream has begun, and the server refuses the stream at first: the page shows the
// change all the same.
//
//   late.js ADDRESS PATH
"use strict";

const { run, open } = require("./browser");

run(async ({ browser, address, arguments: [path] }) => {
  const late = await open(browser);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let tries = 0;
  await late.route("**/events?*", async (route) => {
    await held;
    tries += 1;
    if (tries === 1) await route.fulfill({ status: 503 });
    else await route.continue();
  });
  await late.goto(address + path);
  await late.locator("h1 .state-failed").waitFor();
  const other = await open(browser);
  await other.goto(address + path);
  await other.locator("summary", { hasText: /^Requeue$/ }).click();
  await other.getByRole("button", { name: "Requeue", exact: true }).click();
  await other.locator("h1 .state-pending").waitFor();
  release();
  await late.locator("h1 .state-pending").waitFor({ timeout: 60_000 });
});
