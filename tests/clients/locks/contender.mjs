// Contends for a lock from Node.js, with pg; run.sh says how. What it does is that of contender.py.

import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

const [kind, key, holder, mode = "contend"] = process.argv.slice(2);
const client = new pg.Client({ connectionString: process.env.DATABASE_URL, application_name: holder });
let isEnded = false;
const end = new Promise((resolve) => process.stdin.once("end", resolve).resume()).then(() => { isEnded = true; });

async function answer(statement, values) {
  const { rows } = await client.query(statement, values);
  return Object.values(rows[0])[0];
}

const kinds = {
  advisory: {
    take: () => answer("SELECT pg_try_advisory_lock($1)", [key]),
    release: () => answer("SELECT pg_advisory_unlock($1)", [key]),
  },
  tick: {
    tick: null,
    async take() {
      this.tick = new Date(Math.floor(Date.now() / 100) * 100);
      return answer("SELECT sexton.guard_try($1, $2)", [key, this.tick]);
    },
    release() {
      return answer("SELECT sexton.guard_done($1, $2)", [key, this.tick]);
    },
  },
};
const lock = kinds[kind];

async function hold() {
  const tick = lock.tick ?? null;
  const began = "INSERT INTO held (lock, holder, tick) VALUES ($1, $2, $3) RETURNING id";
  const id = await answer(began, [key, holder, tick]);
  if (mode === "hold") {
    console.log("holding");
    await end;
  }
  await pause(Math.random() * 5);
  await client.query("UPDATE held SET ended = clock_timestamp() WHERE id = $1", [id]);
  if (!(await lock.release())) throw new Error("the lock was not held to the end");
}

await client.connect();
console.log("ready");
while (!isEnded) {
  if (await lock.take()) {
    await hold();
    if (mode === "hold") break;
  } else {
    await client.query("INSERT INTO refused (lock, holder) VALUES ($1, $2)", [key, holder]);
  }
  await pause(Math.random() * 20);
}
await client.end();
