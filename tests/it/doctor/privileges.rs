//! A role that may not do what it must.

use sexton_operations::doctor::Code;
use sexton_store::roles::{PlatformRole, grant_roles};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::{DoctorFixture, codes, evidence};

/// A role of the server, with what `grants` gives it; dropped with [`Role::end`].
struct Role {
    name: String,
    url: String,
}

impl Role {
    async fn new(fixture: &DoctorFixture, grants: &[&str]) -> Self {
        let name = format!("doctor_{}", &Uuid::new_v4().simple().to_string()[..12]);
        fixture.sql(&format!("CREATE ROLE {name} LOGIN PASSWORD 'a-password'")).await;
        for grant in grants.iter().flat_map(|grants| grants.split(';')) {
            fixture.sql(&grant.replace("ROLE", &name)).await;
        }
        let url = fixture.platform.database_url();
        let (scheme, rest) = url.split_once("://").unwrap();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        Self { url: format!("{scheme}://{name}:a-password@{place}"), name }
    }

    async fn end(self, fixture: &DoctorFixture) {
        fixture.sql(&format!("DROP OWNED BY {}", self.name)).await;
        fixture.sql(&format!("DROP ROLE {}", self.name)).await;
    }
}

const ALL: &str = "GRANT USAGE ON SCHEMA sexton TO ROLE;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sexton TO ROLE;
    GRANT EXECUTE ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) TO ROLE;
    GRANT EXECUTE ON FUNCTION sexton.seal_operator_actions(integer) TO ROLE";

