// Somebody finds a failed execution, reads what happened, and requeues it; another one, who looks at the same page, sees that without
// doing anything, and is too late with the same.
//
//   requeue.js ADDRESS JOB [noscript]
"use strict";

const { run, open, check, assert } = require("./browser");

async function find(page, address, job) {
  await page.goto(`${address}/failed`);
  await page.getByLabel("Job", { exact: true }).fill(job);
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("#failure-rows td.wide a").first().click();
  await page.getByRole("heading", { level: 1 }).filter({ hasText: job }).waitFor();
}

run(async ({ browser, address, arguments: [job, noscript] }) => {
  const script = !noscript;
  const ann = await open(browser, { script });
  const bob = await open(browser, { script });
  await find(ann, address, job);
  await find(bob, address, job);
  assert(await ann.locator("pre.error").textContent().then((text) => text.includes("card declined")), "the error is not shown");
  if (script) await check(ann);
  // Bob is about to do the same.
  await bob.locator("summary", { hasText: /^Requeue$/ }).click();
  await ann.locator("summary", { hasText: /^Requeue$/ }).click();
  await ann.getByLabel("Reason").first().fill("bank is back");
  if (script) await check(ann);
  await ann.getByRole("button", { name: "Requeue", exact: true }).click();
  await ann.getByText("You have requeued it").waitFor();
  await ann.locator("h1 .state-pending").waitFor();
  await ann.getByText("bank is back").waitFor();
  // What Bob has before him is not replaced under the pointer; he hears of it.
  if (script) await bob.getByRole("button", { name: /changed/ }).waitFor();
  await bob.getByRole("button", { name: "Requeue", exact: true }).click();
  const refused = bob.locator(".refusal");
  await refused.waitFor();
  const text = await refused.textContent();
  assert(text.includes("it is pending") && text.includes("requeue by"), `Bob reads: ${text}`);
});
