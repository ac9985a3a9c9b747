// Takes orders: each order and the job that charges it are written in one transaction.

import type { AddressInfo } from "node:net";
import express from "express";
import { Pool, type PoolClient } from "pg";
import { PausedJob, defineJob, enqueue } from "sexton-client";

const charge = defineJob<{ order: bigint; cents: number }>("billing.charge");
const pool = new Pool({ connectionString: process.env.DATABASE_URL });
// A connection that is lost must not end the process: the statement that was using it fails.
pool.on("connect", (client) => client.on("error", console.error));
pool.on("error", () => {});

/** Runs statements in one transaction: their end commits, an error rolls back. */
async function transaction<T>(statements: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const answer = await statements(client);
    await client.query("COMMIT");
    client.release();
    return answer;
  } catch (error) {
    // Where even ROLLBACK fails, closing the connection rolls back.
    await client.query("ROLLBACK").then(() => client.release(), () => client.release(true));
    throw error;
  }
}

const app = express();
app.use(express.json());

app.post("/orders", async (request, response) => {
  const cents: number = request.body?.cents;
  if (!Number.isInteger(cents)) {
    response.status(422).json({ detail: "cents is not an integer" });
    return;
  }
  try {
    const answer = await transaction(async (client) => {
      const { rows } = await client.query("INSERT INTO orders (cents) VALUES ($1) RETURNING id", [cents]);
      const order: string = rows[0].id; // pg reads a bigint as text.
      const params = { order: BigInt(order), cents };
      const { executionId } = await enqueue(client, charge, params, { key: `order-${order}` });
      return { order, execution: executionId };
    });
    response.status(201).json(answer);
  } catch (error) {
    if (!(error instanceof PausedJob)) throw error;
    response.status(503).json({ detail: "billing is paused; try again later" });
  }
});

const server = app.listen(Number(process.env.PORT ?? 8000), "127.0.0.1", (error?: Error) => {
  if (error) throw error;
  console.log(`running on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
