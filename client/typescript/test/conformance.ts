// Runs conformance.json, whose path is the first argument, over every connection; client/README.md describes the file.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import * as sexton from "../src";
import { toJson } from "../src/json";
import { ALL, type Connection } from "./connections";

const CONTROL = ["begin", "commit", "rollback", "savepoint", "rollback_to"];
const CLASSES: Record<string, Function> = {
  SX001: sexton.UnknownJob, SX002: sexton.DeletedJob, SX003: sexton.PausedJob, SX010: sexton.InvalidArgument,
  SX011: sexton.InvalidParams, SX012: sexton.InvalidParams, SX020: sexton.TooManyItems,
};
const camel = (name: string) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);

/** One case with what its steps have remembered. */
class Case {
  remembered: Record<string, any> = {};

  constructor(readonly connection: Connection, readonly sql: Record<string, string>) {}

  /** A value of the file, with its references and generators replaced. */
  value(given: any): any {
    if (typeof given === "string" && given.startsWith("$")) {
      const [name, ...path] = given.slice(1).split(".");
      return path.reduce((found, step) => found[/^\d+$/.test(step) ? Number(step) - 1 : camel(step)], this.remembered[name!]);
    }
    if (Array.isArray(given)) return given.map((item) => this.value(item));
    if (given === null || typeof given !== "object") return given;
    if ("$integer" in given) return BigInt(given.$integer);
    if ("$repeat" in given) return given.$repeat.repeat(given.times);
    if ("$nest" in given) {
      let nested = {};
      for (let n = 1; n < given.$nest; n += 1) nested = { n: nested };
      return nested;
    }
    if ("$items" in given) return Array.from({ length: given.$items }, (_, n) => ({ key: `${given.key}${n + 1}` }));
    return Object.fromEntries(Object.entries(given).map(([key, item]) => [key, this.value(item)]));
  }

  check(expected: any, found: any, place: string): void {
    if (Array.isArray(expected)) {
      assert.equal(found.length, expected.length, place);
      expected.forEach((item, n) => this.check(item, found[n], `${place}[${n + 1}]`));
    } else if (expected === null || typeof expected !== "object") {
      assert.equal(found, this.value(expected), place);
    } else if ("$present" in expected) {
      assert.notEqual(found ?? null, null, place);
    } else if ("$differs" in expected) {
      assert.notEqual(found, this.value(expected.$differs), place);
    } else if ("$in_seconds" in expected) {
      const [low, high] = expected.$in_seconds;
      assert.ok(inSeconds(low) <= found && found <= inSeconds(high), `${place} is ${found?.toISOString()}`);
    } else if ("$plus" in expected) {
      assert.equal(found, this.value(expected.$plus[0]) + expected.$plus[1], place);
    } else {
      for (const [key, item] of Object.entries(expected)) {
        const field = key === "oldest_wait" ? "oldestWaitSeconds" : camel(key);
        assert.ok(field in found, `${place}.${field}`);
        this.check(item, found[field], `${place}.${field}`);
      }
    }
  }

  options(given: any): any {
    const { run_at_seconds, ...rest } = this.value(given);
    const options: any = Object.fromEntries(Object.entries(rest).map(([key, item]) => [camel(key), item]));
    if (run_at_seconds !== undefined) options.runAt = inSeconds(run_at_seconds);
    return options;
  }

  async call(step: any): Promise<any> {
    const db = this.connection.db();
    const { do: operation, as: _as, expect, expect_error, expect_count, job, ...given } = step;
    switch (operation) {
      case "enqueue": {
        const { params, ...options } = this.options(given);
        return sexton.enqueue(db, job, params, options);
      }
      case "enqueue_many": {
        const items = this.value(given.items).map((item: any) => this.options(item));
        return sexton.enqueueMany(db, job, items, { batchSize: given.batch_size });
      }
      case "cancel":
        return sexton.cancel(db, job, given.key, this.value(given.reason));
      case "execution":
        return given.execution_id
          ? sexton.execution(db, this.value(given.execution_id))
          : sexton.executionByKey(db, job, this.value(given.key));
      case "demand":
        return sexton.demand(db, given.pool);
      case "wait_for":
        return sexton.waitFor(db, this.value(given.execution_id), given.timeout_seconds);
      default:
        throw new Error(`unknown operation ${operation}`);
    }
  }

  async step(step: any): Promise<void> {
    if (CONTROL.includes(step.do)) return this.connection.control(step.do, step.name);
    if (step.do === "stored") {
      // PostgreSQL compares: JSON.parse would round the integers.
      const text = `SELECT s.stored, s.stored::jsonb = $2::text::jsonb AS same FROM (${this.sql.stored}) s`;
      const values = [this.value(step.execution_id), toJson(this.value(step.expect))];
      const { rows } = await this.connection.db().query(text.replace(":value", "$1"), values);
      return assert.ok(rows[0].same, `stored is ${rows[0].stored}`);
    }
    let found: any;
    try {
      found = await this.call(step);
    } catch (error) {
      if (error instanceof sexton.WaitTimeout && step.expect_timeout) return;
      if (!(error instanceof sexton.SextonError) || !step.expect_error) throw error;
      const { sqlstate, hint, detail, first_item = 1 } = step.expect_error;
      assert.equal(error.sqlstate, sqlstate);
      assert.equal(error.constructor, CLASSES[sqlstate]);
      assert.equal(Boolean(error.hint), hint, `hint of ${error}`);
      assert.equal(error.firstItem, first_item);
      if (detail) assert.ok(error.detail, `detail of ${error}`);
      return;
    }
    assert.ok(!step.expect_error && !step.expect_timeout, "no error");
    if (step.as) this.remembered[step.as] = found;
    if (step.expect_count) {
      assert.deepEqual(found.map((item: any) => item.ordinal), Array.from({ length: step.expect_count }, (_, n) => n + 1));
    }
    if ("expect" in step) this.check(step.expect, found, step.do);
  }
}

async function run(Kind: new () => Connection): Promise<boolean[]> {
  const name = `conformance-${randomUUID().slice(0, 13)}`;
  const file = JSON.parse(readFileSync(process.argv[2]!, "utf8").replaceAll("{run}", name));
  const setup = new Kind();
  await setup.open();
  for (const job of file.jobs) await setup.db().query(file.sql.create_job.replace(":value", "$1"), [JSON.stringify(job)]);
  await setup.close();
  const passed: boolean[] = [];
  for (const one of file.cases) {
    const connection = new Kind();
    await connection.open();
    const running = new Case(connection, file.sql);
    let n = 0;
    try {
      for (const step of one.steps) {
        n += 1;
        await running.step(step);
      }
      passed.push(true);
    } catch (error) {
      console.log(`FAILED ${Kind.name}: ${one.name}, step ${n}: ${error}`);
      passed.push(false);
      await connection.control("rollback").catch(() => undefined);
    }
    await connection.close();
  }
  console.log(`${Kind.name}: ${passed.filter(Boolean).length} of ${passed.length} cases`);
  return passed;
}

async function main(): Promise<void> {
  const results: boolean[] = [];
  for (const Kind of ALL) results.push(...(await run(Kind)));
  const failed = results.filter((one) => !one).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  process.exit(results.length > 0 && failed === 0 ? 0 : 1);
}

void main();
