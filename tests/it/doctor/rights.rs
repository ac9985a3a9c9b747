//! A role that may not do what it must.

use sexton_console::doctor::Code;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::{Patient, codes, evidence};

/// A role of the server, with what `grants` gives it; dropped with [`Role::end`].
struct Role {
    name: String,
    url: String,
}

impl Role {
    async fn new(patient: &Patient, grants: &[&str]) -> Self {
        let name = format!("doctor_{}", &Uuid::new_v4().simple().to_string()[..12]);
        patient.sql(&format!("CREATE ROLE {name} LOGIN PASSWORD 'a-password'")).await;
        for grant in grants.iter().flat_map(|grants| grants.split(';')) {
            patient.sql(&grant.replace("ROLE", &name)).await;
        }
        let url = patient.platform.database_url();
        let (scheme, rest) = url.split_once("://").unwrap();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        Self { url: format!("{scheme}://{name}:a-password@{place}"), name }
    }

    async fn end(self, patient: &Patient) {
        patient.sql(&format!("DROP OWNED BY {}", self.name)).await;
        patient.sql(&format!("DROP ROLE {}", self.name)).await;
    }
}

const ALL: &str = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ROLE;
    GRANT EXECUTE ON FUNCTION forget_operator_actions(timestamptz, timestamptz, integer) TO ROLE";

#[tokio::test]
async fn doctor_finds_database_privileges() {
    let patient = Patient::new().await;
    let role = Role::new(&patient, &[ALL, "REVOKE UPDATE ON gaps, executions FROM ROLE"]).await;
    let found = patient.has_with(&[("DATABASE_URL", &role.url)], Code::DatabasePrivileges).await;
    let told = evidence(&found);
    assert!(told.contains("executions (UPDATE), gaps (UPDATE)"), "{told}");
    role.end(&patient).await;
    let unable = "REVOKE EXECUTE ON FUNCTION forget_operator_actions(timestamptz, timestamptz, integer) FROM ROLE";
    let role = Role::new(&patient, &[ALL, unable]).await;
    let found = patient.has_with(&[("DATABASE_URL", &role.url)], Code::DatabasePrivileges).await;
    let told = evidence(&found);
    assert!(told.contains("forget_operator_actions (EXECUTE)"), "{told}");
    role.end(&patient).await;
    // The audit is append-only: nobody needs more there than to read and to add.
    let role = Role::new(&patient, &[ALL, "REVOKE UPDATE, DELETE ON operator_actions FROM ROLE"]);
    let role = role.await;
    let (output, answer) = patient.run(&[("DATABASE_URL", &role.url)], &[]).await;
    assert!(!codes(&answer).contains(&"database_privileges".to_owned()), "{output}");
    role.end(&patient).await;
}

#[tokio::test]
async fn doctor_finds_rows_unread() {
    let patient = Patient::new().await;
    let role = Role::new(&patient, &[ALL, "REVOKE SELECT ON instances FROM ROLE"]).await;
    let found = patient.has_with(&[("DATABASE_URL", &role.url)], Code::RowsUnread).await;
    assert!(evidence(&found).contains("instances"), "{found}");
    role.end(&patient).await;
}

/// Superusers may notify whatever is revoked, so it is looked for as somebody else.
#[tokio::test]
async fn doctor_finds_database_deaf() {
    let patient = Patient::new().await;
    let role = Role::new(&patient, &[ALL]).await;
    let env = [("DATABASE_URL", &*role.url)];
    let (output, answer) = patient.run(&env, &[]).await;
    assert!(!codes(&answer).contains(&"database_deaf".to_owned()), "{output}");
    patient.sql("REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC").await;
    let mut other = PgConnection::connect(&role.url).await.unwrap();
    let refused = sqlx::query("SELECT pg_notify('x', '')").execute(&mut other).await;
    assert!(refused.is_err(), "it may not be told");
    patient.has_with(&env, Code::DatabaseDeaf).await;
    drop(other);
    role.end(&patient).await;
}
