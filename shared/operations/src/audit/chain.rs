//! The chain of the audit: its head, and its verification.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::audit_chain::{ChainBreak, ChainHead, ChainWalk};
use sexton_store::Store;
use sexton_store::operator::chain::{
    find_outside, find_removed_unsealed, find_unchained, list_sealed, read_state,
};
use sexton_store::retention::MIN_AUDIT_DAYS;

use crate::error::{InvalidRequest, OperationError};

/// Records of one page.
const PAGE_RECORDS: i64 = 1_000;
/// Actions that wait for their seal are counted up to this number.
pub const MAX_COUNTED: i64 = 10_000;

/// The end of the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditHead {
    /// Position and hash, as `sexton audit verify --head` takes them.
    pub head: String,
    /// How many actions were sealed so far; 0: none.
    pub position: i64,
    /// The hash there, in 64 hexadecimal digits.
    pub hash: String,
    /// When it was sealed.
    pub sealed_at: Option<DateTime<Utc>>,
    /// Actions that are recorded and not sealed yet; counted up to 10,000.
    pub unsealed: i64,
}

/// Returns the end of the chain.
///
/// # Errors
///
/// Those of the database.
pub async fn head(store: &Store) -> Result<AuditHead, OperationError> {
    let state = read_state(store, MAX_COUNTED).await?;
    Ok(AuditHead {
        head: state.head.to_string(),
        position: state.head.position,
        hash: state.head.hash.to_string(),
        sealed_at: state.sealed_at,
        unsealed: state.unsealed.min(MAX_COUNTED),
    })
}

/// The result of a verification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditVerification {
    /// Whether nothing was changed, removed or inserted.
    pub is_intact: bool,
    /// Actions whose hashes were computed again.
    pub verified: u64,
    /// Where the chain begins: the last position that was removed, with its hash, which cannot be computed again.
    pub anchor: ChainHead,
    /// When the first verified action was recorded, in RFC 3339; `None`: no action was verified.
    pub since: Option<String>,
    /// How far the chain was verified.
    pub head: ChainHead,
    /// Actions that are recorded and not sealed yet; counted up to 10,000.
    pub unsealed: i64,
    /// The first problem.
    pub problem: Option<AuditProblem>,
}

/// What is wrong with the audit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditProblem {
    /// Its kind, with the place.
    #[serde(flatten)]
    pub found: ChainBreak,
    /// The same, in a sentence.
    pub message: String,
}

/// Verifies the audit up to its present head: computes the hash of each record again, and looks for records outside the chain. With
/// `noted`, an earlier head as `POSITION:HASH`, also that the chain still contains it. Reads a page at a time.
///
/// # Errors
///
/// [`InvalidRequest`] for a head that cannot be read or is older than the chain's beginning, and those of the database.
pub async fn verify(
    store: &Store,
    noted: Option<&str>,
) -> Result<AuditVerification, OperationError> {
    let refused = |problem: String| InvalidRequest::field("head", problem);
    let noted: Option<ChainHead> = noted
        .map(|text| text.trim().parse())
        .transpose()
        .map_err(|error: sexton_model::audit_chain::NoHead| refused(error.to_string()))?;
    let state = read_state(store, MAX_COUNTED).await?;
    check_kept(noted, state.anchor)?;
    let mut verification = AuditVerification {
        is_intact: false,
        verified: 0,
        anchor: state.anchor,
        since: None,
        head: state.anchor,
        unsealed: state.unsealed.min(MAX_COUNTED),
        problem: None,
    };
    let mut found = follow(store, noted, state.head, &mut verification).await?.err();
    if found.is_none() {
        found = find_outside_of_chain(store).await?;
    }
    verification.is_intact = found.is_none();
    verification.problem = found.map(|found| AuditProblem { message: found.to_string(), found });
    Ok(verification)
}

/// Follows the chain to `end`.
async fn follow(
    store: &Store,
    noted: Option<ChainHead>,
    end: ChainHead,
    verification: &mut AuditVerification,
) -> Result<Result<(), ChainBreak>, OperationError> {
    let mut walk = match ChainWalk::begin(verification.anchor, noted) {
        Ok(walk) => walk,
        Err(found) => return Ok(Err(found)),
    };
    while walk.head.position < end.position {
        let page = list_sealed(store, walk.head.position, PAGE_RECORDS).await?;
        if page.first().is_none_or(|record| record.position != walk.head.position + 1) {
            // Retention may have come by, which moves the anchor together with what it removes.
            let anchor = read_state(store, MAX_COUNTED).await?.anchor;
            if anchor.position <= walk.head.position {
                return Ok(Err(ChainBreak::Missing { position: walk.head.position + 1 }));
            }
            if noted.is_some_and(|noted| noted.position > walk.head.position) {
                check_kept(noted, anchor)?;
            }
            walk = match ChainWalk::begin(anchor, noted) {
                Ok(walk) => walk,
                Err(found) => return Ok(Err(found)),
            };
            (verification.anchor, verification.head) = (anchor, anchor);
            (verification.since, verification.verified) = (None, 0);
            continue;
        }
        for record in page.iter().take_while(|record| record.position <= end.position) {
            if let Err(found) = walk.follow(record) {
                return Ok(Err(found));
            }
            verification.head = walk.head;
            verification.verified += 1;
            if verification.since.is_none() {
                verification.since = record.columns.as_ref().and_then(|texts| texts[1].clone());
            }
        }
    }
    if walk.head.position == end.position && walk.head.hash != end.hash {
        return Ok(Err(ChainBreak::Head { position: end.position }));
    }
    let is_beyond = |noted: &ChainHead| noted.position > walk.head.position;
    Ok(noted.filter(is_beyond).map_or(Ok(()), |noted| {
        Err(ChainBreak::OtherHead { position: noted.position, hash: noted.hash })
    }))
}

/// Looks for what lies outside the chain.
async fn find_outside_of_chain(store: &Store) -> Result<Option<ChainBreak>, OperationError> {
    if let Some(position) = find_outside(store).await? {
        return Ok(Some(ChainBreak::Outside { position }));
    }
    let mut after = i64::MIN;
    loop {
        let page = find_unchained(store, after, PAGE_RECORDS).await?;
        if let Some(action) = page.unchained {
            return Ok(Some(ChainBreak::Inserted { action }));
        }
        match page.last {
            Some(last) => after = last,
            None => break,
        }
    }
    let removed = find_removed_unsealed(store).await?;
    Ok(removed.map(|action| ChainBreak::RemovedUnsealed { action }))
}

fn check_kept(noted: Option<ChainHead>, anchor: ChainHead) -> Result<(), InvalidRequest> {
    match noted {
        Some(noted) if noted.position < anchor.position => Err(InvalidRequest::field(
            "head",
            format!(
                "is at position {}, and actions up to position {} were removed. Retention keeps {MIN_AUDIT_DAYS} days at least: if \
                 this head is younger, somebody else removed them",
                noted.position, anchor.position
            ),
        )),
        _ => Ok(()),
    }
}
