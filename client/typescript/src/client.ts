import type { Queryable } from "./adapters";
import { InvalidArgument, SextonError, fromDriver } from "./errors";
import { type Job, jobName } from "./job";
import { toJson } from "./json";
import { type Cancelled, type Demand, type Enqueued, type Execution } from "./results";
import { toCancelled, toDemand, toEnqueued, toExecution } from "./results";
import { CANCEL, DEMAND, ENQUEUE, ENQUEUE_MANY, EXECUTION, EXECUTION_BY_KEY } from "./statements";

/** How many items one call of sexton.enqueue_many takes. */
export const MAX_BATCH_ITEMS = 10_000;

export interface EnqueueOptions {
  key?: string | null;
  runAt?: Date;
  delaySeconds?: number;
  /** `ever`, `open` (while an execution with the key has not ended), or a period such as `1h`. */
  uniqueFor?: string;
  ifExists?: "keep" | "replace" | "postpone";
  labels?: Record<string, string>;
}

/** One item of enqueueMany. */
export interface Item<Params extends object = object> extends EnqueueOptions {
  params?: Params;
}

/** Enqueues one execution of a job; a key that is taken is answered with the execution that has it. */
export async function enqueue<Params extends object = object>(
  db: Queryable,
  job: string | Job<Params>,
  params?: NoInfer<Params> | null,
  options: EnqueueOptions = {},
): Promise<Enqueued> {
  const { key = null, uniqueFor = null, ifExists = null, labels } = options;
  const [row] = await call(db, ENQUEUE, [
    jobName(job),
    params == null ? null : toJson(params),
    key,
    time(options.runAt),
    interval(options.delaySeconds),
    uniqueFor,
    ifExists,
    labels == null ? null : toJson(labels, "labels"),
  ]);
  return toEnqueued(row);
}

/** Enqueues one execution per item, in as many calls as needed; they are one unit only inside a transaction. */
export async function enqueueMany<Params extends object = object>(
  db: Queryable,
  job: string | Job<Params>,
  items: ReadonlyArray<Item<NoInfer<Params>>>,
  { batchSize = MAX_BATCH_ITEMS }: { batchSize?: number } = {},
): Promise<Enqueued[]> {
  const answers: Enqueued[] = [];
  let offset = 0;
  do {
    const batch = items.slice(offset, offset + batchSize).map((item, n) => {
      // Unknown fields are passed on: Sexton refuses them by name.
      const { runAt, delaySeconds, uniqueFor, ifExists, ...rest } = item;
      const fields = {
        ...rest, run_at: time(runAt), delay: interval(delaySeconds), unique_for: uniqueFor, if_exists: ifExists,
      };
      return toJson(fields, `item ${offset + n + 1}`);
    });
    try {
      const rows = await call(db, ENQUEUE_MANY, [jobName(job), `[${batch.join(",")}]`]);
      for (const row of rows) answers.push(toEnqueued(row, offset));
    } catch (error) {
      if (error instanceof SextonError) error.firstItem += offset;
      throw error;
    }
    offset += batchSize;
  } while (offset < items.length);
  return answers;
}

/** Cancels the execution that has this key if it waits, or asks its worker to end it if it runs. */
export async function cancel(db: Queryable, job: string | Job<any>, key: string, reason?: string): Promise<Cancelled> {
  const [row] = await call(db, CANCEL, [jobName(job), key, reason ?? null]);
  return toCancelled(row);
}

/** Returns what has become of an execution; null if there is no such execution. */
export async function execution(db: Queryable, executionId: string): Promise<Execution | null> {
  const [row] = await call(db, EXECUTION, [executionId]);
  return toExecution(row);
}

/** Returns what has become of the execution of a job that has this key; null if there is none. */
export async function executionByKey(db: Queryable, job: string | Job<any>, key: string): Promise<Execution | null> {
  const [row] = await call(db, EXECUTION_BY_KEY, [jobName(job), key]);
  return toExecution(row);
}

/** Returns how much work a pool has. */
export async function demand(db: Queryable, pool: string): Promise<Demand> {
  const [row] = await call(db, DEMAND, [pool]);
  return toDemand(row);
}

/** Runs a statement whose rows are JSON texts, and returns what they say. */
async function call(db: Queryable, text: string, values: Array<string | null>): Promise<any[]> {
  let rows: any[];
  try {
    ({ rows } = await db.query(text, values));
  } catch (error) {
    throw fromDriver(error);
  }
  return rows.map((row) => JSON.parse(row.answer));
}

function time(value: Date | undefined | null): string | null {
  if (value == null) return null;
  if (Number.isNaN(value.getTime())) throw new InvalidArgument("runAt is an invalid Date");
  return value.toISOString();
}

function interval(seconds: number | undefined | null): string | null {
  if (seconds == null) return null;
  if (!Number.isFinite(seconds)) throw new InvalidArgument(`delaySeconds is ${seconds}`);
  return `${BigInt(Math.round(seconds * 1e6))} microseconds`;
}
