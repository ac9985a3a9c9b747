//! Checks of foreign jobs, and the keys of their pings.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::Serialize;
use sexton_model::channel::is_channel_name;
use sexton_model::check::CheckSpec;
use sexton_model::checks_file;
use sexton_store::Store;
use sexton_store::checks::define::{self, ChecksChange, ChecksError};
use sexton_store::checks::keys::{self, PingKey};
use sexton_store::checks::list::{self, CheckFilter, CheckStatus, ListedPing};
use uuid::Uuid;

pub use sexton_store::checks::define::CheckAction;

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::pings::key_hash;

/// Most keys in a list.
const MAX_KEYS: i64 = 1_000;
/// Random bytes of a key.
const KEY_BYTES: usize = 18;
/// The most checks beyond which a key may be set to create none.
pub const MAX_KEY_CHECKS: u32 = 100_000;
/// The number of checks beyond which a key creates none, unless its creator says so.
pub const DEFAULT_KEY_CHECKS: u32 = 100;

/// What applying a file has changed, or would.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppliedChecks {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The changes.
    pub change: ChecksChange,
}

impl From<ChecksError> for OperationError {
    fn from(error: ChecksError) -> Self {
        match error {
            ChecksError::Store(error) => error.into(),
            ChecksError::Missing(name) => NotFound::Check(name).into(),
            error @ ChecksError::UnknownKey(_) => InvalidRequest::Other(error.to_string()).into(),
            error @ ChecksError::Locked => Self::Failed(error.to_string()),
        }
    }
}

/// Parses a checks file.
///
/// # Errors
///
/// [`InvalidRequest::AlertsFile`] with every problem and its place.
pub fn read_file(file_name: &str, text: &str) -> Result<Vec<CheckSpec>, OperationError> {
    Ok(checks_file::parse(file_name, text).map_err(InvalidRequest::AlertsFile)?)
}

/// Adds the checks of a file, and changes those that there are already; others stay. One transaction, with its records in the audit. With
/// `dry_run` nothing changes.
///
/// # Errors
///
/// [`InvalidRequest`]: a ping key does not exist; [`OperationError::Failed`]: somebody else changes checks.
pub async fn apply(
    store: &Store,
    specs: &[CheckSpec],
    dry_run: bool,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<AppliedChecks, OperationError> {
    let change = define::apply(store, specs, dry_run, actor.because(reason), None).await?;
    Ok(AppliedChecks { dry_run, change })
}

/// Pauses, resumes or deletes a check, with its record in the audit.
///
/// # Errors
///
/// [`NotFound`]; [`Conflict`]: it is so already.
pub async fn act(
    store: &Store,
    name: &str,
    action: CheckAction,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    if define::act(store, name, action, actor.because(reason), None).await? {
        return Ok(());
    }
    let state = if action == CheckAction::Pause { "paused already" } else { "not paused" };
    Err(Conflict::Other(format!("check {name:?} is {state}; nothing was done")).into())
}

/// Returns a page of at most `limit` checks by name, behind `cursor`.
///
/// # Errors
///
/// [`InvalidRequest`] for a cursor of another list.
pub async fn list(
    store: &Store,
    mut filter: CheckFilter,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<CheckStatus>, OperationError> {
    filter.after = Cursor::read::<String>(PagedList::Checks, cursor)?;
    let rows = list::list(store, &filter, limit + 1).await?;
    Ok(Page::from_rows(rows, limit, PagedList::Checks, |check| check.name.clone()))
}

/// Returns a check with its newest pings, at most `limit`.
///
/// # Errors
///
/// [`NotFound`].
pub async fn show(
    store: &Store,
    name: &str,
    limit: i64,
) -> Result<(CheckStatus, Vec<ListedPing>), OperationError> {
    let filter = CheckFilter { name: Some(name.to_owned()), ..CheckFilter::default() };
    let found = list::list(store, &filter, 1).await?.into_iter().next();
    let check = found.ok_or_else(|| NotFound::Check(name.to_owned()))?;
    let id: Uuid = check.id;
    Ok((check, list::pings(store, id, limit).await?))
}

/// Lists the ping keys by name.
///
/// # Errors
///
/// Those of the database.
pub async fn keys(store: &Store) -> Result<Vec<PingKey>, OperationError> {
    Ok(keys::list(store, MAX_KEYS).await?)
}

/// Creates a ping key and returns it; it is stored nowhere, and shown this once. With it jobs ping checks by their names, and create at most
/// `max_checks`.
///
/// # Errors
///
/// [`InvalidRequest`]: the name or the number is not possible; [`Conflict`]: the name is taken.
pub async fn create_key(
    store: &Store,
    name: &str,
    max_checks: u32,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<String, OperationError> {
    if !is_channel_name(name) {
        let shape = "is no name of a ping key; write a lower-case letter, and up to 62 letters, digits and hyphens";
        return Err(InvalidRequest::field("name", format!("{name:?} {shape}")).into());
    }
    if max_checks > MAX_KEY_CHECKS {
        let problem = format!("must be 0 to {MAX_KEY_CHECKS}, not {max_checks}");
        return Err(InvalidRequest::field("max_checks", problem).into());
    }
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| OperationError::Failed("the system gave no random bytes".to_owned()))?;
    let key = format!("sxp_{}", URL_SAFE_NO_PAD.encode(bytes));
    let (hash, by) = (key_hash(&key), actor.because(reason));
    if keys::create(store, name, &hash, max_checks, by, None).await? {
        return Ok(key);
    }
    let taken = "delete it first, or take another name";
    Err(Conflict::Other(format!("there is a ping key {name:?} already; {taken}")).into())
}

/// Deletes a ping key. Its checks stay.
///
/// # Errors
///
/// [`NotFound`].
pub async fn delete_key(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    if keys::delete(store, name, actor.because(reason), None).await? {
        return Ok(());
    }
    Err(NotFound::PingKey(name.to_owned()).into())
}
