// Somebody who has never seen the console, at the end of `make demo`: finds the task that failed, sees why, requeues it, and sees it
// succeed. With PICTURES=FOLDER it leaves the pictures of the documentation there.
//
//   newcomer.js ADDRESS
"use strict";

const { run, open, check, picture, assert } = require("./browser");

run(async ({ browser, address }) => {
  const page = await open(browser);
  await page.goto(address);
  // The page follows when the doctor has examined the platform.
  await page.getByText(/Examined/).waitFor({ timeout: 90_000 });
  await picture(page, "console-overview");
  await check(page);
  await page.locator("#tile-failed a").click();
  await page.getByRole("heading", { level: 1, name: /failed/i }).waitFor();
  await picture(page, "console-failed");
  await page.locator("#failure-rows td.wide a").first().click();
  await page.getByRole("heading", { level: 1 }).filter({ hasText: "demo.print" }).waitFor();
  const error = await page.locator("pre.error").textContent();
  assert(error.includes("paper"), `the page does not say why it failed: ${error}`);
  await picture(page, "console-failure");
  await page.locator("summary", { hasText: /^Requeue$/ }).click();
  await page.getByLabel("Reason").first().fill("the printer has paper again");
  await page.getByRole("button", { name: "Requeue", exact: true }).click();
  // Nothing is touched from here on: the page follows.
  await page.locator("h1 .state-succeeded").waitFor({ timeout: 60_000 });
  await page.getByRole("link", { name: "Follow it" }).click();
  await page.getByText("the printer has paper again").first().waitFor();
  await picture(page, "console-succeeded");
  await check(page);
});
