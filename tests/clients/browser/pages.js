// Every page that is named, in light and dark, on a phone and on a desk: usable, and without a fault.
//
//   pages.js ADDRESS PAGE…
//
// A page is a path, with the status of its answer behind a blank if that is not 200, and behind another one the id of a field and the text
// that is written into it and sent.
"use strict";

const { run, open, check, picture, assert } = require("./browser");

// What can differ between light and dark.
const COLOURS = ["color-contrast"];

// Writes a text into a field, sends the form, and waits for the page that answers.
async function send(page, field, text) {
  // What is folded cannot be written into.
  await page.locator(`#${field}`).evaluate((it) => it.closest("details")?.setAttribute("open", ""));
  await page.locator(`#${field}`).fill(text);
  const [answer] = await Promise.all([
    page.waitForResponse((it) => it.request().isNavigationRequest() && it.request().method() === "POST"),
    page.waitForEvent("load"),
    page.locator(`#${field}`).evaluate((it) => it.form.requestSubmit()),
  ]);
  return answer;
}

run(async ({ browser, address, arguments: pages }) => {
  const page = await open(browser);
  for (const named of pages) {
    const [path, status = "200", field, text] = named.split(" ");
    let answer = await page.goto(address + path);
    if (field) answer = await send(page, field, text);
    assert(answer.status() === Number(status), `${named}: ${answer.status()}`);
    for (const width of [360, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme });
        await check(page, scheme === "light" ? undefined : COLOURS);
        await picture(page, `${width}-${scheme}${named.replace(/[^a-z0-9]+/gi, "-").slice(0, 150)}`, { fullPage: true });
      }
    }
  }
});
