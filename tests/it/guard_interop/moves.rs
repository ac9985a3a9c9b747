//! The first steps of the guides, literally.

use sexton_guard::CREATE_SHEDLOCK;
use sqlx::AssertSqlSafe;

use super::contender::{Contender, Contention};
use super::contention::{ENOUGH, count_winners, judge, overlaps, start};
use super::{Fixture, PATIENCE, eventually, lock_row};
use crate::docs::{blocks, text};

pub(super) const SPRING: &str = "docs/guides/from-spring-shedlock.md";
pub(super) const NODE: &str = "docs/guides/from-node-cron.md";
pub(super) fn block(guide: &str, info: &str) -> String {
    let [block] = &blocks(&text(guide), info)[..] else { panic!("one {info} in {guide}") };
    block.clone()
}

#[tokio::test]
async fn instances_of_shedlock_move_to_the_table_of_sexton_while_they_contend() {
    const OLD: &[(&str, &str)] = &[("LOCK_TABLE", "shedlock")];
    let f = Fixture::new().await;
    let run = async |sql: String| {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(f.pool()).await.unwrap();
    };
    let role = format!("sx_billing_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    run(format!("CREATE ROLE {role}; {CREATE_SHEDLOCK}")).await;
    let jvm =
        |holder| Contention { holder, env: OLD, ..Contention::of("java", "row", "tokenCleanup") };
    let contenders = start(&f, &[jvm("java-1"), jvm("java-2")]).await;
    let count = contenders.len() as i64;
    let all_won = async || (count_winners(&f, "tokenCleanup", ENOUGH).await == count).then_some(());
    eventually("the instances contend for the old table", all_won).await;

    run(block(SPRING, "sql").replace("billing", &role)).await;
    let so_far = "SELECT max(n) FROM (SELECT count(*) AS n FROM held GROUP BY holder
         UNION ALL SELECT count(*) FROM refused GROUP BY holder) t";
    let so_far: Option<i64> = sqlx::query_scalar(so_far).fetch_one(f.pool()).await.unwrap();
    let enough = so_far.unwrap_or_default() + ENOUGH;
    let row = lock_row("tokenCleanup", PATIENCE);
    judge(&f, "tokenCleanup", contenders, enough, async || {
        row.try_acquire(f.pool()).await.unwrap().map(|held| (held, None))
    })
    .await;
    let writes = format!("SET ROLE {role}; UPDATE shedlock SET locked_by = locked_by; RESET ROLE");
    run(writes).await;
    run("DROP VIEW shedlock; DROP TABLE shedlock_before".to_owned()).await;
    run(format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// What the guide says about the code that it replaces; and the contention tests can fail.
#[tokio::test]
async fn the_usual_code_in_node_overlaps_itself() {
    let f = Fixture::new().await;
    let usual = blocks(&text(NODE), "js").swap_remove(0);
    let every_second = usual.replace("0 */1 * * * *", "* * * * * *");
    assert_ne!(usual, every_second, "the usual code runs every minute");
    let program = format!(
        "import {{ setTimeout as pause }} from \"node:timers/promises\";
         import cron from \"node-cron\";
         import pg from \"pg\";
         const pool = new pg.Pool({{ connectionString: process.env.DATABASE_URL }});
         async function cleanUp() {{
           const began = \"INSERT INTO held (lock, holder) VALUES ('5101', 'node') RETURNING id\";
           const {{ rows }} = await pool.query(began);
           await pause(2500);
           await pool.query(\"UPDATE held SET ended = clock_timestamp() WHERE id = $1\", [rows[0].id]);
         }}
         process.stdin.once(\"end\", () => process.exit()).resume();
         {every_second}
         console.log(\"ready\");"
    );
    let file = tempfile::Builder::new().prefix("usual-").suffix(".mjs").tempfile().unwrap();
    std::fs::write(file.path(), program).unwrap();
    let env = [("PROGRAM", file.path().to_str().unwrap())];
    let contention = Contention { env: &env, ..Contention::of("node", "advisory", "5101") };
    let Some(node) = Contender::start(&f.url, &contention).await else { return };
    let overlap = async || (overlaps(&f, "5101").await > 0).then_some(());
    eventually("two runs of one instance overlap", overlap).await;
    node.end().await;
}
