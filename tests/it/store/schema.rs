//! The schema repeats the model's table of states; here the two are held against each other.

use sexton_model::state::{Cause, State, next};
use sexton_tests::database::{TestDatabase, migrator};
use sexton_tests::factory::NewJob;

use super::{Fixture, at, request};

/// What a row in `state` has to hold, as column assignments; the model's words, not the schema's.
fn row(state: State) -> String {
    let running = state == State::Running;
    let waiting = matches!(state, State::Pending | State::Retrying);
    let ended = state.is_final() || matches!(state, State::Failed | State::Discarded);
    let value = |is: bool, value: &str| if is { value.to_owned() } else { "NULL".to_owned() };
    format!(
        "state = '{}', open_token = {token}, worker_id = {token}, lease_until = {time},
         next_attempt_at = {due}, finished_at = {finished}, skip_reason = {skip}",
        state.as_str(),
        token = value(running, "gen_random_uuid()"),
        time = value(running, "now()"),
        due = value(waiting, "now()"),
        finished = value(ended, "now()"),
        skip = value(state == State::Skipped, "'overlap'"),
    )
}

async fn set(fixture: &Fixture, id: sexton_model::id::ExecutionId, assignments: &str) -> bool {
    let statement = format!("UPDATE sexton.executions SET {assignments} WHERE id = $1");
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(id.get())
        .execute(fixture.db.pool())
        .await
        .is_ok()
}

#[tokio::test]
async fn the_schema_knows_the_model_s_states_and_no_other() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    for state in State::ALL {
        assert!(set(&fixture, id, &row(state)).await, "{state:?} is refused");
    }
    let constraint: String = sqlx::query_scalar(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'executions_state'",
    )
    .fetch_one(fixture.db.pool())
    .await
    .unwrap();
    assert_eq!(constraint.matches("::text").count(), State::ALL.len(), "{constraint}");
}

#[tokio::test]
async fn a_row_cannot_be_half_in_a_state() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    for from in State::ALL {
        for to in State::ALL {
            // The columns of one state under the name of another, wherever the two differ.
            let columns =
                row(from).replace(&format!("'{}'", from.as_str()), &format!("'{}'", to.as_str()));
            let alike = row(from).split_once(',').unwrap().1 == row(to).split_once(',').unwrap().1;
            assert_eq!(set(&fixture, id, &columns).await, alike, "{from:?} as {to:?}");
        }
    }
}

#[tokio::test]
async fn operator_actions_cannot_be_changed() {
    let fixture = Fixture::new().await;
    sqlx::query(
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'me', 'discard')",
    )
    .execute(fixture.db.pool())
    .await
    .unwrap();
    for statement in [
        "UPDATE sexton.operator_actions SET actor = 'you'",
        "DELETE FROM sexton.operator_actions",
        "TRUNCATE sexton.operator_actions",
    ] {
        let error = sqlx::query(statement).execute(fixture.db.pool()).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{statement}: {error}");
    }
}

#[tokio::test]
async fn every_column_has_a_comment() {
    let db = TestDatabase::create().await.unwrap();
    let silent: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname || '.' || a.attname FROM pg_class c
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relkind = 'r' AND c.relnamespace = 'sexton'::regnamespace
           AND c.relname <> '_sqlx_migrations' AND col_description(c.oid, a.attnum) IS NULL",
    )
    .fetch_all(db.pool())
    .await
    .unwrap();
    assert_eq!(silent, Vec::<String>::new());
}

#[tokio::test]
async fn migrations_go_down_and_up_again_and_twice_changes_nothing() {
    let db = TestDatabase::create().await.unwrap();
    assert_eq!(db.store().migrate().await.unwrap(), 0);
    let migrator = migrator().await.unwrap();
    migrator.undo(db.pool(), 0).await.unwrap();
    let left: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'S', 'v') AND relname <> '_sqlx_migrations'
                 AND relnamespace = 'sexton'::regnamespace)
              + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'sexton'::regnamespace)",
    )
    .fetch_one(db.pool())
    .await
    .unwrap();
    assert_eq!(left, 0);
    assert!(db.store().check_schema().await.is_err());
    assert!(db.store().migrate().await.unwrap() > 0);
    db.store().check_schema().await.unwrap();
}

#[tokio::test]
async fn the_schema_goes_back_to_one_without_days_only_if_no_job_has_days() {
    let db = TestDatabase::create().await.unwrap();
    NewJob::new("a.b").insert(db.pool()).await.unwrap();
    let set = async |days: Option<&str>| {
        let update = sqlx::query("UPDATE sexton.jobs SET days = $1").bind(days);
        update.execute(db.pool()).await.unwrap();
    };
    set(Some("both")).await;
    let migrator = migrator().await.unwrap();
    let mut connection = db.pool().acquire().await.unwrap();
    let refused = migrator.undo(&mut *connection, 18).await.unwrap_err();
    // Its session still has the lock of migrations.
    connection.close().await.unwrap();
    assert!(refused.to_string().contains("some jobs have days"), "{refused}");
    set(None).await;
    migrator.undo(db.pool(), 18).await.unwrap();
    assert!(db.store().migrate().await.unwrap() > 0);
    db.store().check_schema().await.unwrap();
}

#[tokio::test]
async fn two_processes_may_migrate_at_once() {
    let db = TestDatabase::create().await.unwrap();
    let migrator = migrator().await.unwrap();
    migrator.undo(db.pool(), 0).await.unwrap();
    let other = db.other_store().unwrap();
    let (one, two) = tokio::join!(db.store().migrate(), other.migrate());
    one.unwrap();
    two.unwrap();
    db.store().check_schema().await.unwrap();
}

#[tokio::test]
async fn an_open_leaves_exactly_the_states_that_the_table_lets_it_leave() {
    let fixture = Fixture::new().await;
    for state in State::ALL {
        let id = fixture.claim(state.as_str()).await;
        assert!(set(&fixture, id, &row(state)).await);
        sqlx::query("UPDATE sexton.executions SET next_attempt_at = $1 WHERE id = $2 AND next_attempt_at IS NOT NULL")
            .bind(at(0))
            .bind(id.get())
            .execute(fixture.db.pool())
            .await
            .unwrap();
        let opened = fixture.open(request(id, 1), 1).await.is_some();
        assert_eq!(opened, next(state, Cause::Open).is_some(), "{state:?}");
    }
}
