// Cleans tokens up every second, on one of the service's instances: node-cron says when, Sexton's guard says who.

import cron from "node-cron";
import pg from "pg";

const KEY = 5101;
const service = process.env.SERVICE ?? "node";

// The locks have a connection to themselves. A pool would run guard_done on another session than guard_try.
const locks = new pg.Client({ connectionString: process.env.DATABASE_URL, application_name: service, keepAlive: true });
// With the connection the lock is lost, perhaps while the job runs: end, and let the supervisor start the service again.
locks.on("error", (error) => {
  console.error(`the connection of the locks is lost: ${error.message}`);
  process.exit(1);
});
await locks.connect();
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 2 });
pool.on("error", (error) => console.error(error.message));

async function cleanUp(tick) {
  await pool.query("INSERT INTO cleanups (tick, service) VALUES ($1, $2)", [tick, service]);
}

cron.schedule("* * * * * *", async ({ date: tick }) => {
  // The tick is the instant for which node-cron runs the job, not the time of day now.
  const { rows } = await locks.query("SELECT sexton.guard_try($1, $2) AS is_ours", [KEY, tick]);
  if (!rows[0].is_ours) return;
  try {
    await cleanUp(tick);
  } catch (error) {
    await locks.query("SELECT sexton.guard_done($1, $2, 'failed', $3)", [KEY, tick, String(error)]);
    throw error;
  }
  await locks.query("SELECT sexton.guard_done($1, $2)", [KEY, tick]);
});
console.log(`${service} runs`);

process.once("SIGTERM", async () => {
  // Lets a job that runs come to its end.
  await cron.shutdown();
  await Promise.all([locks.end(), pool.end()]);
});
