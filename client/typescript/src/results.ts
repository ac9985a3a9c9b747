/** The states of an execution. */
export type State =
  | "pending" | "running" | "retrying" | "failed" | "discarded" | "succeeded" | "cancelled" | "skipped";

/** The execution that a call created, or that had its key already. */
export interface Enqueued {
  executionId: string;
  key: string;
  created: boolean;
  state: State;
  /** The item's place in the list of enqueueMany, from 1. */
  ordinal: number;
}

/** Whether a call cancelled an execution; `executionId` and `state` are null if none has the key. */
export interface Cancelled {
  executionId: string | null;
  key: string;
  cancelled: boolean;
  state: State | null;
}

/** What has become of an execution. */
export interface Execution {
  executionId: string;
  job: string;
  key: string;
  state: State;
  attempt: number;
  scheduledFor: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  outcome: string | null;
  /** What the task returned; integers above 2^53 are rounded here, and exact in `resultText`. */
  result: unknown;
  resultText: string | null;
  errorClass: string | null;
  errorMessage: string | null;
}

/** How much work a pool has. */
export interface Demand {
  pool: string;
  waiting: number;
  running: number;
  oldestWaitSeconds: number;
}

const date = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function toEnqueued(row: any, offset = 0): Enqueued {
  const { execution_id: executionId, key, created, state, ordinal = 1 } = row;
  return { executionId, key, created, state, ordinal: offset + ordinal };
}

export function toCancelled(row: any): Cancelled {
  return { executionId: row.execution_id, key: row.key, cancelled: row.cancelled, state: row.state };
}

export function toExecution(row: any): Execution | null {
  if (row.execution_id === null) return null;
  return {
    executionId: row.execution_id,
    job: row.job,
    key: row.key,
    state: row.state,
    attempt: row.attempt,
    scheduledFor: new Date(row.scheduled_for),
    startedAt: date(row.started_at),
    finishedAt: date(row.finished_at),
    outcome: row.outcome,
    result: row.result_text === null ? null : JSON.parse(row.result_text),
    resultText: row.result_text,
    errorClass: row.error_class,
    errorMessage: row.error_message,
  };
}

export function toDemand(row: any): Demand {
  return { pool: row.pool, waiting: row.waiting, running: row.running, oldestWaitSeconds: row.oldest_wait };
}
