//! The platform's roles, and what each of them may do.
//!
//! They have no log-in: the log-ins of programs and people become members (`GRANT sexton_service TO …`). Roles belong to
//! the whole server, so their names begin with a prefix; two platforms on a server take two.
//!
//! The owner owns the schema and everything in it. A log-in that migrates is a member of it, and
//! [`crate::schema::MigrationSession`] becomes it first, so that what a later migration creates has the same owner.

use sqlx::{Postgres, Row as _, Transaction};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::schema::grants::{
    END_FLOW_GRANT, GrantError, SERVICE_GRANTS, TEMPLATES_GRANT, refuse_writers_of_the_audit, run,
    run_formatted,
};
use crate::{Store, StoreError};

/// What the roles' names begin with, unless somebody says otherwise.
pub const DEFAULT_PREFIX: &str = "sexton";
/// The longest prefix, in bytes: PostgreSQL cuts names after 63.
pub const MAX_PREFIX_BYTES: usize = 40;

/// One of the platform's roles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlatformRole {
    /// Owns the schema; migrates.
    Owner,
    /// Schedulers and workers.
    Service,
    /// People who use `sexton` to act: jobs, requeues, bulks.
    Operator,
    /// Applications that enqueue, or guard their jobs, by functions alone.
    Producer,
    /// People who use `sexton` to look.
    Viewer,
}

impl PlatformRole {
    /// All of them, in the order in which they are set up.
    pub const ALL: [Self; 5] =
        [Self::Owner, Self::Service, Self::Operator, Self::Producer, Self::Viewer];

    /// Its name among the roles of `prefix`.
    pub fn name(self, prefix: &str) -> String {
        format!("{prefix}_{}", self.suffix())
    }

    /// Its name behind the prefix.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Service => "service",
            Self::Operator => "operator",
            Self::Producer => "producer",
            Self::Viewer => "viewer",
        }
    }

    /// The tables that it writes, with the privileges, beyond those that the service needs.
    pub(crate) const fn writes(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Operator => &OPERATOR_WRITES,
            Self::Owner | Self::Service | Self::Producer | Self::Viewer => &[],
        }
    }

    /// Statements that give it its privileges; `%1$I` is its name. Repeated, they change nothing.
    fn grants(self) -> Vec<String> {
        let fixed: &[&str] = match self {
            Self::Owner => &[],
            Self::Service => &SERVICE_GRANTS,
            Self::Producer => &["GRANT USAGE ON SCHEMA sexton TO %1$I"],
            Self::Operator | Self::Viewer => &VIEWER_GRANTS,
        };
        let calls = matches!(self, Self::Service | Self::Operator | Self::Producer);
        let functions = CALLERS_FUNCTIONS.iter().filter(|_| calls);
        let writes = self.writes().iter().map(|(table, privileges)| {
            format!("GRANT {} ON sexton.{table} TO %1$I", privileges.join(", "))
        });
        let flows = (self == Self::Operator).then(|| END_FLOW_GRANT.to_owned());
        let functions = functions
            .map(|function| format!("GRANT EXECUTE ON FUNCTION sexton.{function} TO %1$I"));
        fixed
            .iter()
            .map(|&statement| statement.to_owned())
            .chain(writes)
            .chain(functions)
            .chain(flows)
            .collect()
    }
}

/// The functions for callers in other programs. They run with the owner's rights, and check what they are given.
const CALLERS_FUNCTIONS: [&str; 12] = [
    "enqueue(text, jsonb, text, timestamptz, interval, text, text, jsonb)",
    "enqueue_many(text, jsonb)",
    "cancel(text, text, text)",
    "execution(uuid)",
    "execution(text, text)",
    "demand(text)",
    "flow(jsonb)",
    "cancel_flow(uuid, text)",
    "functions_version()",
    "guard_try(bigint, timestamptz)",
    "guard_try_xact(bigint, timestamptz)",
    "guard_done(bigint, timestamptz, text, text)",
];

