//! The privileges of the programs' role: everything that they need, and nothing that they must never do.
//!
//! The role that migrates owns the tables, and could drop the trigger that keeps the audit append-only. The programs
//! need not run as that role: [`grant`] gives another one what they need, without the right to change or remove rows
//! of the audit. PostgreSQL refuses that before any trigger runs. The audit's retention is a function of the owner,
//! which removes nothing younger than 30 days; the role may call it.

use sqlx::{Postgres, Row as _, Transaction};

use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::{Store, StoreError};

/// The tables of the audit: of the first a program only appends and reads, of the others it only reads.
const AUDIT_TABLES: [&str; 4] = [
    "sexton.operator_actions",
    "sexton.audit_seals",
    "sexton.audit_unsealed",
    "sexton.audit_chain",
];

/// Programs and commands that make executions, or show what templates become, call these; they read no table.
pub(crate) const TEMPLATES_GRANT: &str = "GRANT EXECUTE ON FUNCTION \
    sexton.template_values(text, text, text, timestamptz, timestamptz, jsonb), \
    sexton.format_instant(timestamptz, text, text), sexton.filled_text(text, jsonb), sexton.filled(jsonb, jsonb), \
    sexton.filled_key(text, jsonb), sexton.filled_execution(jsonb, jsonb, text, jsonb) TO %1$I";
/// Workers and schedulers call these, which run with the owner's rights.
const FLOWS_GRANT: &str =
    "GRANT EXECUTE ON FUNCTION sexton.lock_flow(uuid), sexton.make_flow_members(integer) TO %1$I";
/// Commands and programs that end members call these, which run with the owner's rights.
pub(crate) const END_FLOW_GRANT: &str = "GRANT EXECUTE ON FUNCTION sexton.end_flow(uuid, timestamptz), sexton.wait_for_flow_of(uuid) TO %1$I";

/// What the programs need; `%1$I` is their role. Repeated, the statements change nothing.
pub(crate) const SERVICE_GRANTS: [&str; 14] = [
    TEMPLATES_GRANT,
    FLOWS_GRANT,
    END_FLOW_GRANT,
    "GRANT USAGE ON SCHEMA sexton TO %1$I",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sexton TO %1$I",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA sexton TO %1$I",
    "REVOKE ALL ON sexton.operator_actions FROM %1$I, PUBLIC",
    "GRANT SELECT, INSERT ON sexton.operator_actions TO %1$I",
    "REVOKE ALL ON sexton.audit_seals, sexton.audit_unsealed, sexton.audit_chain FROM %1$I, PUBLIC",
    "GRANT SELECT ON sexton.audit_seals, sexton.audit_unsealed, sexton.audit_chain TO %1$I",
    "GRANT EXECUTE ON FUNCTION sexton.seal_operator_actions(integer) TO %1$I",
    "REVOKE ALL ON sexton._sqlx_migrations FROM %1$I, PUBLIC",
    "GRANT SELECT ON sexton._sqlx_migrations TO %1$I",
    "GRANT EXECUTE ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) TO %1$I",
];

