// Somebody corrects the params of a failed execution: what does not fit the schema is refused and stays as it was typed, the page shows
// what would change, and then it runs with the new params.
//
//   edit.js ADDRESS FAILURE PARAM BEFORE AFTER
"use strict";

const { run, open, check, assert } = require("./browser");

run(async ({ browser, address, arguments: [failure, param, before, after] }) => {
  const page = await open(browser);
  await page.goto(address + failure);
  await page.getByRole("link", { name: "Edit and requeue …" }).click();
  await page.getByRole("heading", { level: 1, name: "Edit, and run again" }).waitFor();
  const params = page.getByLabel(/^Params\./);
  const show = page.getByRole("button", { name: "Show what changes" });
  const apply = page.getByRole("button", { name: "Edit and requeue", exact: true });
  await check(page);

  const wrong = `{"${param}": "many"}`;
  await params.fill(wrong);
  await page.getByLabel(/^Reason/).fill("too many by far");
  await show.click();
  const refusal = page.getByRole("alert");
  await refusal.waitFor();
  const text = await refusal.textContent();
  assert(text.includes(`/${param}: `), `it does not say what is wrong: ${text}`);
  assert((await params.inputValue()) === wrong, "what was typed is lost");
  assert((await page.getByLabel(/^Reason/).inputValue()) === "too many by far", "the reason is lost");
  assert((await apply.count()) === 0, "params that do not fit can be applied");
  await check(page);

  await params.fill(`{"${param}": ${after}}`);
  await show.click();
  const change = page.getByRole("row", { name: `/${param}` });
  await change.waitFor();
  assert((await change.locator(".before").textContent()) === before, "the value before is another one");
  assert((await change.locator(".after").textContent()) === after, "the value after is another one");
  await check(page);
  // Nothing has happened so far.
  const other = await open(browser);
  await other.goto(address + failure);
  await other.locator("h1 .state-failed").waitFor();

  await apply.click();
  await page.getByText("You have requeued it").waitFor();
  await page.locator("h1 .state-succeeded").waitFor();
  await page.getByText("too many by far").first().waitFor();
  const shown = await page.locator("pre[aria-label=Params]").textContent();
  assert(shown.includes(after), `the params are: ${shown}`);
});
