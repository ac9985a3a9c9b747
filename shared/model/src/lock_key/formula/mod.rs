//! How systems compute the key of an advisory lock from a name.
//!
//! # Guarantees
//!
//! A formula gives the same key in every release, since two programs exclude each other only by the same key. The file
//! `vectors.json` has keys that the original libraries computed; `scripts/lock-key-vectors.sh` writes it.

mod uuid_of_name;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MAX_KEY;
use super::hash::{crc32, djb2, first_eight, java_hash, md5, sha256};
use crate::text_enum::text_enum;

/// The longest name and namespace of a key, in bytes.
pub const MAX_NAME_BYTES: usize = 10_000;
/// The table whose rows GoodJob locks, unless a namespace names another one.
const GOOD_JOB_TABLE: &str = "good_jobs";

/// A formula, by the system that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum KeyFormula {
    /// The name is the number.
    Integer,
    /// The first 53 bits of the SHA-256 of `<namespace>/<name>`: any client reads the number as it is.
    Sexton,
    /// PostgreSQL's `hashtext`.
    Hashtext,
    /// PostgreSQL's `hashtextextended`, as version 2 of npm's pg-advisory-lock calls it; a namespace is the seed.
    #[serde(rename = "hashtextextended")]
    HashtextExtended,
    /// Absolute value of [`Self::JavaHashCode`]; with a namespace the pair of both.
    Article,
    /// Java's `String.hashCode`.
    #[serde(rename = "java-hashcode")]
    JavaHashCode,
    /// Ruby's with_advisory_lock: a pair of CRC-32 and prefix, each without its highest bit.
    WithAdvisoryLock,
    /// Python's django-pglocks 1: CRC-32 with a sign.
    DjangoPglocks,
    /// Python's django-pgware, and django-pglocks from version 2 on: SHA-256, big endian.
    DjangoPgware,
    /// Python's django-pglock: SHA-256, little endian.
    DjangoPglock,
    /// npm's pg-advisory-lock from version 3 on: SHA-256, big endian; a namespace is hashed first.
    PgAdvisoryLock,
    /// Version 1 of npm's pg-advisory-lock: a hash by 33.
    #[serde(rename = "pg-advisory-lock-1")]
    PgAdvisoryLock1,
    /// npm's advisory-lock: a pair from SHA-256, little endian.
    AdvisoryLock,
    /// Ruby's GoodJob: MD5 of `<table>-<id>`.
    GoodJob,
    /// Spring Integration's `JdbcLockRegistry`: a row of `INT_LOCK`.
    SpringIntegration,
}

text_enum!(KeyFormula {
    Integer => "integer",
    Sexton => "sexton",
    Hashtext => "hashtext",
    HashtextExtended => "hashtextextended",
    Article => "article",
    JavaHashCode => "java-hashcode",
    WithAdvisoryLock => "with-advisory-lock",
    DjangoPglocks => "django-pglocks",
    DjangoPgware => "django-pgware",
    DjangoPglock => "django-pglock",
    PgAdvisoryLock => "pg-advisory-lock",
    PgAdvisoryLock1 => "pg-advisory-lock-1",
    AdvisoryLock => "advisory-lock",
    GoodJob => "good-job",
    SpringIntegration => "spring-integration",
});

/// A key, or the call of PostgreSQL that computes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Derivation {
    /// The key.
    Key(DerivedKey),
    /// A function of the server, whose answer is a [`DerivedKey::Bigint`].
    Server(ServerHash),
}

/// A hash that only PostgreSQL computes: its formula is no part of PostgreSQL's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerHash {
    /// `hashtext(name)`.
    Text,
    /// `hashtextextended(name COLLATE "C", seed)`; the seed is that of the namespace, or 0.
    TextExtended,
}

/// By what a lock is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DerivedKey {
    /// `pg_advisory_lock(bigint)`.
    Bigint(i64),
    /// `pg_advisory_lock(integer, integer)`.
    Pair {
        /// The first number.
        class: i32,
        /// The second number.
        object: i32,
    },
    /// A row of a table; no advisory lock.
    Row {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
}

