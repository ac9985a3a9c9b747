// What people do with a job: run it with other params, backfill past firings, ask why one ran, pause and resume it.
//
//   jobs.js ADDRESS JOB PARAM
//
// The job fires every 24 hours, and its task wants a number as that param.
"use strict";

const { run, open, check, act, assert } = require("./browser");

async function trigger(page, address, job, param) {
  await page.goto(`${address}/jobs/${job}/trigger`);
  await page.getByRole("heading", { level: 1, name: `Run ${job} now` }).waitFor();
  const params = page.getByLabel(/^Params that differ/);
  const wrong = `{"${param}": "many"}`;
  await params.fill(wrong);
  await page.getByRole("button", { name: "Run now" }).click();
  const refusal = page.getByRole("alert");
  await refusal.waitFor();
  const text = await refusal.textContent();
  assert(text.includes("It was not run") && text.includes(param), `it does not say what is wrong: ${text}`);
  assert((await params.inputValue()) === wrong, "what was typed is lost");
  await check(page);
  await params.fill(`{"${param}": 3}`);
  await page.getByLabel(/^Reason/).fill("for the meeting");
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByText("You have made this execution").waitFor();
  await page.locator("h1 .state-succeeded").waitFor();
}

// Returns the nominal time of a firing that was made.
async function backfill(page, address, job) {
  await page.goto(`${address}/jobs/${job}`);
  await check(page);
  await page.getByRole("link", { name: "Backfill…" }).click();
  await page.getByRole("heading", { level: 1, name: `Backfill ${job}` }).waitFor();
  await page.getByLabel(/^Firings since/).fill("72h");
  await page.getByLabel(/^Reason/).fill("the office was closed");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("heading", { level: 2, name: "3 firings will run" }).waitFor();
  assert((await page.locator("#backfill-rows tr").count()) === 3, "the preview lists other firings");
  const firing = await page.locator("#backfill-rows time").first().getAttribute("datetime");
  await check(page);
  await page.getByRole("button", { name: "Backfill 3 firings" }).click();
  await page.getByText(/^You have backfilled firings/).waitFor();
  return firing;
}

async function explain(page, firing) {
  const section = page.getByRole("region", { name: "Why did it run, or not?" });
  const at = section.getByLabel(/^The firing at/);
  const ask = async (text) => {
    await at.fill(text);
    await section.getByRole("button", { name: "Explain" }).click();
  };
  await ask(firing);
  await section.getByRole("link", { name: "Its execution" }).waitFor();
  const explained = await section.locator(".notice time").first().getAttribute("datetime");
  assert(explained === firing, `it explains ${explained} instead of ${firing}`);
  await check(page);
  await ask(new Date(Date.parse(firing) + 60_000).toISOString());
  await section.getByText(/is no firing/).waitFor();
  await ask("after lunch");
  await section.getByRole("alert").waitFor();
  assert((await at.inputValue()) === "after lunch", "what was typed is lost");
}

run(async ({ browser, address, arguments: [job, param] }) => {
  const page = await open(browser);
  await trigger(page, address, job, param);
  await explain(page, await backfill(page, address, job));

  await page.goto(`${address}/jobs/${job}`);
  await act(page, "Pause", "the printer is away");
  await page.getByText(/^You have paused it/).waitFor();
  await page.locator("h1 .state-paused").waitFor();
  await page.getByText(/^It is paused since .*: the printer is away$/).waitFor();
  await check(page);
  await act(page, "Resume", "the printer is back");
  await page.getByText(/^You have resumed it/).waitFor();
  await page.locator("h1 .state-active").waitFor();
});
