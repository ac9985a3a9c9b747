// The first visit of a new server: the code of its log makes one admin, who is logged in, and logs in again.
//
//   set-up.js ADDRESS CODE
"use strict";

const { run, open, check, logIn, assert } = require("./browser");

const PASSWORD = "correct horse battery";

run(async ({ browser, address, arguments: [code] }) => {
  const page = await open(browser);
  await page.goto(address);
  const heading = page.getByRole("heading", { level: 1, name: "The first account" });
  await heading.waitFor();
  await check(page);
  const create = async (text) => {
    await page.getByLabel(/^Code/).fill(text);
    await page.getByLabel(/^Password/).fill(PASSWORD);
    await page.getByRole("button", { name: "Create" }).click();
  };
  await page.getByLabel(/^Name/).fill("ann");
  await create("not the code");
  await page.getByRole("alert").filter({ hasText: "the code is wrong" }).waitFor();
  assert((await page.getByLabel(/^Name/).inputValue()) === "ann", "the name is lost");
  await check(page);
  await create(code);
  const who = page.locator(".who");
  await who.filter({ hasText: "account ann" }).filter({ hasText: "admin" }).waitFor();
  await check(page);

  await who.click();
  await page.getByRole("button", { name: "Log out" }).click();
  await logIn(page, "ann", PASSWORD);
  await who.filter({ hasText: "account ann" }).waitFor();
  // The code is over.
  const other = await open(browser);
  await other.goto(address);
  await other.getByRole("heading", { level: 1, name: "Log in" }).waitFor();
  const answer = await other.goto(`${address}/set-up`);
  assert(answer.status() === 404, `the set-up answers ${answer.status()}`);
});
