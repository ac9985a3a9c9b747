//! The privileges that a log-in lacks for what its role does.

use sqlx::Row as _;

use crate::schema::roles::PlatformRole;
use crate::{Store, StoreError};

/// The roles by which a log-in is judged; the first of which it is a member counts.
const JUDGED_ROLES: [PlatformRole; 5] = [
    PlatformRole::Owner,
    PlatformRole::Service,
    PlatformRole::Operator,
    PlatformRole::Viewer,
    PlatformRole::Producer,
];

/// How the schema is named among what is lacking.
const SCHEMA_OBJECT: &str = "schema sexton";

/// What the session's role may do in the schema.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Privileges {
    /// The platform's role that decides what is needed, by name; `None`: a log-in of schedulers and workers that is a
    /// member of none.
    pub role: Option<String>,
    /// Whether it can read which migrations are applied.
    pub reads_migrations: bool,
    /// What it lacks.
    pub missing: Vec<MissingPrivileges>,
}

/// Privileges that the role lacks on a table, a function or the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingPrivileges {
    /// The table's name, the function's, or `schema sexton`.
    pub object: String,
    /// `SELECT`, `INSERT`, `UPDATE`, `DELETE`; `EXECUTE`; `USAGE`.
    pub privileges: Vec<String>,
}

/// Compares what the session's role may do with what it needs.
///
/// A member of `…_operator`, `…_viewer` or `…_producer` needs what that role does; anybody else, what schedulers and
/// workers do: of every table all rows, but of the audit only reading and adding, and the functions by which
/// schedulers seal it and retention removes from it. Without the schema there is nothing that it could lack.
pub async fn read_privileges(store: &Store) -> Result<Privileges, StoreError> {
    // Not checked at compile time, like everything about roles. The schema's owner has the roles' prefix in its name.
    let suffixes = JUDGED_ROLES.map(PlatformRole::suffix);
    let member = sqlx::query(
        "-- doctor_role
        SELECT r.rolname::text AS name, s.suffix
        FROM pg_namespace n,
             unnest($1::text[]) WITH ORDINALITY AS s (suffix, place),
             pg_roles r
        WHERE n.nspname = 'sexton' AND pg_has_role(current_user, r.oid, 'MEMBER')
          AND pg_get_userbyid(n.nspowner)::text LIKE '%\\_owner'
          AND r.rolname = regexp_replace(pg_get_userbyid(n.nspowner)::text, 'owner$', s.suffix)
        ORDER BY s.place LIMIT 1",
    )
    .bind(&suffixes[..])
    .fetch_optional(store.with_timeout())
    .await?;
    let (role, judged) = match &member {
        None => (None, PlatformRole::Service),
        Some(row) => {
            let suffix: String = row.try_get("suffix")?;
            let judged = JUDGED_ROLES.into_iter().find(|role| role.suffix() == suffix);
            (Some(row.try_get("name")?), judged.unwrap_or(PlatformRole::Service))
        }
    };
    let missing = list_missing(store, judged).await?;
    let lacks = |object: &str| missing.iter().any(|one| one.object == object);
    // A producer may call functions and read no table, so it lacks nothing there.
    let reads_migrations =
        judged != PlatformRole::Producer && !lacks(SCHEMA_OBJECT) && !lacks("_sqlx_migrations");
    Ok(Privileges { role, reads_migrations, missing })
}

async fn list_missing(
    store: &Store,
    judged: PlatformRole,
) -> Result<Vec<MissingPrivileges>, StoreError> {
    let writes = judged.writes().iter();
    let writes =
        writes.flat_map(|(table, all)| all.iter().map(move |privilege| (*table, *privilege)));
    let (tables, privileges): (Vec<&str>, Vec<&str>) = writes.unzip();
    let is_service = matches!(judged, PlatformRole::Owner | PlatformRole::Service);
    // By the objects' numbers: their names cannot be resolved without USAGE.
    let rows: Vec<(String, Vec<String>)> = sqlx::query_as(
        "-- doctor_withheld
        WITH n AS (SELECT oid FROM pg_namespace WHERE nspname = 'sexton'),
             t AS (SELECT c.oid, c.relname::text AS name, c.relkind = 'v' AS is_view FROM pg_class c, n
                   WHERE c.relkind IN ('r', 'v') AND c.relnamespace = n.oid),
             needed (oid, name, privilege) AS (
                 SELECT t.oid, t.name, p.name
                 FROM t, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (name)
                 WHERE p.name = 'SELECT' AND NOT $2
                    OR $1 AND t.name <> '_sqlx_migrations' AND NOT t.is_view
                       AND NOT (t.name = 'operator_actions' AND p.name IN ('UPDATE', 'DELETE'))
                       AND NOT (t.name IN ('audit_seals', 'audit_unsealed', 'audit_chain') AND p.name <> 'SELECT')
                 UNION ALL
                 SELECT t.oid, t.name, w.privilege
                 FROM unnest($3::text[], $4::text[]) AS w (name, privilege) JOIN t USING (name))
        SELECT $5, ARRAY['USAGE'] FROM n WHERE NOT has_schema_privilege(n.oid, 'USAGE')
        UNION ALL
        (SELECT name, array_agg(privilege ORDER BY array_position(
                    ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'], split_part(privilege, ' ', 1)))
         FROM needed
         WHERE NOT CASE WHEN privilege LIKE '% (%'
                        THEN has_column_privilege(oid, substring(privilege FROM '\\((.*)\\)'), split_part(privilege, ' ', 1))
                        -- Of accounts they may not read the hashes of passwords.
                        WHEN privilege = 'SELECT' AND NOT $1 THEN has_any_column_privilege(oid, privilege)
                        ELSE has_table_privilege(oid, privilege) END
         GROUP BY name ORDER BY name)
        UNION ALL
        SELECT p.proname::text, ARRAY['EXECUTE'] FROM pg_proc p, n
        WHERE $1 AND p.pronamespace = n.oid AND p.proname IN ('delete_old_operator_actions', 'seal_operator_actions')
          AND NOT has_function_privilege(p.oid, 'EXECUTE')",
    )
    .bind(is_service)
    .bind(judged == PlatformRole::Producer)
    .bind(&tables)
    .bind(&privileges)
    .bind(SCHEMA_OBJECT)
    .fetch_all(store.with_timeout())
    .await?;
    let missing = |(object, privileges)| MissingPrivileges { object, privileges };
    Ok(rows.into_iter().map(missing).collect())
}
