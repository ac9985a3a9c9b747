//! The audit as a chain: the hash of each record covers the hash before it, so that a change or a removal shows.
//!
//! `hash(n) = SHA-256(hash(n - 1) ‖ canonical form of the record at position n)`, and `hash(0)` is 32 zero bytes. The canonical form
//! is that of docs/reference/audit-chain.md; the database computes it when it seals a record, this module when somebody verifies.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The length of SHA-256, in bytes.
pub const HASH_BYTES: usize = 32;
/// The columns of a record in the order of the canonical form.
pub const COLUMNS: [&str; 12] = [
    "id",
    "at",
    "actor",
    "from_where",
    "from_address",
    "action",
    "job_id",
    "execution_id",
    "bulk_id",
    "reason",
    "before",
    "after",
];

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
pub struct ChainHash(pub [u8; HASH_BYTES]);

impl ChainHash {
    /// The hash before the first record.
    pub const ZERO: Self = Self([0; HASH_BYTES]);

    /// Returns the hash of a record behind this one.
    #[must_use]
    pub fn next(self, canonical: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(self.0);
        digest.update(canonical);
        Self(digest.finalize().into())
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A place in the chain, as `POSITION:HASH`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainHead {
    /// How many records were sealed up to it; 0: before the first.
    pub position: i64,
    /// The hash there.
    pub hash: ChainHash,
}

impl fmt::Display for ChainHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.position, self.hash)
    }
}

/// A text that is no place in the chain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "is no head of the audit; write POSITION:HASH with 64 hexadecimal digits, as `sexton audit head` prints it"
)]
pub struct NoHead;

impl FromStr for ChainHead {
    type Err = NoHead;

    fn from_str(text: &str) -> Result<Self, NoHead> {
        let (position, digits) = text.split_once(':').ok_or(NoHead)?;
        let position = position.parse().ok().filter(|position| *position >= 0).ok_or(NoHead)?;
        let is_hash =
            digits.len() == 2 * HASH_BYTES && digits.bytes().all(|c| c.is_ascii_hexdigit());
        if !is_hash {
            return Err(NoHead);
        }
        let mut hash = [0; HASH_BYTES];
        for (byte, place) in hash.iter_mut().zip(0..) {
            *byte =
                u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| NoHead)?;
        }
        Ok(Self { position, hash: ChainHash(hash) })
    }
}

/// The columns of a record as texts, in the order of [`COLUMNS`].
pub type RecordTexts = [Option<String>; COLUMNS.len()];

/// Returns a record's canonical form: each column as its length in bytes, a colon, its text and a comma; null as `-,`.
pub fn canonical(columns: &RecordTexts) -> Vec<u8> {
    let mut bytes = Vec::new();
    for column in columns {
        match column {
            Some(text) => {
                bytes.extend_from_slice(format!("{}:{text},", text.len()).as_bytes());
            }
            None => bytes.extend_from_slice(b"-,"),
        }
    }
    bytes
}

/// A sealed record, as it is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedRecord {
    /// Its position.
    pub position: i64,
    /// The record's number in the audit.
    pub action: i64,
    /// The hash that was written when it was sealed.
    pub hash: ChainHash,
    /// What the record says now; `None`: it is gone.
    pub columns: Option<RecordTexts>,
}

/// What is wrong with the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChainBreak {
    /// A record does not have the hash with which it was sealed.
    #[error(
        "action {action} at position {position} does not have the hash with which it was sealed: it, its hash or its place in the \
         chain was changed"
    )]
    Changed {
        /// Where.
        position: i64,
        /// The record's number.
        action: i64,
    },
    /// A record was removed, and its seal is still there.
    #[error("action {action} at position {position} was removed")]
    Removed {
        /// Where.
        position: i64,
        /// The record's number.
        action: i64,
    },
    /// A position is missing.
    #[error("position {position} is missing: its action was removed, with its seal")]
    Missing {
        /// The first one that is missing.
        position: i64,
    },
    /// The last record has another hash than the state of the chain.
    #[error("the chain's state has another hash at position {position} than its last action")]
    Head {
        /// Where.
        position: i64,
    },
    /// A seal lies outside the chain.
    #[error("there is a seal at position {position}, outside the chain")]
    Outside {
        /// Where.
        position: i64,
    },
    /// A record is neither sealed nor waits for it.
    #[error(
        "action {action} was inserted outside the chain: it is neither sealed nor waits for it"
    )]
    Inserted {
        /// The record's number.
        action: i64,
    },
    /// A record was removed before it was sealed.
    #[error("action {action} was removed before it was sealed")]
    RemovedUnsealed {
        /// The record's number.
        action: i64,
    },
    /// An earlier head is not in the chain.
    #[error(
        "the head {position}:{hash} is not in the chain: actions up to it were changed or removed since it was noted"
    )]
    OtherHead {
        /// Its position.
        position: i64,
        /// Its hash.
        hash: ChainHash,
    },
}

/// Follows the chain from a place, record by record.
#[derive(Clone, Copy, Debug)]
pub struct ChainWalk {
    /// The last place that was verified.
    pub head: ChainHead,
    /// A head that was noted earlier.
    noted: Option<ChainHead>,
}

