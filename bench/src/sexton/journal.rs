//! Journal: the cost of opening and settling alone.
//!
//! It runs a worker's statements, batch after batch on a dedicated connection; `--slots` is the size of a batch. The
//! figures are the executions per second, each statement's duration and the processor time of PostgreSQL's process
//! for it, and the bytes of write-ahead log of both for an execution. Full page images hardly count: the changed rows
//! were inserted just before.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sexton_model::id::{AttemptNumber, ExecutionId, JobId, OpenToken, ProcessId};
use sexton_model::retry::Decision;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::lease::AttemptFence;
use sexton_store::open::{Offer, OpenRequest, open};
use sexton_store::settle::{Settlement, settle};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use super::{line, with};
use crate::Arguments;
use crate::bare::fill;
use crate::line::Line;
use crate::processor::used_by;

pub(super) const LEASE: Duration = Duration::from_secs(20);

/// Returns executions per second.
pub(super) async fn measure(arguments: &Arguments, database_url: &str) -> Result<()> {
    let database = TestDatabase::create_on(database_url).await?;
    let ids = prepare(&database, arguments, arguments.count).await?;
    let mut dedicated = DedicatedConnection::for_key_lookups(database.store());
    let server = sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()");
    let mut connection = dedicated.acquire().await?;
    let server = server.fetch_one(&mut *connection).await?.unsigned_abs();
    connection.release();
    let (mut opens, mut settlements) = (Cost::default(), Cost::default());
    let worker = ProcessId::new(Uuid::now_v7());
    let offers = [Offer::new("nothing")];
    let wal_before = wal_written(database.pool()).await?;
    let began = Instant::now();
    for batch in ids.chunks(usize::from(arguments.slots)) {
        let requests: Vec<OpenRequest> =
            batch.iter().map(|id| request(ExecutionId::new(*id))).collect();
        let before = used_by(server)?;
        let since = Instant::now();
        let mut connection = dedicated.acquire().await?;
        let opened =
            open(&mut *connection, worker, "bench:1", &offers, &requests, LEASE, None).await?;
        connection.release();
        let opened = opened.opened;
        ensure!(opened.len() == batch.len(), "{} of {} were opened", opened.len(), batch.len());
        let between = used_by(server)?;
        opens.add(since.elapsed(), between.saturating_sub(before));
        let since = Instant::now();
        let ends: Vec<Settlement> = requests.iter().map(settlement).collect();
        let mut connection = dedicated.acquire().await?;
        settle(&mut *connection, &ends, None).await?;
        connection.release();
        settlements.add(since.elapsed(), used_by(server)?.saturating_sub(between));
    }
    let value = ids.len() as f64 / began.elapsed().as_secs_f64();
    let wal = (wal_written(database.pool()).await? - wal_before) / ids.len() as f64;
    let mut line = Line { value, unit: "/s", ..line(arguments, "journal") };
    for (kind, cost) in [("open", opens), ("settle", settlements)] {
        line = with(line, &format!("{kind}_us"), cost.mean(cost.took));
        line = with(line, &format!("{kind}_processor_us"), cost.mean(cost.processor));
    }
    with(line, "wal_bytes", wal).print();
    Ok(())
}

/// Makes `arguments.finished` executions that have ended and `count` that wait, in the chosen design.
pub(super) async fn prepare(
    database: &TestDatabase,
    arguments: &Arguments,
    count: i64,
) -> Result<Vec<Uuid>> {
    // The pool's connections limit how long a statement may take.
    let mut patient = PgConnection::connect(database.url()).await?;
    let other = NewJob::new("bench.finished").insert(database.pool()).await?;
    finish(&mut patient, other, arguments.finished).await?;
    // Before the rows that are measured: from here on their pages are in the log as a whole already.
    sqlx::query("CHECKPOINT").execute(&mut patient).await?;
    let ids = fill(database.pool(), count).await?.0;
    if let Some(file) = &arguments.design {
        let statements = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut patient).await?;
    }
    sqlx::query("VACUUM ANALYZE").execute(&mut patient).await?;
    patient.close().await?;
    Ok(ids)
}

/// Makes executions of `job` that have ended.
async fn finish(connection: &mut PgConnection, job: JobId, count: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
            idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at, finished_at, outcome)
         SELECT gen_random_uuid(), $1, n::text, at, 'succeeded', 'nothing', 'default', '{}', n::text, 'bench:1', at,
            at, at, at, at, 'succeeded'
         FROM generate_series(1, $2) n, LATERAL (SELECT now() - (n % 86400) * interval '1 second' AS at) t",
    )
    .bind(job.get())
    .bind(count)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns how much PostgreSQL has written to its log, in bytes: of the whole server, including other users' writes.
async fn wal_written(pool: &PgPool) -> Result<f64> {
    let bytes = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
    Ok(sqlx::query_scalar(bytes).fetch_one(pool).await?)
}

pub(super) fn request(execution_id: ExecutionId) -> OpenRequest {
    OpenRequest {
        execution_id,
        attempt: AttemptNumber::FIRST,
        token: OpenToken::new(Uuid::new_v4()),
    }
}

pub(super) fn settlement(request: &OpenRequest) -> Settlement {
    let OpenRequest { execution_id, attempt, token } = *request;
    Settlement {
        fence: AttemptFence { execution_id, attempt, token },
        verdict: Decision::Succeed,
        outcome: "succeeded",
        error: None,
        exit_code: None,
        signal: None,
        output: None,
        result: None,
    }
}

/// The costs of one kind of statement.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    statements: u32,
    took: Duration,
    processor: Duration,
}

impl Cost {
    fn add(&mut self, took: Duration, processor: Duration) {
        self.statements += 1;
        self.took += took;
        self.processor += processor;
    }

    /// Returns the mean of one statement, in microseconds.
    fn mean(self, total: Duration) -> f64 {
        total.as_secs_f64() * 1e6 / f64::from(self.statements.max(1))
    }
}
