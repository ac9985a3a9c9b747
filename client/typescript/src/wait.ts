import { setTimeout as sleep } from "node:timers/promises";
import type { Queryable } from "./adapters";
import { execution } from "./client";
import type { Execution } from "./results";

/** The execution had not ended in time. */
export class WaitTimeout extends Error {}

/** There is no such execution: its transaction has not committed, or it was removed. */
export class UnknownExecution extends Error {}

/**
 * Returns an execution when it has ended, that is when it is neither pending, nor running, nor retrying.
 *
 * Call it after the transaction that enqueued has committed, and outside of any transaction, for example on a Pool:
 * until the commit nothing runs, and a transaction that stays open for the wait holds back VACUUM.
 */
export async function waitFor(db: Queryable, executionId: string, timeoutSeconds: number): Promise<Execution> {
  const deadline = performance.now() + timeoutSeconds * 1000;
  for (let interval = 50; ; interval = Math.min(1000, interval * 1.5)) {
    const found = await execution(db, executionId);
    if (found === null) throw new UnknownExecution(`there is no execution ${executionId}`);
    if (!["pending", "running", "retrying"].includes(found.state)) return found;
    const left = deadline - performance.now();
    if (left <= 0) throw new WaitTimeout(`execution ${executionId} has not ended within ${timeoutSeconds} s`);
    await sleep(Math.min(interval, left));
  }
}
