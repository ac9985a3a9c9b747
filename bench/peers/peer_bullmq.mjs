// BullMQ: enqueues, works. peer_bullmq.py says with what.
import { batches, command, installed, marking, run } from './marks.mjs';

const { Queue, Worker } = await installed('bullmq');
const said = run.settings;
const address = new URL(run.redis);
const connection = {
  host: address.hostname, port: Number(address.port || 6379), db: Number(address.pathname.slice(1) || 0),
  username: address.username || undefined, password: address.password || undefined,
  maxRetriesPerRequest: null,
};

async function prepare() {}

async function enqueue() {
  const queue = new Queue(run.name, { connection });
  for (const batch of batches(1000)) {
    await queue.addBulk(batch.map(({ number, due }) => ({
      name: 'bench', data: { number },
      opts: { delay: due === null ? 0 : Math.max(0, due - Date.now()), removeOnComplete: said.removeOnComplete },
    })));
  }
  await queue.close();
}

async function work() {
  const mark = marking();
  const options = { connection, concurrency: said.concurrency };
  const worker = new Worker(run.name, async (job) => mark(job.data.number), options);
  worker.on('error', console.error);
  process.on('SIGTERM', () => worker.close().then(() => process.exit(0)));
}

await command({ prepare, enqueue, work });
