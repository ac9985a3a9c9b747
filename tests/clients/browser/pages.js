// Every page that is named, in light and dark, on a phone and on a desk: usable, and without a fault.
//
//   pages.js ADDRESS PATH…
"use strict";

const { run, open, check, assert } = require("./browser");

run(async ({ browser, address, arguments: paths }) => {
  for (const width of [360, 1440]) {
    for (const scheme of ["light", "dark"]) {
      const page = await open(browser, { width, scheme });
      for (const path of paths) {
        const answer = await page.goto(address + path);
        assert(answer.status() === 200, `${path}: ${answer.status()}`);
        await check(page);
      }
      await page.context().close();
    }
  }
});
