// Texts that would like to be markup: each page shows them as text, and nothing of them runs.
//
//   hostile.js ADDRESS FAILURE PAGE…
//
// A page is a path, with the status of its answer behind a blank if that is not 200. Those that need a form sent are left to pages.js.
"use strict";

const { run, open, check, fits, assert } = require("./browser");

// Every text of the page, also of what is folded; what a field holds is to be edited as it is.
function texts() {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest("textarea")) found.push(walker.currentNode.data);
  }
  return found;
}

// On these a reader's terminal or eye would act.
const DISTURBING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

run(async ({ browser, address, arguments: [failure, ...pages] }) => {
  const page = await open(browser);
  page.on("dialog", () => page.faults.push("a dialog was opened"));
  for (const named of [failure, ...pages]) {
    const [path, status = "200", field] = named.split(" ");
    if (field) continue;
    const answer = await page.goto(address + path);
    assert(answer.status() === Number(status), `${path}: ${answer.status()}`);
    for (const width of [360, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await fits(page);
    }
    assert((await page.evaluate(() => window.pwned)) === undefined, `${path}: a text has run`);
    assert((await page.locator("img, iframe, object, main script").count()) === 0, `${path}: a text became an element`);
    const raw = (await page.evaluate(texts)).find((text) => DISTURBING.test(text));
    assert(raw === undefined, `${path}: not escaped: ${JSON.stringify(raw)}`);
  }
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(address + failure);
    await check(page);
    const text = await page.locator("main").innerText();
    assert(text.includes("9007199254740993"), "a large number is not exact");
    assert(text.includes("<script>window.pwned = 'error'</script>"), "the error is not shown as it is");
    assert(text.includes("\\u{202e}txt.exe"), "a character that turns the direction around is not shown as an escape");
    assert(!text.includes("hunter2") && !text.includes("\u202e"), "a secret, or such a character, is shown");
  }
});