const VIEWER_GRANTS: [&str; 5] = [
    "GRANT USAGE ON SCHEMA sexton TO %1$I",
    "GRANT SELECT ON ALL TABLES IN SCHEMA sexton TO %1$I",
    // Not the hashes of passwords: who has them can try passwords without anybody noticing.
    "REVOKE SELECT ON sexton.accounts FROM %1$I",
    "GRANT SELECT (name, password_set_at, role, only_jobs, created_at, created_by, disabled_at, disabled_by, last_log_in_at)
     ON sexton.accounts TO %1$I",
    TEMPLATES_GRANT,
];

/// What the commands of `sexton` write, and what the triggers of those tables write then with the caller's rights. A claim,
/// an attempt with its end, and what retention has done are the programs' alone.
const OPERATOR_WRITES: [(&str, &[&str]); 30] = [
    ("operator_actions", &["INSERT"]),
    ("job_revisions", &["INSERT"]),
    ("gaps", &["INSERT"]),
    ("failure_changes", &["INSERT"]),
    ("jobs", &["INSERT", "UPDATE"]),
    ("executions", &["INSERT", "UPDATE"]),
    ("failure_groups", &["INSERT", "UPDATE"]),
    ("lock_key_ranges", &["INSERT", "UPDATE", "DELETE"]),
    ("bulks", &["INSERT", "UPDATE"]),
    ("bulk_items", &["INSERT", "UPDATE"]),
    ("failures", &["INSERT", "UPDATE", "DELETE"]),
    ("channels", &["INSERT", "UPDATE", "DELETE"]),
    ("routes", &["INSERT", "DELETE"]),
    ("checks", &["INSERT", "UPDATE"]),
    ("ping_keys", &["INSERT", "DELETE"]),
    ("tokens", &["INSERT", "UPDATE"]),
    ("accounts", &["INSERT", "UPDATE"]),
    // A change of an account ends them; only `sexton serve` starts one.
    ("sessions", &["UPDATE"]),
    ("approval_rules", &["INSERT", "UPDATE", "DELETE"]),
    ("approval_requests", &["INSERT", "UPDATE"]),
    ("approvals", &["INSERT"]),
    ("incidents", &["UPDATE"]),
    ("incident_events", &["INSERT", "DELETE"]),
    ("notifications", &["INSERT", "UPDATE"]),
    ("holds", &["UPDATE"]),
    ("lock_rows", &["UPDATE"]),
    ("unknown_messages", &["UPDATE"]),
    ("instances", &["UPDATE"]),
    // A backfill shares retention's row, for which PostgreSQL asks for the right to change a column; this one has one
    // value.
    ("retention", &["UPDATE (one)"]),
    // A release of held firings deletes them.
    ("held_firings", &["DELETE"]),
];

/// Creates the roles that are missing and gives each its privileges; the owner gets what is in the schema. One
/// transaction; repeated, it changes nothing. To be repeated after each migration, for what is new. Returns the names.
///
/// Needs no superuser: the schema's owner and its members may grant. To create the roles and to hand
/// the schema over it also needs CREATEROLE, or membership in an owner role that is there, and CREATE on the database.
///
/// # Errors
///
/// [`GrantError`]; nothing was changed.
pub async fn grant_roles(store: &Store, prefix: &str) -> Result<Vec<String>, GrantError> {
    if !is_prefix(prefix) {
        return Err(GrantError::Prefix(prefix.to_owned()));
    }
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    // Roles are the server's, so two databases may create them at once; the key is the same in none of them.
    let names = PlatformRole::ALL.map(|role| role.name(prefix));
    create_missing(&mut tx, &names).await?;
    hand_over(&mut tx, &names[0]).await?;
    for role in PlatformRole::ALL {
        let name = role.name(prefix);
        if role != PlatformRole::Owner {
            refuse_writers_of_the_audit(&mut tx, &name).await?;
        }
        for statement in role.grants() {
            run_formatted(&mut tx, &statement, &name).await?;
        }
    }
    // Nobody else executes anything: PostgreSQL lets everybody, by default.
    run(&mut tx, "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sexton FROM PUBLIC".to_owned()).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(names.to_vec())
}

fn is_prefix(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    text.len() <= MAX_PREFIX_BYTES
        && text.bytes().all(fits)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.starts_with("pg_")
}

