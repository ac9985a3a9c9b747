//! The privileges of the programs' role: everything that they need, and nothing that they must never do.
//!
//! The role that migrates owns the tables, and could drop the trigger that keeps the audit append-only. The programs
//! need not run as that role: [`grant`] gives another one what they need, without the right to change or remove rows
//! of the audit. PostgreSQL refuses that before any trigger runs. The audit's retention is a function of the owner,
//! which removes nothing younger than 30 days; the role may call it.

use sqlx::Row as _;

use crate::client_timeout::{WithTimeout, commit};
use crate::{Store, StoreError};

/// The one table that programs only append to and read.
const AUDIT_TABLE: &str = "operator_actions";

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
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Grants `role` what the programs need in the schema of the tables: read and write every table, but only read and
/// append to the audit, and call its retention. One transaction; a repeated call changes nothing. Repeat it after
/// each migration, for new tables.
///
/// # Errors
///
/// [`GrantError`]; nothing was granted.
pub async fn grant(store: &Store, role: &str) -> Result<(), GrantError> {
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    // Not checked at compile time: names of roles and tables cannot be parameters of a GRANT, so the server
    // writes the statements.
    let known = sqlx::query(
        // A member can become the other role, whether or not it inherits that role's privileges.
        "SELECT r.rolsuper OR r.oid = c.relowner AS owns,
                (SELECT m.rolname::text FROM pg_roles m
                 WHERE m.oid <> r.oid AND pg_has_role(r.oid, m.oid, 'MEMBER')
                   AND (m.rolsuper OR m.oid = c.relowner OR m.rolname = 'pg_write_all_data'
                        OR (SELECT bool_or(a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE'))
                            FROM aclexplode(c.relacl) a WHERE a.grantee = m.oid))
                 ORDER BY m.rolname LIMIT 1) AS of
         FROM pg_roles r, pg_class c
         WHERE r.rolname = $1 AND c.oid = $2::regclass",
    )
    .bind(role)
    .bind(AUDIT_TABLE)
    .fetch_optional(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?
    .ok_or_else(|| GrantError::Missing(role.to_owned()))?;
    if known.get("owns") {
        return Err(GrantError::Owner(role.to_owned()));
    }
    if let Some(of) = known.get::<Option<String>, _>("of") {
        return Err(GrantError::Member { role: role.to_owned(), of });
    }
    let statements: Vec<String> = sqlx::query_scalar(
        "SELECT format(s, n.nspname, r.rolname) FROM pg_roles r, pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace,
         unnest(ARRAY[
            'GRANT USAGE ON SCHEMA %1$I TO %2$I',
            'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$I TO %2$I',
            'GRANT USAGE ON ALL SEQUENCES IN SCHEMA %1$I TO %2$I',
            'REVOKE ALL ON %1$I.operator_actions FROM %2$I, PUBLIC',
            'GRANT SELECT, INSERT ON %1$I.operator_actions TO %2$I',
            'REVOKE ALL ON %1$I._sqlx_migrations FROM %2$I, PUBLIC',
            'GRANT SELECT ON %1$I._sqlx_migrations TO %2$I',
            'GRANT EXECUTE ON FUNCTION %1$I.delete_old_operator_actions(timestamptz, timestamptz, integer) TO %2$I'
         ]) WITH ORDINALITY AS t (s, i)
         WHERE r.rolname = $1 AND c.oid = $2::regclass ORDER BY i",
    )
    .bind(role)
    .bind(AUDIT_TABLE)
    .fetch_all(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    for statement in statements {
        // The server has quoted it, from names in its catalogue.
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(WithTimeout(&mut *tx))
            .await
            .map_err(StoreError::from)?;
    }
    commit(tx).await.map_err(StoreError::from)?;
    Ok(())
}
