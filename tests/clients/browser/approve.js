// A discard waits for another person: the one who requested it cannot approve it, a second one can, and the first sees that.
//
//   approve.js ADDRESS FAILED REQUESTER PASSWORD APPROVER PASSWORD
"use strict";

const { run, open, check, act, logIn, assert } = require("./browser");

run(async ({ browser, address, arguments: [failed, requester, password, approver, other] }) => {
  const ann = await open(browser);
  await ann.goto(`${address}/failed/${failed}`);
  await logIn(ann, requester, password);
  await act(ann, "Discard", "paid in cash");
  await ann.locator("h1 .state-waiting").waitFor();
  const request = ann.url();
  await ann.getByText("It waits for one more person.").waitFor();
  await check(ann);
  await act(ann, "Approve", "by myself");
  const refusal = ann.locator(".refusal");
  await refusal.waitFor();
  const text = await refusal.textContent();
  assert(text.includes("requested by you"), `the requester reads: ${text}`);
  // From here on, nobody touches this page.
  await ann.goto(request);
  await ann.locator("h1 .state-waiting").waitFor();

  const bob = await open(browser);
  await bob.goto(address);
  await logIn(bob, approver, other);
  await bob.getByRole("link", { name: "Approvals (1)" }).click();
  await bob.locator("#approval-rows td.wide a").click();
  await bob.locator("h1 .state-waiting").waitFor();
  await bob.getByText("paid in cash").first().waitFor();
  await check(bob);
  await act(bob, "Approve", "I have seen the receipt");
  await bob.locator("h1 .state-carried_out").waitFor();
  await bob.getByText(/I have seen the receipt/).first().waitFor();
  await check(bob);

  await ann.locator("h1 .state-carried_out").waitFor();
  await ann.getByRole("link", { name: failed }).click();
  await ann.locator("h1 .state-discarded").waitFor();
});
