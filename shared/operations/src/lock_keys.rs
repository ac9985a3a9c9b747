//! Keys of advisory locks: what a formula makes of a name, and the registry of who has which numbers.

use serde::Serialize;
use sexton_model::lock_key::KeyRange;
use sexton_model::lock_key::assignment::{RangeChange, RangeRequest, Refusal};
use sexton_model::lock_key::formula::LockColumns;
use sexton_model::lock_key::ranges_file::{self, RangeProblem, RangesFile};
use sexton_model::lock_key::registry::Finding;
use sexton_model::lock_key::{Derivation, DerivedKey, KeyFormula, RangeError};
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::lock_keys::{
    self, AssignError, AssignedRange, RemoveError, read_registry, server_hash,
};

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};

/// Maximum number of findings of one document; it counts the others.
const MAX_LISTED_FINDINGS: usize = 1_000;

/// What is wrong with ranges and keys, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyFindings {
    /// Number of findings.
    pub count: usize,
    /// The first 1,000 of them.
    pub findings: Vec<Finding>,
}

impl KeyFindings {
    /// Makes the document.
    pub fn new(mut findings: Vec<Finding>) -> Self {
        let count = findings.len();
        findings.truncate(MAX_LISTED_FINDINGS);
        Self { count, findings }
    }
}

/// The key that a formula gives a name, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockKeyOfName {
    /// The system whose formula it is.
    pub like: KeyFormula,
    /// The name.
    pub name: String,
    /// The prefix, class or table.
    pub namespace: Option<String>,
    /// The key, as PostgreSQL's functions take it: a text, since programs in JavaScript round large numbers.
    pub key: String,
    /// `bigint`, `pair`, or `row`: a row of a table, and no advisory lock.
    pub kind: &'static str,
    /// Where `pg_locks` shows the lock; `null` of a row.
    pub pg_locks: Option<LockColumns>,
}

impl LockKeyOfName {
    /// Makes the document.
    pub fn new(like: KeyFormula, name: &str, namespace: Option<&str>, key: &DerivedKey) -> Self {
        Self {
            like,
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            key: key.to_string(),
            kind: match key {
                DerivedKey::Bigint(_) => "bigint",
                DerivedKey::Pair { .. } => "pair",
                DerivedKey::Row { .. } => "row",
            },
            pg_locks: key.lock_columns(),
        }
    }
}

/// Lists the ranges whose service contains a text, by their numbers; `None`: all.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    containing: Option<&str>,
) -> Result<Vec<AssignedRange>, OperationError> {
    Ok(lock_keys::list(store, containing).await?)
}

