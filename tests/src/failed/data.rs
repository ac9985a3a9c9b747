//! Rows of a platform that has run for long: one in ten executions is failed.

use anyhow::Result;
use sexton_model::fingerprint::fingerprint;
use sexton_store::Store;
use sexton_store::failures::{aggregate, name_groups};
use sqlx::{AssertSqlSafe, PgConnection};

use super::suspended::Suspended;

/// Rows of one insert.
const INSERT_BATCH_ROWS: i64 = 200_000;
/// Groups; the first ones have most.
const GROUPS: i64 = 300;
/// One in so many is failed.
const FAILED: i64 = 10;
/// Changes of one fold.
const FOLD: i64 = 20_000;

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Executions; a tenth of them failed, over thirty days.
    pub executions: i64,
}

/// Letters of a number, so that they stay in a pattern.
fn word(number: i64) -> String {
    let letter = |place: i64| char::from(b'a' + ((number / place) % 26) as u8);
    [letter(676), letter(26), letter(1)].iter().collect()
}

/// Class and message of a group; `order 1` stands for any.
fn error(group: i64) -> (String, String) {
    let class =
        if group == GROUPS - 1 { "rare_class".to_owned() } else { format!("exit_{}", group % 12) };
    (class, format!("exit code {}: order 1 declined by bank {}", group % 12, word(group)))
}

/// The failure index gets the worker's name without a million attempts.
const NAME_WORKERS: &str = "
    CREATE FUNCTION sexton.name_worker() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.worker := CASE WHEN NEW.task_type = 'type_rare' THEN 'worker-rare'
            ELSE 'worker-' || abs(hashtext(NEW.execution_id::text)) % 40 END;
        RETURN NEW;
    END $$;
    CREATE TRIGGER name_worker BEFORE INSERT ON sexton.failures
        FOR EACH ROW EXECUTE FUNCTION sexton.name_worker();";

/// Fills a migrated, empty database; `report` receives the progress. Vacuums and analyses afterwards.
///
/// # Errors
///
/// Those of the database.
pub async fn fill(store: &Store, size: Size, mut report: impl FnMut(i64)) -> Result<()> {
    // One connection without the limits of the store's statements.
    let mut connection = store.pool().acquire().await?;
    sqlx::raw_sql("SET statement_timeout = 0; SET maintenance_work_mem = '256MB'")
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO sexton.jobs (id, name, schedule_kind, task_type, params, pool, overlap, misfire_policy,
            misfire_window_ms, misfire_limit, timeout_ms, labels, created_at, updated_at)
         SELECT lpad(to_hex(n), 32, '0')::uuid, 'team.job' || n, 'none', 'type_' || n % 20, '{}',
            'pool-' || n % 5, 'allow', 'skip', 0, 1, 60000,
            jsonb_build_object('team', CASE WHEN n = 199 THEN 'rare' ELSE 't' || n % 10 END), now(), now()
         FROM generate_series(0, 199) n",
    )
    .execute(&mut *connection)
    .await?;
    let (classes, messages): (Vec<_>, Vec<_>) = (0..GROUPS).map(error).unzip();
    let fingerprints: Vec<String> = classes
        .iter()
        .zip(&messages)
        .map(|(class, message)| fingerprint(class, message).to_string())
        .collect();
    let suspended = Suspended::suspend(&mut connection).await?;
    sqlx::raw_sql(NAME_WORKERS).execute(&mut *connection).await?;
    let mut from = 0;
    while from < size.executions {
        let to = size.executions.min(from + INSERT_BATCH_ROWS);
        let groups = [&classes, &messages, &fingerprints];
        insert_executions(&mut connection, from, to, size, groups).await?;
        while aggregate(store, FOLD, None).await?.changes > 0 {}
        from = to;
        report(from);
    }
    sqlx::raw_sql("DROP FUNCTION sexton.name_worker() CASCADE").execute(&mut *connection).await?;
    suspended.restore(&mut connection).await?;
    while name_groups(store, 500).await? == 500 {}
    let tables =
        ["executions", "attempts", "failures", "failure_changes", "failure_counts", "jobs"];
    vacuum(&mut connection, &tables).await?;
    sqlx::raw_sql("RESET statement_timeout; RESET maintenance_work_mem")
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Vacuums and analyses these tables, over a connection whose statements have no limit.
pub(super) async fn vacuum(connection: &mut PgConnection, tables: &[&str]) -> Result<()> {
    for table in tables {
        let statement = AssertSqlSafe(format!("VACUUM (ANALYZE) sexton.{table}"));
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Executions `from` to before `to`. Every tenth is failed, in a group of which the smaller numbers have
/// more; job 199 has one failure in ten thousand, and so have the rare worker, word, pool and param.
async fn insert_executions(
    connection: &mut PgConnection,
    from: i64,
    to: i64,
    size: Size,
    [classes, messages, fingerprints]: [&Vec<String>; 3],
) -> Result<()> {
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool,
            params, idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at,
            finished_at, outcome, error_class, error_message, fingerprint)
         SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
                 || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
            lpad(to_hex(job), 32, '0')::uuid, n::text, at, state, 2,
            CASE WHEN rare THEN 'type_rare' ELSE 'type_' || job % 20 END,
            CASE WHEN rare THEN 'pool-rare' ELSE 'pool-' || job % 5 END,
            jsonb_build_object('customer', n, 'tenant', 't' || f % 3,
                               'order', jsonb_build_object('id', f % 1000)),
            n::text, 'test:1', at, at, at, at, at, CASE WHEN state = 'failed' THEN 'error' ELSE state END,
            CASE WHEN state = 'failed' THEN ($4::text[])[g] END,
            CASE WHEN state = 'failed' THEN replace(($5::text[])[g], 'order 1 ',
                CASE WHEN rare THEN 'order zanzibar-' || n ELSE 'order ' || n END || ' ') END,
            CASE WHEN state = 'failed' THEN ($6::text[])[g] END
         FROM generate_series($1::bigint, $2::bigint - 1) n,
              LATERAL (SELECT n / 10 AS f, n % 10 = 0 AS is_failed, n % 100000 = 0 AS rare,
                       now() - interval '30 days' * (1 - n::float8 / $3) AS at) a,
              LATERAL (SELECT CASE WHEN rare THEN 199 ELSE (f * 7919) % 199 END AS job,
                       CASE WHEN is_failed THEN 'failed' ELSE 'succeeded' END AS state,
                       -- Half of them in the first thirty groups.
                       1 + CASE WHEN rare THEN 299 WHEN f % 2 = 0 THEN (f / 2) % 30
                                ELSE (f * 31) % 299 END AS g) b",
    )
    .bind(from)
    .bind(to)
    .bind(size.executions)
    .bind(classes)
    .bind(messages)
    .bind(fingerprints)
    .execute(connection)
    .await?;
    Ok(())
}

impl Size {
    /// Those that are failed.
    pub const fn failed(self) -> i64 {
        (self.executions + FAILED - 1) / FAILED
    }
}
