// Somebody follows a link, logs in by the identity provider, and is at the page of the link; or reads why that is refused.
//
//   oidc.js ADDRESS PATH NAME
//   oidc.js ADDRESS PATH refused WORDS
"use strict";

const { run, open, check, assert } = require("./browser");

run(async ({ browser, address, arguments: [path, name, words] }) => {
  const page = await open(browser);
  await page.goto(address + path);
  const heading = page.getByRole("heading", { level: 1, name: "Log in" });
  await heading.waitFor();
  await check(page);
  await page.getByRole("link", { name: /^Log in with/ }).click();
  if (name === "refused") {
    await page.getByRole("alert").filter({ hasText: words }).waitFor();
    await page.getByLabel("Password").waitFor();
    await check(page);
    await page.goto(address + path);
    await heading.waitFor();
    return;
  }
  const who = page.locator(".who");
  await who.filter({ hasText: name }).waitFor();
  assert(page.url() === address + path, `the browser is at ${page.url()}`);
  await check(page);
  assert((await page.evaluate(() => document.cookie)) === "", "a script sees the session");
  await who.click();
  await page.getByText("The identity provider has logged you in").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await heading.waitFor();
});
