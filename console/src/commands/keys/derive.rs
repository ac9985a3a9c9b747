//! `sexton keys derive`: the key of a name, and where PostgreSQL lists its lock.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use sexton_model::lock_key::{Derivation, KeyFormula};
use sexton_operations::lock_keys::{self, LockKeyOfName};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::Facts;

/// The name, and the formula.
#[derive(Debug, Args)]
pub struct Derive {
    /// The name that the other system locks
    #[arg(allow_negative_numbers = true)]
    name: String,
    /// System whose formula computes the key
    #[arg(long, value_name = "SYSTEM", value_parser = formula_parser())]
    like: KeyFormula,
    /// Prefix, class or table of the formulas that have one
    #[arg(long, value_name = "TEXT")]
    namespace: Option<String>,
}

/// Its values are offered by the completion of shells, too.
fn formula_parser() -> impl clap::builder::TypedValueParser<Value = KeyFormula> {
    PossibleValuesParser::new(KeyFormula::ALL.map(KeyFormula::as_str))
        .map(|text| KeyFormula::parse(&text).unwrap_or(KeyFormula::Integer))
}

pub(super) async fn run(arguments: &Derive, session: &Session) -> Result<(), Failure> {
    let Derive { name, like, namespace } = arguments;
    let namespace = namespace.as_deref();
    // Only the server's formulas need a server.
    let key = match lock_keys::derive(*like, name, namespace)? {
        Derivation::Key(key) => key,
        Derivation::Server(_) => {
            let store = session.database().await?;
            lock_keys::derive_on(&store, *like, name, namespace).await?
        }
    };
    if session.out.is_json() {
        return session.out.document(&LockKeyOfName::new(*like, name, namespace, &key));
    }
    let mut facts = Facts::default();
    facts.add("key", key.to_string());
    match key.lock_columns() {
        None => facts.add("lock", "a row of that table; no advisory lock"),
        Some(columns) => {
            facts.add("lock", format!("pg_advisory_lock({key})"));
            facts.add(
                "pg_locks",
                format!(
                    "classid = {}, objid = {}, objsubid = {}",
                    columns.classid, columns.objid, columns.objsubid
                ),
            );
        }
    }
    session.out.facts(facts)
}
