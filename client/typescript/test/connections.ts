// The connections over which the conformance cases run, one class per library.
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "@prisma/client";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import knex, { type Knex } from "knex";
import { Client } from "pg";
import { type Queryable, fromDrizzle, fromKnex, fromPrisma } from "../src";

const url = process.env.DATABASE_URL!;

export interface Connection {
  open(): Promise<void>;
  close(): Promise<void>;
  /** Where the client's calls go: the innermost transaction, if one is open. */
  db(): Queryable;
  /** begin, commit, rollback, savepoint or rollback_to. */
  control(command: string, name?: string): Promise<void>;
}

/** A Client of pg, on which the caller says BEGIN. */
export class Pg implements Connection {
  client = new Client({ connectionString: url });
  open = async () => void (await this.client.connect());
  close = () => this.client.end();
  db = (): Queryable => this.client;
  control = async (command: string, name = "") => void (await this.client.query(`${command.replace("_", " ")} ${name}`));
}

/** Transactions of Knex, nested for savepoints. */
export class KnexTransactions implements Connection {
  knex = knex({ client: "pg", connection: url, pool: { min: 1, max: 1 } });
  open_: Knex.Transaction[] = [];
  open = async () => {};
  close = () => this.knex.destroy();
  db = () => fromKnex(this.open_.at(-1) ?? this.knex);
  control = async (command: string) => {
    if (command === "begin" || command === "savepoint") {
      this.open_.push(await (this.open_.at(-1) ?? this.knex).transaction());
    } else if (command === "commit") {
      while (this.open_.length) await this.open_.pop()!.commit();
    } else {
      do await this.open_.pop()!.rollback();
      while (command === "rollback" && this.open_.length);
    }
  };
}

class RolledBack extends Error {}

/** A transaction that a library opens by a callback, held open until its end is called. */
async function hold<T>(begin: (body: (transaction: T) => Promise<void>) => Promise<unknown>) {
  let settle!: { resolve: () => void; reject: (error: Error) => void };
  const settled = new Promise<void>((resolve, reject) => (settle = { resolve, reject }));
  let over!: Promise<unknown>;
  const transaction = await new Promise<T>((resolve, reject) => {
    over = begin((opened) => (resolve(opened), settled));
    over.catch(reject);
  });
  const end = async (commit: boolean) => {
    if (commit) settle.resolve();
    else settle.reject(new RolledBack());
    await over.catch((error) => {
      if (!(error instanceof RolledBack)) throw error;
    });
  };
  return { transaction, end };
}

/** Transactions of Drizzle, nested for savepoints. */
export class DrizzleTransactions implements Connection {
  client = new Client({ connectionString: url });
  drizzle = drizzle(this.client);
  held: Array<{ transaction: any; end(commit: boolean): Promise<void> }> = [];
  open = async () => void (await this.client.connect());
  close = () => this.client.end();
  inner = (): any => this.held.at(-1)?.transaction ?? this.drizzle;
  db = () => fromDrizzle(this.inner(), sql);
  control = async (command: string) => {
    const inner = this.inner();
    if (command === "begin" || command === "savepoint") {
      this.held.push(await hold<any>((body) => inner.transaction(body)));
    } else {
      do await this.held.pop()!.end(command === "commit");
      while (command !== "rollback_to" && this.held.length);
    }
  };
}

/** Interactive transactions of Prisma, with savepoints by SQL. */
export class PrismaTransactions implements Connection {
  prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 1 }) });
  held?: { transaction: any; end(commit: boolean): Promise<void> };
  open = async () => {};
  close = () => this.prisma.$disconnect();
  db = () => fromPrisma(this.held?.transaction ?? this.prisma);
  control = async (command: string, name = "") => {
    if (command === "begin") {
      this.held = await hold<any>((body) => this.prisma.$transaction(body, { timeout: 60_000 }));
    } else if (command === "commit" || command === "rollback") {
      const { end } = this.held!;
      this.held = undefined;
      await end(command === "commit");
    } else {
      await this.held!.transaction.$executeRawUnsafe(`${command.replace("_", " ")} ${name}`);
    }
  };
}

export const ALL: Array<new () => Connection> = [Pg, KnexTransactions, DrizzleTransactions, PrismaTransactions];