/// Where `pg_locks` shows an advisory lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockColumns {
    /// `pg_locks.classid`.
    pub classid: u32,
    /// `pg_locks.objid`.
    pub objid: u32,
    /// `pg_locks.objsubid`: 1 of a `bigint`, 2 of a pair.
    pub objsubid: u8,
}

/// Why a formula has no key for a name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeriveError {
    /// The formula takes the number itself.
    #[error("{0:?} is no whole number from -2^63 to 2^63 - 1")]
    NotInteger(String),
    /// A number that programs in JavaScript would round.
    #[error(
        "{given} is beyond 2^53 - 1: Node.js reads it as {rounded} and locks another key; take one from \
         -9007199254740991 to 9007199254740991"
    )]
    Rounded {
        /// The number.
        given: i64,
        /// What is left of it.
        rounded: String,
    },
    /// The formula needs a namespace.
    #[error("{0} needs a namespace")]
    NamespaceMissing(KeyFormula),
    /// The formula has no use for a namespace.
    #[error("{0} has no namespace; leave it out")]
    NamespaceUnused(KeyFormula),
    /// With a slash in it, two pairs of namespace and name would have one key.
    #[error("a namespace of this formula holds no slash, which separates it from the name")]
    NamespaceSlash,
    /// One of the pair's numbers is 2^31, which no `integer` holds.
    #[error(
        "{0:?} hashes to -2^31, whose absolute value no integer of a pair holds; take another text"
    )]
    PairOverflow(String),
    /// A text is too long, or holds U+0000, which PostgreSQL cannot store.
    #[error("a text has at most {MAX_NAME_BYTES} bytes, none of them U+0000")]
    Text,
}

impl fmt::Display for KeyFormula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl KeyFormula {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::Integer,
        Self::Sexton,
        Self::Hashtext,
        Self::HashtextExtended,
        Self::Article,
        Self::JavaHashCode,
        Self::WithAdvisoryLock,
        Self::DjangoPglocks,
        Self::DjangoPgware,
        Self::DjangoPglock,
        Self::PgAdvisoryLock,
        Self::PgAdvisoryLock1,
        Self::AdvisoryLock,
        Self::GoodJob,
        Self::SpringIntegration,
    ];

    /// Returns whether a namespace changes the key: a prefix, a class or a table.
    pub const fn takes_namespace(self) -> bool {
        matches!(
            self,
            Self::Sexton
                | Self::HashtextExtended
                | Self::Article
                | Self::WithAdvisoryLock
                | Self::PgAdvisoryLock
                | Self::GoodJob
        )
    }

    /// Computes the key of a name.
    ///
    /// # Errors
    ///
    /// [`DeriveError`]: the name has no key by this formula, or the namespace is missing or unused.
    pub fn derive(self, name: &str, namespace: Option<&str>) -> Result<Derivation, DeriveError> {
        let texts = [Some(name), namespace];
        if texts.iter().flatten().any(|text| text.len() > MAX_NAME_BYTES || text.contains('\0')) {
            return Err(DeriveError::Text);
        }
        if namespace.is_some() && !self.takes_namespace() {
            return Err(DeriveError::NamespaceUnused(self));
        }
        let key = match self {
            Self::Hashtext => return Ok(Derivation::Server(ServerHash::Text)),
            Self::HashtextExtended => return Ok(Derivation::Server(ServerHash::TextExtended)),
            Self::Integer => DerivedKey::Bigint(integer(name)?),
            Self::Sexton => {
                let namespace = namespace.ok_or(DeriveError::NamespaceMissing(self))?;
                DerivedKey::Bigint(hash_in_namespace(namespace, name)?)
            }
            Self::Article => article(name, namespace)?,
            Self::JavaHashCode => DerivedKey::Bigint(java_hash(name).into()),
            Self::WithAdvisoryLock => DerivedKey::Pair {
                class: without_sign(crc32(name.as_bytes())),
                object: without_sign(ruby_integer(namespace.unwrap_or_default())),
            },
            Self::DjangoPglocks => DerivedKey::Bigint(i64::from(crc32(name.as_bytes()) as i32)),
            Self::DjangoPgware => big_endian(first_eight(sha256(&[name.as_bytes()]))),
            Self::DjangoPglock => {
                let digest = sha256(&[name.as_bytes()]);
                DerivedKey::Bigint(i64::from_le_bytes(first_eight(digest)))
            }
            Self::PgAdvisoryLock => {
                let seed = namespace.map(|namespace| sha256(&[namespace.as_bytes()]));
                let seed = seed.as_ref().map_or(&[][..], <[u8; 32]>::as_slice);
                big_endian(first_eight(sha256(&[seed, name.as_bytes()])))
            }
            Self::PgAdvisoryLock1 => DerivedKey::Bigint(djb2(name)),
            Self::AdvisoryLock => {
                let both = u64::from_le_bytes(first_eight(sha256(&[name.as_bytes()])));
                DerivedKey::Pair { class: both as i32, object: (both >> 32) as i32 }
            }
            Self::GoodJob => {
                let table = namespace.unwrap_or(GOOD_JOB_TABLE);
                big_endian(first_eight(md5(&format!("{table}-{name}"))))
            }
            Self::SpringIntegration => {
                DerivedKey::Row { table: "INT_LOCK", key: uuid_of_name::of(name).to_string() }
            }
        };
        Ok(Derivation::Key(key))
    }
}

