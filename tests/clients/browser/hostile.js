// Texts that would like to be markup: each page shows them as text, and nothing of them runs.
//
//   hostile.js ADDRESS FAILURE PATH…
"use strict";

const { run, open, check, assert } = require("./browser");

run(async ({ browser, address, arguments: [failure, ...paths] }) => {
  for (const width of [360, 1440]) {
    const page = await open(browser, { width });
    page.on("dialog", () => page.faults.push("a dialog was opened"));
    for (const path of [failure, ...paths]) {
      const answer = await page.goto(address + path);
      assert(answer.status() === 200, `${path}: ${answer.status()}`);
      await check(page);
      assert((await page.evaluate(() => window.pwned)) === undefined, `${path}: a text has run`);
      assert((await page.locator("img, iframe, object, main script").count()) === 0, `${path}: a text became an element`);
    }
    await page.goto(address + failure);
    const text = await page.locator("main").innerText();
    assert(text.includes("9007199254740993"), "a large number is not exact");
    assert(text.includes("<script>window.pwned = 'error'</script>"), "the error is not shown as it is");
    assert(text.includes("\\u{202e}txt.exe"), "a character that turns the direction around is not shown as an escape");
    assert(!text.includes("hunter2") && !text.includes("\u202e"), "a secret, or such a character, is shown");
    await page.context().close();
  }
});
