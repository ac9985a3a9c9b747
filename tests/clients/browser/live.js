// A page that is open follows what happens: the task fails, is requeued by the command line, runs, and succeeds, and nobody touches it.
//
//   live.js ADDRESS PATH STATE…
"use strict";

const { run, open } = require("./browser");

run(async ({ browser, address, arguments: [path, ...states] }) => {
  const page = await open(browser);
  await page.goto(address + path);
  // The one that calls this waits for each line before it goes on.
  for (const state of states) {
    await page.locator(`h1 .state-${state}`).waitFor();
    console.log(`sees ${state}`);
  }
});
