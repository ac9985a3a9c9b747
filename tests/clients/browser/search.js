// The ways around: the search from the keyboard, a command to the clipboard, and times by UTC, by the clock of the person who looks and by
// that of the job, 45 minutes beside UTC.
//
//   search.js ADDRESS JOB FAILED WORDS ZONE
"use strict";

const { run, open, check, fits, assert } = require("./browser");

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

// Of each kind of time one that the page shows, its text and its minutes.
async function shownTimes(page) {
  const kinds = [page.locator("time.at").first(), page.locator("td time .at").first()];
  return Promise.all(kinds.map(async (time) => {
    await time.waitFor();
    const text = await time.textContent();
    return { text, minutes: Number(text.match(/:(\d\d):\d\d/)[1]) };
  }));
}

// Presses the switch, and checks that all times follow, now and after a reload.
async function press(page, before, after, isRight) {
  const utc = await shownTimes(page);
  await page.getByRole("button", { name: `Times: ${before}`, exact: true }).click();
  const follow = async () => {
    await page.getByRole("button", { name: `Times: ${after}`, exact: true }).waitFor();
    const times = await shownTimes(page);
    times.forEach((time, index) => assert(isRight(time, index), `${utc[index].text} became ${time.text} of ${after}`));
    await fits(page);
  };
  await follow();
  await page.reload();
  await follow();
}

async function switchZone(page, zone) {
  const utc = await shownTimes(page);
  for (const { text } of utc) assert(text.endsWith(" UTC"), `a time is ${text} at first`);
  const isBeside = (time, index, minutes) => time.minutes === (utc[index].minutes + minutes) % 60 && !time.text.includes("UTC");
  await press(page, "UTC", "yours", (time, index) => isBeside(time, index, 30) && !time.text.includes(zone));
  await press(page, "yours", "the job’s", (time, index) => isBeside(time, index, 45) && time.text.endsWith(` ${zone}`));
  await press(page, "the job’s", "UTC", (time, index) => time.text === utc[index].text);
}

run(async ({ browser, address, arguments: [job, failed, words, zone] }) => {
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

  await switchZone(page, zone);
  await copy(page);
});