impl DerivedKey {
    /// Returns where `pg_locks` shows the lock; `None`: a row is none.
    pub const fn lock_columns(&self) -> Option<LockColumns> {
        match self {
            Self::Bigint(key) => Some(LockColumns {
                classid: (*key as u64 >> 32) as u32,
                objid: *key as u32,
                objsubid: 1,
            }),
            Self::Pair { class, object } => {
                Some(LockColumns { classid: *class as u32, objid: *object as u32, objsubid: 2 })
            }
            Self::Row { .. } => None,
        }
    }
}

/// Displays as the arguments of PostgreSQL's functions: `5101`, or `18, 5101`; a row as `INT_LOCK 5f…`.
impl fmt::Display for DerivedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bigint(key) => write!(f, "{key}"),
            Self::Pair { class, object } => write!(f, "{class}, {object}"),
            Self::Row { table, key } => write!(f, "{table} {key}"),
        }
    }
}

fn integer(text: &str) -> Result<i64, DeriveError> {
    let given: i64 = text.parse().map_err(|_| DeriveError::NotInteger(shortened(text)))?;
    if (-MAX_KEY..=MAX_KEY).contains(&given) {
        Ok(given)
    } else {
        Err(DeriveError::Rounded { given, rounded: format!("{:.0}", given as f64) })
    }
}

fn hash_in_namespace(namespace: &str, name: &str) -> Result<i64, DeriveError> {
    if namespace.contains('/') {
        return Err(DeriveError::NamespaceSlash);
    }
    let digest = sha256(&[namespace.as_bytes(), b"/", name.as_bytes()]);
    // The eleven bits that a double cannot hold beside the others.
    Ok((u64::from_be_bytes(first_eight(digest)) >> 11) as i64)
}

fn article(name: &str, namespace: Option<&str>) -> Result<DerivedKey, DeriveError> {
    let absolute = |text: &str| i64::from(java_hash(text)).abs();
    let Some(namespace) = namespace else { return Ok(DerivedKey::Bigint(absolute(name))) };
    let number = |text: &str| {
        i32::try_from(absolute(text)).map_err(|_| DeriveError::PairOverflow(shortened(text)))
    };
    Ok(DerivedKey::Pair { class: number(namespace)?, object: number(name)? })
}

fn big_endian(bytes: [u8; 8]) -> DerivedKey {
    DerivedKey::Bigint(i64::from_be_bytes(bytes))
}

fn without_sign(number: u32) -> i32 {
    (number & 0x7fff_ffff) as i32
}

/// Returns what Ruby's `String#to_i` reads, by its last 32 bits: digits behind blanks and a sign, with single
/// underscores between them, and 0 for every other text.
fn ruby_integer(text: &str) -> u32 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(behind) => (true, behind),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mut number, mut before) = (0_u32, '_');
    for character in text.chars() {
        match character.to_digit(10) {
            Some(digit) => number = number.wrapping_mul(10).wrapping_add(digit),
            None if character == '_' && before != '_' => {}
            None => break,
        }
        before = character;
    }
    if is_negative { number.wrapping_neg() } else { number }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
