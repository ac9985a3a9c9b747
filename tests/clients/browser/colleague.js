// One person filters a list and sends its address to another one, who has to log in first, and sees the same.
//
//   colleague.js ADDRESS JOB WORDS ACCOUNT PASSWORD ACCOUNT PASSWORD
"use strict";

const { run, open, check, logIn, assert } = require("./browser");

async function rows(page) {
  await page.locator("#failure-rows tr").first().waitFor();
  return page.locator("#failure-rows tr").evaluateAll((all) => all.map((row) => row.id).join());
}

run(async ({ browser, address, arguments: [job, words, account, password, other, secret] }) => {
  const ann = await open(browser);
  await ann.goto(`${address}/failed`);
  await logIn(ann, account, password);
  const all = await rows(ann);
  await ann.getByLabel("Job", { exact: true }).fill(job);
  await ann.getByLabel("Words of the error").fill(words);
  await ann.getByLabel("Order", { exact: true }).selectOption("oldest");
  await ann.getByRole("button", { name: "Search" }).click();
  await ann.waitForURL(/[?&]job=/);
  const link = ann.url();
  const seen = await rows(ann);
  assert(seen !== all, "the filter changes nothing");

  const bob = await open(browser);
  await bob.goto(link);
  await logIn(bob, other, secret);
  assert(bob.url() === link, `the colleague is at ${bob.url()} instead of ${link}`);
  assert((await rows(bob)) === seen, "the colleague sees another list");
  assert((await bob.getByLabel("Words of the error").inputValue()) === words, "the form has another filter");
  await check(bob);
});