#[tokio::test]
async fn doctor_finds_database_privileges() {
    let fixture = DoctorFixture::new().await;
    let role =
        Role::new(&fixture, &[ALL, "REVOKE UPDATE ON sexton.gaps, sexton.executions FROM ROLE"])
            .await;
    let found = fixture.has_with(&[("DATABASE_URL", &role.url)], Code::DatabasePrivileges).await;
    let missing = evidence(&found);
    assert!(missing.contains("executions (UPDATE), gaps (UPDATE)"), "{missing}");
    role.end(&fixture).await;
    let unable = "REVOKE EXECUTE ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) FROM ROLE";
    let role = Role::new(&fixture, &[ALL, unable]).await;
    let found = fixture.has_with(&[("DATABASE_URL", &role.url)], Code::DatabasePrivileges).await;
    let missing = evidence(&found);
    assert!(missing.contains("delete_old_operator_actions (EXECUTE)"), "{missing}");
    role.end(&fixture).await;
    // The audit is append-only: nobody needs more there than to read and to add.
    let role =
        Role::new(&fixture, &[ALL, "REVOKE UPDATE, DELETE ON sexton.operator_actions FROM ROLE; REVOKE INSERT, UPDATE, DELETE ON sexton.audit_seals,
     sexton.audit_unsealed, sexton.audit_chain FROM ROLE"]);
    let role = role.await;
    let (output, answer) = fixture.run(&[("DATABASE_URL", &role.url)], &[]).await;
    assert!(!codes(&answer).contains(&"database_privileges".to_owned()), "{output}");
    role.end(&fixture).await;
}

/// The database answers, so the finding names the missing privileges and the command that grants them.
#[tokio::test]
async fn a_role_without_the_schema_reads_what_it_lacks_and_not_that_the_database_is_away() {
    let fixture = DoctorFixture::new().await;
    let tables = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sexton TO ROLE";
    for (grants, lacks) in [
        (&[tables][..], "schema sexton (USAGE)"),
        (&[ALL, "REVOKE SELECT ON sexton._sqlx_migrations FROM ROLE"], "_sqlx_migrations (SELECT)"),
    ] {
        let role = Role::new(&fixture, grants).await;
        let (output, answer) = fixture.run(&[("DATABASE_URL", &role.url)], &[]).await;
        let found = codes(&answer);
        assert!(!found.contains(&"database_unreachable".to_owned()), "{output}");
        let found =
            fixture.has_with(&[("DATABASE_URL", &role.url)], Code::DatabasePrivileges).await;
        assert!(evidence(&found).contains(lacks), "{found}");
        assert!(found.to_string().contains("sexton migrate --grant"), "{found}");
        role.end(&fixture).await;
    }
}

/// Members of the platform's roles are judged by what those do: nothing is missing that they do not need, and what
/// they need is looked for.
#[tokio::test]
async fn members_of_the_platforms_roles_lack_only_what_those_roles_need() {
    let fixture = DoctorFixture::new().await;
    let prefix = format!("doctor_{}", &Uuid::new_v4().simple().to_string()[..12]);
    let of = |role: PlatformRole| role.name(&prefix);
    let store = fixture.platform.store();
    grant_roles(store, &prefix).await.unwrap();
    for (role, revoke, lacks) in [
        (PlatformRole::Service, "REVOKE UPDATE ON sexton.attempts FROM ROLE", "attempts (UPDATE)"),
        (PlatformRole::Operator, "REVOKE UPDATE ON sexton.jobs FROM ROLE", "jobs (UPDATE)"),
        (
            PlatformRole::Operator,
            "REVOKE UPDATE (one) ON sexton.retention FROM ROLE",
            "retention (UPDATE (one))",
        ),
        (PlatformRole::Viewer, "REVOKE SELECT ON sexton.gaps FROM ROLE", "gaps (SELECT)"),
        // What a migration brings, until the grants are repeated.
        (
            PlatformRole::Operator,
            "REVOKE ALL ON sexton.all_attempts FROM ROLE",
            "all_attempts (SELECT)",
        ),
        (
            PlatformRole::Producer,
            "REVOKE USAGE ON SCHEMA sexton FROM ROLE",
            "schema sexton (USAGE)",
        ),
    ] {
        let name = of(role);
        let member = Role::new(&fixture, &[&format!("GRANT {name} TO ROLE")]).await;
        let env = [("DATABASE_URL", &*member.url)];
        let (output, answer) = fixture.run(&env, &[]).await;
        for false_finding in ["database_privileges", "database_unreachable"] {
            assert!(!codes(&answer).contains(&false_finding.to_owned()), "{role:?}: {output}");
        }
        fixture.sql(&revoke.replace("ROLE", &name)).await;
        let found = fixture.has_with(&env, Code::DatabasePrivileges).await;
        assert!(evidence(&found).contains(&format!("in {name}, lacks: {lacks}")), "{found}");
        grant_roles(store, &prefix).await.unwrap();
        member.end(&fixture).await;
    }
    fixture.sql(&format!("REASSIGN OWNED BY {} TO CURRENT_USER", of(PlatformRole::Owner))).await;
    for role in PlatformRole::ALL {
        fixture.sql(&format!("DROP OWNED BY {}", of(role))).await;
        fixture.sql(&format!("DROP ROLE {}", of(role))).await;
    }
}

#[tokio::test]
async fn doctor_finds_rows_unread() {
    let fixture = DoctorFixture::new().await;
    let role = Role::new(&fixture, &[ALL, "REVOKE SELECT ON sexton.instances FROM ROLE"]).await;
    let found = fixture.has_with(&[("DATABASE_URL", &role.url)], Code::RowsUnread).await;
    assert!(evidence(&found).contains("instances"), "{found}");
    role.end(&fixture).await;
}

/// Superusers may notify whatever is revoked, so it is looked for as somebody else.
#[tokio::test]
async fn doctor_finds_database_deaf() {
    let fixture = DoctorFixture::new().await;
    let role = Role::new(&fixture, &[ALL]).await;
    let env = [("DATABASE_URL", &*role.url)];
    let (output, answer) = fixture.run(&env, &[]).await;
    assert!(!codes(&answer).contains(&"database_deaf".to_owned()), "{output}");
    fixture.sql("REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC").await;
    let mut other = PgConnection::connect(&role.url).await.unwrap();
    let refused = sqlx::query("SELECT pg_notify('x', '')").execute(&mut other).await;
    assert!(refused.is_err(), "the role has no right to it");
    fixture.has_with(&env, Code::DatabaseDeaf).await;
    drop(other);
    role.end(&fixture).await;
}
