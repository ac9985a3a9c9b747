// graphile-worker: makes its tables, enqueues, works. peer_graphile_worker.py says with what.
import { batches, command, inBulk, installed, marking, run } from './marks.mjs';

const { Logger, makeWorkerUtils, run: start } = await installed('graphile-worker');
const said = run.settings;
// Its own log has two lines for each job.
const logger = new Logger(() => (level, message) => level === 'error' && console.error(message));
const utils = () => makeWorkerUtils({ connectionString: run.database, logger });

async function prepare() {
  await (await utils()).migrate();
}

async function enqueue() {
  const worker = await utils();
  for (const batch of batches(5000)) {
    await worker.addJobs(batch.map(({ number, due }) => (
      { identifier: 'bench', payload: { number }, runAt: due === null ? undefined : new Date(due) }
    )));
  }
}

async function bulk() {
  const worker = await utils();
  // It connects with its first statement.
  await worker.withPgClient((client) => client.query('select 1'));
  await inBulk((all) => worker.addJobs(all.map((payload) => ({ identifier: 'bench', payload }))));
}

async function work() {
  const mark = marking();
  const worker = {
    connectionString: run.database,
    concurrentJobs: said.concurrentJobs,
    maxPoolSize: said.maxPoolSize,
    pollInterval: said.pollInterval,
    completeJobBatchDelay: said.completeJobBatchDelay,
    failJobBatchDelay: said.completeJobBatchDelay,
    ...(said.localQueue && { localQueue: { size: said.localQueue } }),
    logger,
  };
  await start({ preset: { worker }, taskList: { bench: async (payload) => mark(payload.number) } });
}

await command({ prepare, enqueue, bulk, work });