/// Assigns a range to a service, or changes the one that it has. One transaction, with its record in the audit.
///
/// # Errors
///
/// [`InvalidRequest::Field`] for numbers that no range may have; [`Conflict`] for a range that overlaps another one, would lose a
/// key that a job uses, or is there as it is.
pub async fn assign(
    store: &Store,
    request: &RangeRequest,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<RangeChange, OperationError> {
    let requests = std::slice::from_ref(request);
    let changes = write(store, requests, false, actor, reason).await;
    let mut changes = changes.map_err(|error| match error {
        AssignError::Refused(refusals) => refusals.into_iter().next().map_or_else(
            || OperationError::Failed("the range is refused".to_owned()),
            |(_, refusal)| describe(refusal),
        ),
        other => common_error(other),
    })?;
    let Some(change) = changes.pop() else {
        return Err(OperationError::Failed("nothing was assigned".to_owned()));
    };
    if !change.is_change() {
        return Err(Conflict::Other(format!("{} has that range already", change.after)).into());
    }
    Ok(change)
}

/// Imports a file of ranges, CSV or JSON: all of them or none. One transaction, with a record in the audit for each range that
/// is new or changed. A service that the file lacks keeps its range.
///
/// # Errors
///
/// [`InvalidRequest::RangesFile`] with every problem and its place; nothing was imported.
pub async fn import(
    store: &Store,
    file_name: &str,
    text: &str,
    dry_run: bool,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Vec<RangeChange>, OperationError> {
    let file = ranges_file::parse(file_name, text).map_err(InvalidRequest::RangesFile)?;
    let changes = write(store, &file.requests, dry_run, actor, reason).await;
    changes.map_err(|error| match error {
        AssignError::Refused(refusals) => {
            let problem = |(index, refusal)| locate(file_name, &file, index, &refusal);
            let problems = refusals.into_iter().map(problem).collect();
            InvalidRequest::RangesFile(problems).into()
        }
        other => common_error(other),
    })
}

/// Removes the range of a service, so that its numbers can be assigned again. One transaction, with its record in the audit.
/// With `dry_run` nothing changes.
///
/// # Errors
///
/// [`OperationError::NotFound`]: the service has no range; [`Conflict`]: jobs have keys of it.
pub async fn remove(
    store: &Store,
    service: &str,
    dry_run: bool,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<KeyRange, OperationError> {
    let removed = lock_keys::remove(store, service, dry_run, actor.because(reason), None).await;
    let range = removed.map_err(|error| match error {
        RemoveError::NoRange => NotFound::KeyRange(service.to_owned()).into(),
        RemoveError::InUse { .. } => {
            Conflict::Other(format!("{error}; delete these jobs, or give them other keys first"))
                .into()
        }
        RemoveError::Locked => OperationError::Failed(error.to_string()),
        RemoveError::Store(error) => error.into(),
    })?;
    if !dry_run {
        committed();
    }
    Ok(range)
}

/// Finds what is wrong with the ranges and keys of a platform, and where each of `others` differs from it; they are named as
/// given.
///
/// # Errors
///
/// Those of the databases.
pub async fn check(
    store: &Store,
    others: &[(String, Store)],
) -> Result<Vec<Finding>, OperationError> {
    let registry = read_registry(store).await?;
    let mut findings = registry.check();
    for (name, other) in others {
        findings.extend(registry.compare(&read_registry(other).await?, name));
    }
    Ok(findings)
}

/// What a formula makes of a name, unless the server computes it.
///
/// # Errors
///
/// [`InvalidRequest::LockKey`]: the name has no key by this formula.
pub fn derive(
    formula: KeyFormula,
    name: &str,
    namespace: Option<&str>,
) -> Result<Derivation, OperationError> {
    Ok(formula.derive(name, namespace).map_err(InvalidRequest::LockKey)?)
}

/// What a formula makes of a name, by this server where the server computes it.
///
/// # Errors
///
/// As [`derive()`], and those of the database.
pub async fn derive_on(
    store: &Store,
    formula: KeyFormula,
    name: &str,
    namespace: Option<&str>,
) -> Result<DerivedKey, OperationError> {
    match derive(formula, name, namespace)? {
        Derivation::Key(key) => Ok(key),
        Derivation::Server(hash) => {
            Ok(DerivedKey::Bigint(server_hash(store, hash, name, namespace).await?))
        }
    }
}

async fn write(
    store: &Store,
    requests: &[RangeRequest],
    dry_run: bool,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Vec<RangeChange>, AssignError> {
    let by = actor.because(reason);
    let changes = lock_keys::assign(store, requests, dry_run, by, None).await?;
    if !dry_run && changes.iter().any(RangeChange::is_change) {
        committed();
    }
    Ok(changes)
}

/// What was changed is in the database, and nobody was answered.
fn committed() {
    fault::point("console.keys_assigned");
}

fn describe(refusal: Refusal) -> OperationError {
    match refusal {
        Refusal::Range(error @ RangeError::Keys(_)) => {
            InvalidRequest::field("keys", format!(": {error}")).into()
        }
        Refusal::Range(error @ RangeError::Bounds { .. }) => {
            InvalidRequest::field("start", format!(": {error}")).into()
        }
        Refusal::Range(error @ RangeError::Service(_)) => {
            InvalidRequest::Other(error.to_string()).into()
        }
        other => Conflict::Other(other.to_string()).into(),
    }
}

fn locate(file_name: &str, file: &RangesFile, index: usize, refusal: &Refusal) -> RangeProblem {
    let place = file.places.get(index);
    RangeProblem {
        file: file_name.to_owned(),
        line: place.map_or(1, |place| place.line),
        column: place.map_or(1, |place| place.column),
        field: None,
        message: refusal.to_string(),
    }
}

fn common_error(error: AssignError) -> OperationError {
    match error {
        AssignError::Store(error) => error.into(),
        error @ (AssignError::Locked | AssignError::Refused(_)) => {
            OperationError::Failed(error.to_string())
        }
    }
}