impl ChainWalk {
    /// Begins at a place whose hash is taken for granted, and looks for a `noted` head on the way.
    ///
    /// # Errors
    ///
    /// [`ChainBreak::OtherHead`].
    pub fn begin(head: ChainHead, noted: Option<ChainHead>) -> Result<Self, ChainBreak> {
        let walk = Self { head, noted };
        walk.compare()?;
        Ok(walk)
    }

    /// Verifies the next record.
    ///
    /// # Errors
    ///
    /// [`ChainBreak`]; the walk stays where it was.
    pub fn follow(&mut self, record: &SealedRecord) -> Result<(), ChainBreak> {
        let SealedRecord { position, action, hash, ref columns } = *record;
        let next = self.head.position + 1;
        if position != next {
            return Err(ChainBreak::Missing { position: next });
        }
        let Some(columns) = columns else { return Err(ChainBreak::Removed { position, action }) };
        if self.head.hash.next(&canonical(columns)) != hash {
            return Err(ChainBreak::Changed { position, action });
        }
        let walk = Self { head: ChainHead { position, hash }, ..*self };
        walk.compare()?;
        *self = walk;
        Ok(())
    }

    fn compare(&self) -> Result<(), ChainBreak> {
        match self.noted {
            Some(noted) if noted.position == self.head.position && noted.hash != self.head.hash => {
                Err(ChainBreak::OtherHead { position: noted.position, hash: noted.hash })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(id: &str) -> RecordTexts {
        let mut columns: RecordTexts = Default::default();
        columns[0] = Some(id.to_owned());
        columns[2] = Some("änn".to_owned());
        columns
    }

    fn chain(ids: &[i64]) -> Vec<SealedRecord> {
        let mut hash = ChainHash::ZERO;
        let sealed = ids.iter().zip(1..).map(|(id, position)| {
            let columns = texts(&id.to_string());
            hash = hash.next(&canonical(&columns));
            SealedRecord { position, action: *id, hash, columns: Some(columns) }
        });
        sealed.collect()
    }

    fn walk(records: &[SealedRecord], noted: Option<ChainHead>) -> Result<ChainHead, ChainBreak> {
        let start = ChainHead { position: 0, hash: ChainHash::ZERO };
        let mut walk = ChainWalk::begin(start, noted)?;
        records.iter().try_for_each(|record| walk.follow(record))?;
        Ok(walk.head)
    }

    #[test]
    fn the_canonical_form_tells_null_from_an_empty_text_and_counts_bytes() {
        let mut columns = texts("7");
        columns[3] = Some(String::new());
        assert_eq!(canonical(&columns), "1:7,-,4:änn,0:,-,-,-,-,-,-,-,-,".as_bytes());
    }

    #[test]
    fn a_whole_chain_is_followed_to_its_head_in_the_order_of_its_positions() {
        let records = chain(&[1, 3, 2]);
        let head = walk(&records, None).unwrap();
        assert_eq!((head.position, head.hash), (3, records[2].hash));
        let earlier = ChainHead { position: 2, hash: records[1].hash };
        assert_eq!(walk(&records, Some(earlier)).unwrap(), head);
    }

    #[test]
    fn each_kind_of_tampering_is_found_where_it_begins() {
        let whole = chain(&[1, 2, 3, 4]);
        let mut changed = whole.clone();
        changed[1].columns = Some(texts("22"));
        assert_eq!(walk(&changed, None), Err(ChainBreak::Changed { position: 2, action: 2 }));
        let mut removed = whole.clone();
        removed[2].columns = None;
        assert_eq!(walk(&removed, None), Err(ChainBreak::Removed { position: 3, action: 3 }));
        let mut cut = whole.clone();
        cut.remove(1);
        assert_eq!(walk(&cut, None), Err(ChainBreak::Missing { position: 2 }));
        let mut swapped = whole.clone();
        swapped.swap(1, 2);
        (swapped[1].position, swapped[2].position) = (2, 3);
        assert_eq!(walk(&swapped, None), Err(ChainBreak::Changed { position: 2, action: 3 }));
        // A chain that was computed anew from the change on is whole, but not the one that was noted.
        let mut again = chain(&[1, 22, 3, 4]);
        assert!(walk(&again, None).is_ok());
        let noted = ChainHead { position: 3, hash: whole[2].hash };
        let other = ChainBreak::OtherHead { position: 3, hash: noted.hash };
        assert_eq!(walk(&again, Some(noted)), Err(other));
        again.truncate(2);
        assert!(walk(&again, Some(noted)).is_ok(), "the walk has not come to it");
    }

    #[test]
    fn a_head_is_read_as_it_is_printed_and_nothing_else_is() {
        let head = ChainHead { position: 812, hash: chain(&[1])[0].hash };
        let text = head.to_string();
        assert_eq!(text.parse(), Ok(head));
        let short = text[..text.len() - 1].to_owned();
        for wrong in ["", "812", "812:", &short, &text.replace("812", "-1"), &format!("{text}0")] {
            assert_eq!(wrong.parse::<ChainHead>(), Err(NoHead), "{wrong}");
        }
    }
}