/// Why nothing was granted.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The role does not exist.
    #[error("there is no role {0:?}; create it first: CREATE ROLE … LOGIN PASSWORD …")]
    Missing(String),
    /// The role owns the tables or is a superuser, so grants do not limit it.
    #[error(
        "the role {0:?} owns the tables or is a superuser, so nothing can be kept from it; give the \
         programs a role of their own"
    )]
    Owner(String),
    /// The role may write to every table, or become a role that may.
    #[error(
        "the role {role:?} is a member of {of:?}, which may change what the audit says, whatever is granted \
         to {role:?}; take it out: REVOKE {of} FROM {role}, or give the programs another role"
    )]
    Member {
        /// The role.
        role: String,
        /// The role of which it is a member.
        of: String,
    },
    /// Some of the platform's roles are missing, and the current role may create none.
    #[error(
        "the role {role:?} may not create roles; as a superuser, or a role with CREATEROLE, run: {statements} and then \
         `sexton migrate --grant` again"
    )]
    MayNotCreate {
        /// Who asked.
        role: String,
        /// What helps.
        statements: String,
    },
    /// Only its owner grants what is in the schema.
    #[error(
        "the schema sexton belongs to {owner:?}, of which {role:?} is no member; run this as {owner:?}, or GRANT {owner} \
         TO {role}"
    )]
    NotOwner {
        /// Who asked.
        role: String,
        /// Whose it is.
        owner: String,
    },
    /// PostgreSQL hands a schema over only where its old owner could have created it.
    #[error(
        "the role {role:?} may not hand the schema sexton over; as the database's owner, run: GRANT CREATE ON DATABASE \
         {database} TO {role}"
    )]
    NoCreate {
        /// Who asked.
        role: String,
        /// Quoted, if it must be.
        database: String,
    },
    /// The names of roles would need quotes.
    #[error(
        "{0:?} cannot begin the names of roles; allowed: at most 40 lower-case letters, digits and underscores, first a \
         letter, and not pg_"
    )]
    Prefix(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lets `role` do what the programs do: read and write every table, but of the audit only read and append, and let
/// its retention remove what is old. One transaction; repeated, it changes nothing. Repeat it after each migration,
/// for new tables.
///
/// # Errors
///
/// [`GrantError`]; nothing was granted.
pub async fn grant(store: &Store, role: &str) -> Result<(), GrantError> {
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    refuse_writers_of_the_audit(&mut tx, role).await?;
    for statement in SERVICE_GRANTS {
        run_formatted(&mut tx, statement, role).await?;
    }
    commit(tx).await.map_err(StoreError::from)?;
    Ok(())
}

/// Fails where `role` may change what the audit says, whatever is granted to it.
///
/// # Errors
///
/// [`GrantError::Missing`], [`GrantError::Owner`], [`GrantError::Member`]; those of the database.
pub(crate) async fn refuse_writers_of_the_audit(
    tx: &mut Transaction<'static, Postgres>,
    role: &str,
) -> Result<(), GrantError> {
    // Not checked at compile time: names of roles and tables cannot be parameters of a GRANT, so the server
    // writes the statements.
    let known = sqlx::query(
        // A member can become the other role, whether or not it inherits that role's privileges.
        "SELECT bool_or(r.rolsuper OR r.oid = c.relowner) AS owns,
                min((SELECT m.rolname::text FROM pg_roles m
                     WHERE m.oid <> r.oid AND pg_has_role(r.oid, m.oid, 'MEMBER')
                       AND (m.rolsuper OR m.oid = c.relowner OR m.rolname = 'pg_write_all_data'
                            OR (SELECT bool_or(a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE')
                                               OR a.privilege_type = 'INSERT' AND c.relname <> 'operator_actions')
                                FROM aclexplode(c.relacl) a WHERE a.grantee = m.oid))
                     ORDER BY m.rolname LIMIT 1)) AS of
         FROM pg_roles r, pg_class c
         WHERE r.rolname = $1 AND c.oid = ANY ($2::text[]::regclass[]) HAVING count(*) > 0",
    )
    .bind(role)
    .bind(&AUDIT_TABLES[..])
    .fetch_optional(WithTimeout(&mut **tx))
    .await
    .map_err(StoreError::from)?
    .ok_or_else(|| GrantError::Missing(role.to_owned()))?;
    if known.get("owns") {
        return Err(GrantError::Owner(role.to_owned()));
    }
    if let Some(of) = known.get::<Option<String>, _>("of") {
        return Err(GrantError::Member { role: role.to_owned(), of });
    }
    Ok(())
}

/// Runs a statement in which `%1$I` is `name`, quoted by the server.
pub(crate) async fn run_formatted(
    tx: &mut Transaction<'static, Postgres>,
    statement: &str,
    name: &str,
) -> Result<(), GrantError> {
    let text: String = sqlx::query_scalar("-- format_grant\nSELECT format($1, $2)")
        .bind(statement)
        .bind(name)
        .fetch_one(WithTimeout(&mut **tx))
        .await
        .map_err(StoreError::from)?;
    run(tx, text).await
}

/// Runs a statement that cannot have parameters.
pub(crate) async fn run(
    tx: &mut Transaction<'static, Postgres>,
    statement: String,
) -> Result<(), GrantError> {
    with_client_timeout(sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut **tx))
        .await
        .map_err(StoreError::from)?;
    Ok(())
}
