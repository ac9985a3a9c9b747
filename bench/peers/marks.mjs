// What marks.py says, for Node. A process has one thread for its tasks and so one slot; it is kept in the
// process and written every few milliseconds, because Node cannot share a file's memory.
import { openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const SLOTS = 64;
const HEADER = 16;
const SLOT = 24;
const EVERY_MS = 5;
export const WARM = -2;
export const PLAIN = -1;

export const run = JSON.parse(process.env.BENCH_RUN);
const require = createRequire(`${process.env.BENCH_NODE_MODULES}/.`);

/** A package of the folder that install.sh filled. */
export async function installed(name) {
  const module = await import(pathToFileURL(require.resolve(name)));
  return { ...module.default, ...module };
}

/** Nanoseconds of the real-time clock, to the microsecond; Date.now() has milliseconds only. */
const nanoseconds = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;

/** The function that every task calls first. */
export function marking() {
  const file = openSync(process.env.BENCH_MARKS, 'r+');
  const slot = new BigInt64Array(3);
  const place = HEADER + (SLOTS - 1 - Number(process.env.BENCH_WORKER)) * SLOT;
  const write = (value, at) => writeSync(file, new Uint8Array(BigInt64Array.of(value).buffer), 0, 8, at);
  let count = 0, first = 0n, last = 0n, written = 0;
  setInterval(() => {
    if (count === written) return;
    written = count;
    slot.set([BigInt(count), first, last]);
    writeSync(file, new Uint8Array(slot.buffer), 0, SLOT, place);
  }, EVERY_MS);
  return (number) => {
    const now = nanoseconds();
    if (number === WARM) return void write(now, 8);
    if (count++ === 0) first = now;
    last = now;
    if (number >= 0) write(now, HEADER + SLOTS * SLOT + number * 8);
  };
}

/** The jobs to enqueue, in batches of at most `size`: [{number, due}], due in ms since 1970 or null for now. */
export function* batches(size) {
  const { count, due_ms: due, dues_ms: dues, number } = JSON.parse(process.env.BENCH_JOBS);
  // Jobs with due times of their own are numbered; all others are alike.
  const jobs = dues.map((own, index) => ({ number: index, due: own }));
  jobs.push(...Array.from({ length: count }, () => ({ number, due })));
  for (let from = 0; from < jobs.length; from += size) yield jobs.slice(from, from + size);
}

/** Inserts the run's jobs by `insert`, batch after batch, and prints the seconds from the first to the last commit. */
export async function inBulk(insert) {
  const params = Array.from({ length: run.count }, (_, index) => ({ order: index + 1 }));
  const { batch } = run.settings;
  const began = performance.now();
  for (let from = 0; from < params.length; from += batch) await insert(params.slice(from, from + batch));
  console.log((performance.now() - began) / 1000);
}

/** Runs the function that the command line names; a worker ends by SIGTERM. */
export async function command(functions) {
  const asked = functions[process.argv[2]];
  if (!asked) throw new Error(`say one of ${Object.keys(functions)}`);
  await asked();
  if (process.argv[2] !== 'work') process.exit(0);
}
