// Somebody leaves a note at a group of failures, mutes it, opens it again, and resolves it.
//
//   group.js ADDRESS
"use strict";

const { run, open, check, act, assert } = require("./browser");

run(async ({ browser, address }) => {
  const page = await open(browser);
  await page.goto(`${address}/failed`);
  const failures = await page.locator("#failure-rows tr").count();
  assert(failures > 0, "nothing is failed");
  await page.locator("#group-rows td.wide a").first().click();
  await page.locator("h1 .state-open").waitFor();
  const group = page.url();
  await check(page);

  const note = page.getByLabel("A note for the next reader");
  await page.locator("summary.button", { hasText: /^Write a note$/ }).click();
  await note.fill("bank is down, ticket 123");
  await check(page);
  await page.getByRole("button", { name: "Write a note", exact: true }).click();
  // The page that comes back has no open form.
  await page.locator("details.action[open]").waitFor({ state: "detached" });
  await page.goto(`${address}/failed`);
  await page.locator("#group-rows .note").filter({ hasText: "bank is down, ticket 123" }).waitFor();

  await page.goto(group);
  assert((await note.inputValue()) === "bank is down, ticket 123", "the note cannot be changed");
  await act(page, "Mute", "known since Monday");
  await page.locator("h1 .state-muted").waitFor();
  await check(page);
  await page.goto(`${address}/failed`);
  await page.getByText(`${failures} of muted groups left out.`).waitFor();
  assert((await page.locator("#failure-rows tr").count()) === 0, "the list has executions of a muted group");

  await page.goto(group);
  await act(page, "Reopen", "it comes more often");
  await page.locator("h1 .state-open").waitFor();
  await page.goto(`${address}/failed`);
  assert((await page.locator("#failure-rows tr").count()) === failures, "the list leaves out executions of an open group");

  await page.goto(group);
  await act(page, "Resolve", "the bank is back");
  await page.locator("h1 .state-resolved").waitFor();
  await check(page);
  await act(page, "Reopen");
  await page.locator("h1 .state-open").waitFor();
});
