//! The role of the programs: it does all that they do, and cannot change what the audit says.

use sexton_store::grants::{GrantError, grant};
use sexton_store::operator;
use sexton_store::{Store, StoreOptions};
use uuid::Uuid;

use super::{BY, Fixture};

#[tokio::test]
async fn a_granted_role_works_and_cannot_change_the_audit_with_or_without_the_trigger() {
    let f = Fixture::new().await;
    let role = format!("sexton_{}", Uuid::new_v4().simple());
    assert!(matches!(grant(f.store(), &role).await, Err(GrantError::Missing(_))));
    let create = format!("CREATE ROLE {role} LOGIN PASSWORD 'secret'");
    sqlx::query(sqlx::AssertSqlSafe(create)).execute(f.db.pool()).await.unwrap();
    grant(f.store(), &role).await.unwrap();
    grant(f.store(), &role).await.unwrap();
    // The owner could switch the trigger off; what is granted holds without it.
    f.sql("ALTER TABLE sexton.operator_actions DISABLE TRIGGER operator_actions_append_only").await;
    let id = f.failed(1).await;

    let server = f.db.url().split_once("://").unwrap().1;
    let server = server.split_once('@').map_or(server, |(_, server)| server);
    let url = format!("postgres://{role}:secret@{server}");
    let store = Store::open(&StoreOptions::new(url, "test")).unwrap();
    store.check_schema().await.unwrap();
    operator::discard(&store, id, BY, None).await.unwrap();
    operator::restore(&store, id, BY, None).await.unwrap();
    assert_eq!(operator::list_by_execution(&store, id.get()).await.unwrap().len(), 2);
    assert_eq!(operator::chain::seal(&store, 10).await.unwrap().actions, 2);
    for statement in [
        "UPDATE sexton.operator_actions SET actor = 'nobody'",
        "DELETE FROM sexton.operator_actions",
        "TRUNCATE sexton.operator_actions",
        "ALTER TABLE sexton.operator_actions DISABLE TRIGGER USER",
        "DROP TABLE sexton.operator_actions",
        "INSERT INTO sexton.audit_seals (position, action_id, hash) VALUES (1, 1, sha256('x'))",
        "DELETE FROM sexton.audit_seals",
        "UPDATE sexton.audit_chain SET position = 0",
        "DELETE FROM sexton.audit_unsealed",
        "DELETE FROM sexton._sqlx_migrations",
    ] {
        let error = sqlx::query(statement).execute(store.pool()).await.unwrap_err().to_string();
        let refused = error.contains("permission denied") || error.contains("must be owner");
        assert!(refused, "{statement}: {error}");
    }
    store.close().await;
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(f.db.pool()).await.unwrap();
}

#[tokio::test]
async fn grant_is_refused_for_the_owner_of_the_schema() {
    let f = Fixture::new().await;
    let owner: String =
        sqlx::query_scalar("SELECT current_user::text").fetch_one(f.db.pool()).await.unwrap();
    assert!(matches!(grant(f.store(), &owner).await, Err(GrantError::Owner(_))));
}

/// A member of a role can become that role.
#[tokio::test]
async fn grant_is_refused_for_a_member_of_a_role_that_may_change_the_audit() {
    let f = Fixture::new().await;
    let name = |what: &str| format!("sexton_{what}_{}", Uuid::new_v4().simple());
    let (role, between, writer) = (name("role"), name("between"), name("writer"));
    let owner: String =
        sqlx::query_scalar("SELECT current_user::text").fetch_one(f.db.pool()).await.unwrap();
    for role in [&role, &between, &writer] {
        run(&f, format!("CREATE ROLE {role} NOINHERIT")).await;
    }
    run(&f, format!("GRANT UPDATE ON sexton.operator_actions TO {writer}")).await;
    run(&f, format!("GRANT {between} TO {role}")).await;
    grant(f.store(), &role).await.unwrap();
    for of in ["pg_write_all_data", &owner, &writer] {
        run(&f, format!("GRANT \"{of}\" TO {between}")).await;
        let refused = grant(f.store(), &role).await.unwrap_err();
        let refusal = refused.to_string();
        assert!(matches!(refused, GrantError::Member { of: by, .. } if by == *of), "{refusal}");
        assert!(refusal.contains("REVOKE"), "{refusal}");
        run(&f, format!("REVOKE \"{of}\" FROM {between}")).await;
    }
    grant(f.store(), &role).await.unwrap();
    run(&f, format!("DROP OWNED BY {role}, {between}, {writer}")).await;
    run(&f, format!("DROP ROLE {role}, {between}, {writer}")).await;
}

async fn run(f: &Fixture, statement: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(f.db.pool()).await.unwrap();
}
