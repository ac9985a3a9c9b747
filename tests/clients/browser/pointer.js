// A pointer over a row: rows that come above it do not move it. They come when the pointer leaves, or by the button; those that come below
// it are there at once.
//
//   pointer.js ADDRESS FAILURE
//
// The one that calls this lets one more fail after each line, and discards it after the last.
"use strict";

const { run, open, assert } = require("./browser");

run(async ({ browser, address, arguments: [failure] }) => {
  const page = await open(browser);
  const row = page.locator(`#e-${failure}`);
  const rows = page.locator("#failure-rows tr");
  const button = page.getByRole("button", { name: "1 new: show", exact: true });

  // Points at the row, lets one more fail, and returns how to check that the row is where it was.
  async function aim(line) {
    await row.hover();
    const place = await row.boundingBox();
    console.log(line);
    return async (count) => {
      const { y } = await row.boundingBox();
      assert(y === place.y, `${line}: the row has moved from ${place.y} to ${y}`);
      assert((await rows.count()) === count, `${line}: ${await rows.count()} rows instead of ${count}`);
    };
  }

  await page.goto(`${address}/failed`);
  const stays = await aim("aims");
  await button.waitFor();
  await stays(1);
  // The button may stand over the middle of the heading.
  await page.locator("h1").hover({ position: { x: 4, y: 4 } });
  await rows.nth(1).waitFor();
  await button.waitFor({ state: "detached" });

  const staysAgain = await aim("aims again");
  await button.waitFor();
  await staysAgain(2);
  await button.click();
  assert((await rows.count()) === 3, "the button shows nothing");
  await button.waitFor({ state: "detached" });

  await page.goto(`${address}/failed?sort=oldest`);
  const staysAtTop = await aim("aims at the oldest");
  await rows.nth(3).waitFor();
  await staysAtTop(4);
  assert((await button.count()) === 0, "rows that come below wait for the pointer");

  // The newest, above the row, is discarded.
  await page.goto(`${address}/failed`);
  const staysBelow = await aim("aims below");
  await page.getByRole("button", { name: "This page has changed: show", exact: true }).waitFor();
  await staysBelow(4);
  await page.locator("h1").hover({ position: { x: 4, y: 4 } });
  await rows.nth(3).waitFor({ state: "detached" });
  assert(page.faults.length === 0, page.faults.join("\n"));
});
