//! The platform's roles: each statement is tried as each of them.
//!
//! Roles belong to a server, so these tests have servers of their own.

use sexton_model::access::Role;
use sexton_model::job_scope::ScopeChange;
use sexton_servers::{PostgresOptions, PostgresServer};
use sexton_store::Store;
use sexton_store::accounts::{self, AccountChange, AccountCreation, ChangeOutcome, NewAccount};
use sexton_store::grants::GrantError;
use sexton_store::operator::AuditContext;
use sexton_store::roles::{DEFAULT_PREFIX, PlatformRole, grant_roles};
use sexton_tests::database::TestDatabase;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _};

/// What a statement needs, and the roles that have it: owner, service, operator, producer, viewer, and a role that
/// nobody granted anything.
const MATRIX: &[(&str, [bool; 6])] = &[
    ("SELECT 'sexton.jobs'::regclass", [true, true, true, true, true, false]),
    ("SELECT count(*) FROM sexton.executions", [true, true, true, false, true, false]),
    ("SELECT count(*) FROM sexton.all_attempts", [true, true, true, false, true, false]),
    ("SELECT count(*) FROM sexton.operator_actions", [true, true, true, false, true, false]),
    ("SELECT count(*) FROM sexton._sqlx_migrations", [true, true, true, false, true, false]),
    ("UPDATE sexton.jobs SET description = ''", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.jobs", [true, true, false, false, false, false]),
    ("UPDATE sexton.executions SET state = state", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.executions", [true, true, false, false, false, false]),
    ("UPDATE sexton.attempts SET number = number", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.attempt_output", [true, true, false, false, false, false]),
    ("UPDATE sexton.bulks SET state = state", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.bulks", [true, true, false, false, false, false]),
    ("SELECT count(*) FROM sexton.lock_key_ranges", [true, true, true, false, true, false]),
    (
        "INSERT INTO sexton.lock_key_ranges (service, first_key, assigned_by, assigned_at)
         VALUES ('a', 1, 'ann', now()) ON CONFLICT (service) DO UPDATE SET keys = excluded.keys",
        [true, true, true, false, false, false],
    ),
    ("DELETE FROM sexton.lock_key_ranges", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.ledger_checks", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.job_monitors", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.monitor_wakeups", [true, true, false, false, false, false]),
    ("SELECT config FROM sexton.channels", [true, true, true, false, true, false]),
    ("DELETE FROM sexton.channels", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.routes", [true, true, true, false, false, false]),
    ("UPDATE sexton.checks SET is_paused = true", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.checks", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.ping_keys", [true, true, true, false, false, false]),
    ("SELECT secret_hash FROM sexton.tokens", [true, true, true, false, true, false]),
    ("UPDATE sexton.tokens SET role = role", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.tokens", [true, true, false, false, false, false]),
    ("SELECT name, role FROM sexton.accounts", [true, true, true, false, true, false]),
    ("SELECT password_hash FROM sexton.accounts", [true, true, false, false, false, false]),
    ("UPDATE sexton.accounts SET password_hash = '$argon2id$'", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.accounts", [true, true, false, false, false, false]),
    ("SELECT provider_hash FROM sexton.sessions", [true, true, true, false, true, false]),
    ("UPDATE sexton.sessions SET ended_at = now()", [true, true, true, false, false, false]),
    (
        "INSERT INTO sexton.sessions (secret_hash, subject, role, created_at, last_used_at, expires_at)
         VALUES (decode(repeat('00', 32), 'hex'), 'a', 'admin', now(), now(), now())",
        [true, true, false, false, false, false],
    ),
    ("SELECT body FROM sexton.request_keys", [true, true, true, false, true, false]),
    ("DELETE FROM sexton.request_keys", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.approval_rules", [true, true, true, false, false, false]),
    ("SELECT proposal FROM sexton.approval_requests", [true, true, true, false, true, false]),
    ("UPDATE sexton.approval_requests SET state = state", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.approval_requests", [true, true, false, false, false, false]),
    ("UPDATE sexton.approvals SET actor = actor", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.approvals", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.pings", [true, true, false, false, false, false]),
    ("DELETE FROM sexton.ping_endpoint", [true, true, false, false, false, false]),
    ("UPDATE sexton.incidents SET state = state", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.incidents", [true, true, false, false, false, false]),
    ("UPDATE sexton.notifications SET state = state", [true, true, true, false, false, false]),
    ("DELETE FROM sexton.notifications", [true, true, false, false, false, false]),
    ("UPDATE sexton.heartbeats SET state = state", [true, true, false, false, false, false]),
    ("UPDATE sexton.dead_man SET problem = NULL", [true, true, false, false, false, false]),
    ("UPDATE sexton.retention SET pruned_before = now()", [true, true, false, false, false, false]),
    (
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'ann', 'test')",
        [true, true, true, false, false, false],
    ),
    // The owner meets the trigger. Nobody else comes so far.
    ("UPDATE sexton.operator_actions SET actor = 'bob'", [true, false, false, false, false, false]),
    ("TRUNCATE sexton.operator_actions", [true, false, false, false, false, false]),
    ("SELECT hash FROM sexton.audit_seals", [true, true, true, false, true, false]),
    ("SELECT hash FROM sexton.audit_chain", [true, true, true, false, true, false]),
    ("SELECT action_id FROM sexton.audit_unsealed", [true, true, true, false, true, false]),
    // The owner meets the trigger here as well.
    ("DELETE FROM sexton.audit_seals", [true, false, false, false, false, false]),
    (
        "INSERT INTO sexton.audit_seals (position, action_id, hash) VALUES (9, 9, sha256('x'))",
        [true, false, false, false, false, false],
    ),
    ("UPDATE sexton.audit_chain SET position = 0", [true, false, false, false, false, false]),
    ("DELETE FROM sexton.audit_unsealed", [true, false, false, false, false, false]),
    ("SELECT sexton.seal_operator_actions(1)", [true, true, false, false, false, false]),
    (
        "SELECT sexton.delete_old_operator_actions(now(), NULL, 1)",
        [true, true, false, false, false, false],
    ),
    ("DELETE FROM sexton._sqlx_migrations", [true, false, false, false, false, false]),
    ("SELECT sexton.index_failure()", [true, false, false, false, false, false]),
    ("ALTER TABLE sexton.jobs ADD COLUMN hat text", [true, false, false, false, false, false]),
    ("CREATE TABLE sexton.hats ()", [true, false, false, false, false, false]),
    ("DROP SCHEMA sexton CASCADE", [true, false, false, false, false, false]),
];

/// What in the schema another role than the owner owns.
async fn of_others(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'sexton'::regnamespace
         AND pg_get_userbyid(relowner) <> 'sexton_owner'",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn sql(pool: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(pool).await.unwrap();
}

/// Whether the server lets the role run it; an error of another kind comes after that question.
async fn may(connection: &mut PgConnection, role: &str, statement: &str) -> bool {
    let text = format!("BEGIN; SET LOCAL ROLE {role}; {statement}");
    let outcome = sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *connection).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.unwrap();
    let code = outcome.err().and_then(|error| {
        error.as_database_error().and_then(DatabaseError::code).map(std::borrow::Cow::into_owned)
    });
    code.as_deref() != Some("42501")
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says_and_nothing_else() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let db = TestDatabase::create_on(server.url()).await.unwrap();
    let expected: Vec<_> = PlatformRole::ALL.map(|role| role.name(DEFAULT_PREFIX)).to_vec();
    for _ in 0..2 {
        assert_eq!(grant_roles(db.store(), DEFAULT_PREFIX).await.unwrap(), expected);
    }
    sql(db.pool(), "CREATE ROLE stranger NOLOGIN").await;
    let roles: Vec<_> = expected.into_iter().chain(["stranger".to_owned()]).collect();
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    for (statement, allowed) in MATRIX {
        for (role, allowed) in roles.iter().zip(allowed) {
            let may = may(&mut connection, role, statement).await;
            assert_eq!(may, *allowed, "{role}: {statement}");
        }
    }
    // Two platforms on a server have roles of their own.
    let other = TestDatabase::create_on(server.url()).await.unwrap();
    grant_roles(other.store(), "billing").await.unwrap();
    let mut connection = PgConnection::connect(other.url()).await.unwrap();
    for (role, allowed) in [("billing_service", true), ("sexton_service", false)] {
        let looks = "SELECT count(*) FROM sexton.executions";
        assert_eq!(may(&mut connection, role, looks).await, allowed, "{role}");
    }
}

/// The URL of the same database for another log-in.
fn as_login(url: &str, login: &str) -> String {
    let (_, place) = url.split_once('@').unwrap();
    format!("postgres://{login}:secret@{place}")
}

fn open(url: &str) -> Store {
    Store::open(&sexton_store::StoreOptions::new(url, "test")).unwrap()
}

#[tokio::test]
async fn roles_are_set_up_without_a_superuser_and_a_missing_right_is_named_with_its_remedy() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let db = TestDatabase::create_empty_on(server.url(), "of_an_application").await.unwrap();
    sql(
        db.pool(),
        "CREATE ROLE dan LOGIN PASSWORD 'secret'; CREATE ROLE eve LOGIN PASSWORD 'secret' CREATEROLE;
         CREATE ROLE mia LOGIN PASSWORD 'secret'; ALTER DATABASE of_an_application OWNER TO dan",
    )
    .await;
    let [dan, eve, mia] = ["dan", "eve", "mia"].map(|login| open(&as_login(db.url(), login)));
    // The application's own role migrates, and may create no role.
    let refused = mia.migrate().await.unwrap_err().to_string();
    assert!(refused.contains("CREATE SCHEMA sexton AUTHORIZATION mia"), "{refused}");
    dan.migrate().await.unwrap();
    let refused = grant_roles(&dan, DEFAULT_PREFIX).await.unwrap_err();
    let refusal = refused.to_string();
    assert!(matches!(refused, GrantError::MayNotCreate { .. }), "{refusal}");
    assert!(
        refusal.contains("CREATE ROLE sexton_owner NOLOGIN; CREATE ROLE sexton_service"),
        "{refusal}"
    );
    // One that may is not the owner.
    let refused = grant_roles(&eve, DEFAULT_PREFIX).await.unwrap_err();
    assert!(matches!(refused, GrantError::NotOwner { .. }), "{refused}");
    // Somebody with CREATEROLE runs what the message says.
    let (_, statements) = refusal.split_once("run: ").unwrap();
    let (statements, _) = statements.split_once(" and then").unwrap();
    sql(eve.pool(), &statements.replace('…', "dan")).await;
    grant_roles(&dan, DEFAULT_PREFIX).await.unwrap();
    grant_roles(&dan, DEFAULT_PREFIX).await.unwrap();
    assert_eq!(of_others(db.pool()).await, Vec::<String>::new(), "what is there is handed over");
    // From now on every member of the owner migrates, and what is created belongs to the role.
    sql(db.pool(), "GRANT sexton_owner TO mia; DROP SCHEMA sexton CASCADE").await;
    sql(db.pool(), "CREATE SCHEMA sexton AUTHORIZATION sexton_owner").await;
    mia.migrate().await.unwrap();
    assert_eq!(of_others(db.pool()).await, Vec::<String>::new());
    let refused = grant_roles(&mia, "Sexton; --").await.unwrap_err();
    assert!(matches!(refused, GrantError::Prefix(_)), "{refused}");
    for store in [dan, eve, mia] {
        store.close().await;
    }
}

#[tokio::test]
async fn an_operator_of_the_database_manages_accounts_and_reads_no_hash_of_a_password() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let db = TestDatabase::create_on(server.url()).await.unwrap();
    grant_roles(db.store(), DEFAULT_PREFIX).await.unwrap();
    sql(db.pool(), "CREATE ROLE ann LOGIN PASSWORD 'secret' IN ROLE sexton_operator").await;
    let store = open(&as_login(db.url(), "ann"));
    let by = AuditContext { actor: "ann", reason: None };
    let hash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaA";
    let grant = &Role::Viewer.into();
    let account = NewAccount { name: "bob", password_hash: hash, grant };
    let created = accounts::create(&store, &account, by, None).await.unwrap();
    assert_eq!(created, AccountCreation::Created);
    for change in [
        AccountChange::Role(Role::Admin, &ScopeChange::Keep),
        AccountChange::Password(hash),
        AccountChange::Disable,
    ] {
        let outcome = accounts::change(&store, "bob", change, by, None).await.unwrap();
        assert_eq!(outcome, ChangeOutcome::Changed { ended_sessions: 0 }, "{change:?}");
    }
    accounts::enable(&store, "bob", by, None).await.unwrap();
    assert_eq!(accounts::list(&store, 10).await.unwrap()[0].role, "admin");
    assert!(accounts::is_any(&store).await.unwrap());
    let refused = accounts::read_password_hash(&store, "bob").await.unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
    let missing = sexton_store::doctor::read_privileges(&store).await.unwrap().missing;
    assert!(missing.is_empty(), "{missing:?}");
    store.close().await;
}
