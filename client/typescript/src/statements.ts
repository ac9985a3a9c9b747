/** Every value is passed as text and converted by PostgreSQL, so that no driver's type conversion matters. */
const as = (n: number, type: string): string => `CAST(CAST($${n} AS text) AS ${type})`;

/** Each row is one JSON text, so that no driver's type parsers matter either. */
const json = (query: string): string => `SELECT CAST(to_json(r) AS text) AS answer FROM (${query}) r`;

const execution = (call: string): string =>
  json(
    "SELECT execution_id, job, key, state, attempt, scheduled_for, started_at, finished_at, outcome, " +
      `CAST(result AS text) AS result_text, error_class, error_message FROM sexton.execution(${call})`,
  );

export const ENQUEUE = json(
  `SELECT * FROM sexton.enqueue(job => ${as(1, "text")}, params => ${as(2, "jsonb")}, key => ${as(3, "text")}, ` +
    `run_at => ${as(4, "timestamptz")}, delay => ${as(5, "interval")}, unique_for => ${as(6, "text")}, ` +
    `if_exists => ${as(7, "text")}, labels => ${as(8, "jsonb")})`,
);
export const ENQUEUE_MANY = json(
  `SELECT * FROM sexton.enqueue_many(job => ${as(1, "text")}, items => ${as(2, "jsonb")}) ORDER BY ordinal`,
);
export const CANCEL = json(
  `SELECT * FROM sexton.cancel(job => ${as(1, "text")}, key => ${as(2, "text")}, reason => ${as(3, "text")})`,
);
export const EXECUTION = execution(`execution_id => ${as(1, "uuid")}`);
export const EXECUTION_BY_KEY = execution(`job => ${as(1, "text")}, key => ${as(2, "text")}`);
export const DEMAND = json(
  "SELECT pool, waiting, running, CAST(extract(epoch FROM oldest_wait) AS float8) AS oldest_wait " +
    `FROM sexton.demand(pool => ${as(1, "text")})`,
);
