// Somebody follows a link from a colleague, logs in, sees what she may not do, and logs out.
//
//   log-in.js ADDRESS PATH ACCOUNT PASSWORD
"use strict";

const { run, open, check, assert } = require("./browser");

run(async ({ browser, address, arguments: [path, account, password] }) => {
  const page = await open(browser);
  await page.goto(address + path);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await check(page);
  const log_in = async (text) => {
    await page.getByLabel("Account").fill(account);
    await page.getByLabel("Password").fill(text);
    await page.getByRole("button", { name: "Log in" }).click();
  };
  await log_in("not the password");
  await page.getByText("the name or the password is wrong").waitFor();
  await log_in(password);
  await page.getByText("What you can do").waitFor();
  assert(page.url() === address + path, `she is at ${page.url()}`);
  assert(await page.getByRole("button", { name: "Requeue", exact: true }).isDisabled(), "a viewer may requeue");
  await page.getByText("this needs the role operator; you have viewer").first().waitFor();
  await check(page);
  // Another page's script would not see the session, and neither does this one.
  assert((await page.evaluate(() => document.cookie)) === "", "a script sees the session");
  await page.locator(".who").click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await page.goto(address + path);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
});