async fn create_missing(
    tx: &mut Transaction<'static, Postgres>,
    names: &[String],
) -> Result<(), GrantError> {
    // Not checked at compile time, like everything that grants: names cannot be parameters.
    let row = sqlx::query(
        "-- missing_roles
        SELECT ARRAY(SELECT n FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = n))
                   AS missing,
               r.rolsuper OR r.rolcreaterole AS may_create, r.rolname::text AS role
        FROM pg_roles r WHERE r.rolname = current_user",
    )
    .bind(names)
    .fetch_one(WithTimeout(&mut **tx))
    .await
    .map_err(StoreError::from)?;
    let missing: Vec<String> = row.try_get("missing").map_err(StoreError::from)?;
    if missing.is_empty() {
        return Ok(());
    }
    if !row.try_get::<bool, _>("may_create").map_err(StoreError::from)? {
        let create: Vec<_> =
            missing.iter().map(|name| format!("CREATE ROLE {name} NOLOGIN")).collect();
        let role = row.try_get("role").map_err(StoreError::from)?;
        return Err(GrantError::MayNotCreate {
            role,
            statements: format!("{}; GRANT {} TO …", create.join("; "), names[0]),
        });
    }
    for name in missing {
        // Another database of the server may have created it in between.
        let create = format!(
            "DO $do$ BEGIN CREATE ROLE {name} NOLOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $do$"
        );
        run(tx, create).await?;
    }
    Ok(())
}

/// Makes `owner` the owner of the schema and of everything in it.
async fn hand_over(tx: &mut Transaction<'static, Postgres>, owner: &str) -> Result<(), GrantError> {
    let row = sqlx::query(
        "-- schema_owner
        SELECT pg_get_userbyid(nspowner)::text AS holder, current_user::text AS role,
               pg_has_role(current_user, nspowner, 'MEMBER') AS may_grant,
               pg_has_role(current_user, $1::name, 'MEMBER') AS is_member,
               has_database_privilege(current_database(), 'CREATE') AS may_create,
               quote_ident(current_database()) AS database
        FROM pg_namespace WHERE nspname = 'sexton'",
    )
    .bind(owner)
    .fetch_one(WithTimeout(&mut **tx))
    .await
    .map_err(StoreError::from)?;
    let text = |column: &str| row.try_get::<String, _>(column).map_err(StoreError::from);
    let flag = |column: &str| row.try_get::<bool, _>(column).map_err(StoreError::from);
    if !flag("may_grant")? {
        return Err(GrantError::NotOwner { role: text("role")?, owner: text("holder")? });
    }
    if !flag("is_member")? {
        run(tx, format!("GRANT {owner} TO current_user")).await?;
    }
    let statements: Vec<String> = sqlx::query_scalar(
        "-- objects_of_others
        WITH o AS (SELECT oid FROM pg_roles WHERE rolname = $1)
        SELECT format('ALTER SCHEMA sexton OWNER TO %I', $1) FROM pg_namespace, o
        WHERE nspname = 'sexton' AND nspowner <> o.oid
        UNION ALL
        SELECT format('ALTER TABLE sexton.%I OWNER TO %I', relname, $1) FROM pg_class, o
        WHERE relnamespace = to_regnamespace('sexton') AND relkind IN ('r', 'v') AND relowner <> o.oid
        UNION ALL
        SELECT format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, $1) FROM pg_proc p, o
        WHERE pronamespace = to_regnamespace('sexton') AND proowner <> o.oid",
    )
    .bind(owner)
    .fetch_all(WithTimeout(&mut **tx))
    .await
    .map_err(StoreError::from)?;
    if !statements.is_empty() && !flag("may_create")? {
        return Err(GrantError::NoCreate { role: text("role")?, database: text("database")? });
    }
    // Rather not at all than behind a long reader, with everybody behind it.
    run(tx, "SET LOCAL lock_timeout = '3s'".to_owned()).await?;
    for statement in statements {
        run(tx, statement).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_needs_no_quotes_and_leaves_room_for_the_suffix() {
        let long = "a".repeat(MAX_PREFIX_BYTES + 1);
        for (text, fits) in [
            ("sexton", true),
            ("billing_2", true),
            ("", false),
            ("2billing", false),
            ("Billing", false),
            ("a; drop role b", false),
            ("pg_a", false),
            (&long, false),
        ] {
            assert_eq!(is_prefix(text), fits, "{text}");
        }
    }
}
