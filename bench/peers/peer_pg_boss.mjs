// pg-boss: makes its tables, enqueues, works. peer_pg_boss.py says with what.
import { batches, command, inBulk, installed, marking, run } from './marks.mjs';

const { PgBoss } = await installed('pg-boss');
const QUEUE = 'bench';
const said = run.settings;

async function started(more = {}) {
  // Statistics each second: what starts a burst of fetches is read from them.
  const boss = new PgBoss({
    connectionString: run.database, max: (said.localConcurrency ?? 0) + 5,
    monitorIntervalSeconds: 1, superviseIntervalSeconds: 1, queueCacheIntervalSeconds: 1, ...more,
  });
  boss.on('error', console.error);
  await boss.start();
  return boss;
}

async function prepare() {
  const boss = await started();
  await boss.createQueue(QUEUE);
}

async function enqueue() {
  const boss = await started();
  for (const batch of batches(5000)) {
    await boss.insert(QUEUE, batch.map(({ number, due }) => (
      { data: { number }, startAfter: due === null ? undefined : new Date(due) }
    )));
  }
}

async function bulk() {
  // A program that only inserts leaves maintenance and schedules to others.
  const boss = await started({ supervise: false, schedule: false });
  await inBulk((all) => boss.insert(QUEUE, all.map((data) => ({ data }))));
}

async function work() {
  const mark = marking();
  const boss = await started();
  const options = Object.fromEntries(Object.entries({
    batchSize: said.batchSize,
    localConcurrency: said.localConcurrency,
    pollingIntervalSeconds: said.pollingIntervalSeconds,
    burstWhenReadyExceeds: said.burstWhenReadyExceeds,
    burstWhenBatchFull: said.burstWhenBatchFull,
  }).filter(([, value]) => value !== null));
  await boss.work(QUEUE, options, async (jobs) => {
    for (const job of jobs) mark(job.data.number);
  });
  process.on('SIGTERM', () => boss.stop({ timeout: 10_000 }).then(() => process.exit(0)));
}

await command({ prepare, enqueue, bulk, work });
