// Somebody requeues all failures of a job, a canary first and slowly, follows the bulk's page, and stops it. What is wrong with the form stays as
// it was typed.
//
//   bulk.js ADDRESS JOB COUNT
"use strict";

const { run, open, check, act, assert } = require("./browser");

run(async ({ browser, address, arguments: [job, count] }) => {
  const page = await open(browser);
  await page.goto(`${address}/failed`);
  await page.getByLabel("Job", { exact: true }).fill(job);
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(/[?&]job=/);
  await page.getByRole("link", { name: "Requeue all …" }).click();
  const title = `Requeue ${count} executions`;
  await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
  const preview = await page.locator("main").innerText();
  assert(preview.includes(`${job}: ${count}`), `the preview names other jobs: ${preview}`);
  await check(page);
  const rate = page.getByLabel(/^At most this many per time/);
  await page.getByLabel(/^Try this many first/).fill("1");
  await rate.fill("slowly");
  await page.getByLabel(/^Reason/).fill("there is paper");
  await page.getByRole("button", { name: title, exact: true }).click();
  await page.getByRole("alert").waitFor();
  assert((await rate.inputValue()) === "slowly", "what was typed is lost");
  assert((await page.getByLabel(/^Try this many first/).inputValue()) === "1", "the canary is lost");
  assert((await page.getByLabel(/^Reason/).inputValue()) === "there is paper", "the reason is lost");
  await check(page);
  await rate.fill("1/h");
  await page.getByRole("button", { name: title, exact: true }).click();
  // Nobody touches the page: it follows what the schedulers do.
  await page.getByRole("heading", { level: 1, name: /^Bulk \d+: requeue/ }).waitFor();
  await page.getByText(`1 of ${count} requeued, ${count - 1} to go`, { exact: true }).waitFor();
  assert((await page.getByRole("progressbar").getAttribute("value")) === "1", "the bar shows something else");
  await page.getByText("1 first, which have succeeded", { exact: true }).waitFor();
  await page.getByText("at most 1/h", { exact: true }).waitFor();
  await check(page);
  await act(page, "Stop", "the rest can wait");
  await page.locator("h1 .state-stopped").waitFor();
  await page.getByText(/^Somebody stopped it/).waitFor();
  await page.locator("summary.button", { hasText: /^Resume$/ }).waitFor();
  await check(page);
});
