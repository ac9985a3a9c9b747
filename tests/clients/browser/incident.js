// Somebody opens an incident from the list, takes it on, silences it, ends the silence, and resolves it; the page and the list show each state.
//
//   incident.js ADDRESS NAME
"use strict";

const { run, open, check, act, assert } = require("./browser");

// The row of the incident in the list.
async function row(page, address, name, query = "") {
  await page.goto(`${address}/incidents${query}`);
  const found = page.locator("#incident-rows tr").filter({ hasText: name });
  await found.waitFor();
  return found;
}

// Whether the page offers an action.
async function offers(page, action) {
  return (await page.locator("summary.button", { hasText: new RegExp(`^${action}$`) }).count()) === 1;
}

run(async ({ browser, address, arguments: [name] }) => {
  const page = await open(browser);
  const listed = await row(page, address, name);
  assert((await listed.locator(".state-open").count()) === 1, "the list shows another state");
  await listed.locator("td.wide a").click();
  await page.locator("h1 .state-open").waitFor();
  const incident = page.url();
  await check(page);

  await act(page, "Acknowledge", "I look at it");
  await page.getByText(/^You have taken it on/).waitFor();
  await page.locator("h1 .state-acknowledged").waitFor();
  await page.getByRole("group", { name: "Timeline" }).getByText(/I look at it/).waitFor();
  assert(!(await offers(page, "Acknowledge")), "it can be acknowledged twice");
  await check(page);

  await page.locator("summary.button", { hasText: /^Silence$/ }).click();
  await page.getByLabel(/^For how long/).fill("3h");
  await page.locator("details.action[open]").getByLabel(/^Reason/).fill("the bank repairs it");
  await check(page);
  await page.getByRole("button", { name: "Silence", exact: true }).click();
  await page.getByText(/^You have silenced it/).waitFor();
  await page.locator("dd").filter({ hasText: /the bank repairs it/ }).waitFor();
  assert(!(await offers(page, "Silence")), "it can be silenced twice");
  await check(page);
  const silenced = await row(page, address, name);
  assert((await silenced.innerText()).includes("silenced"), "the list does not show the silence");

  await page.goto(incident);
  await act(page, "End the silence", "it is repaired");
  await page.getByText(/^You have ended the silence/).waitFor();
  assert((await page.locator("dt", { hasText: "Silenced until" }).count()) === 0, "it is still silenced");
  assert(await offers(page, "Silence"), "it cannot be silenced again");
  await check(page);

  await act(page, "Resolve", "paid again");
  await page.getByText(/^You have resolved it/).waitFor();
  await page.locator("h1 .state-resolved").waitFor();
  await page.getByText(/^Nothing: it is over/).waitFor();
  assert((await page.locator("summary.button").count()) === 0, "something can be done with what is over");
  await check(page);
  const over = await row(page, address, name, "?all=true");
  assert((await over.locator(".state-resolved").count()) === 1, "the list shows another state at the end");
  await page.goto(`${address}/incidents`);
  await page.getByText(/^No incident is open/).waitFor();
});
