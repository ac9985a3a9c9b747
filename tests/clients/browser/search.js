// The ways around: the search from the keyboard, a command to the clipboard, and times by the clock of the person who looks.
//
//   search.js ADDRESS JOB FAILED WORDS
"use strict";

const { run, open, check, assert } = require("./browser");

// Half an hour beside UTC.
const INDIA = { timezoneId: "Asia/Kolkata", locale: "en-GB", permissions: ["clipboard-read", "clipboard-write"] };

async function search(page, text) {
  await page.keyboard.press("Control+k");
  await page.locator("#q:focus").waitFor();
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

async function copy(page) {
  await page.locator("summary.button", { hasText: /^Requeue$/ }).click();
  const action = page.locator("details.action[open]");
  await action.locator("details.copy summary").click();
  const command = await action.getByLabel("Command").textContent();
  await action.getByRole("button", { name: "Copy" }).first().click();
  await action.getByRole("button", { name: "Copied" }).waitFor();
  await check(page);
  const field = page.locator("#q");
  await field.focus();
  await page.keyboard.press("Control+v");
  const pasted = await field.inputValue();
  assert(pasted === command.trim(), `the clipboard has “${pasted}” instead of “${command}”`);
}

async function switchZone(page) {
  const time = page.locator("time.at").first();
  const minutes = async () => {
    const text = await time.textContent();
    return { text, minutes: Number(text.match(/:(\d\d):\d\d/)[1]) };
  };
  const utc = await minutes();
  assert(utc.text.endsWith("UTC"), `a time is ${utc.text} at first`);
  await page.getByRole("button", { name: "Times: UTC" }).click();
  await page.getByRole("button", { name: "Times: yours" }).waitFor();
  const checkLocal = async () => {
    const local = await minutes();
    assert(!local.text.includes("UTC") && local.minutes === (utc.minutes + 30) % 60, `${utc.text} became ${local.text}`);
  };
  await checkLocal();
  // It is remembered.
  await page.reload();
  await page.getByRole("button", { name: "Times: yours" }).waitFor();
  await checkLocal();
  await page.getByRole("button", { name: "Times: yours" }).click();
  await page.getByRole("button", { name: "Times: UTC" }).waitFor();
  assert((await minutes()).text === utc.text, "the times do not go back to UTC");
}

run(async ({ browser, address, arguments: [job, failed, words] }) => {
  const page = await open(browser, { context: INDIA });
  await page.goto(address);
  await search(page, job);
  await page.getByRole("heading", { level: 1, name: /^Search for/ }).waitFor();
  await check(page);
  await page.getByRole("region", { name: /^Jobs/ }).getByRole("link", { name: job }).click();
  await page.waitForURL(`${address}/jobs/${job}`);

  await search(page, failed);
  await page.waitForURL(`${address}/executions/${failed}`);
  await page.goto(`${address}/jobs`);
  await search(page, failed.slice(0, 8));
  await page.waitForURL(`${address}/executions/${failed}`);

  await search(page, words);
  await page.getByRole("region", { name: /^Failed executions/ }).getByRole("link", { name: words }).click();
  await page.waitForURL(`${address}/failed/${failed}`);

  await switchZone(page);
  await copy(page);
});
