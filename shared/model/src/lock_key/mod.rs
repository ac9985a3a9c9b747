//! Keys of advisory locks: how other systems compute them, and which service has which numbers.
//!
//! PostgreSQL knows an advisory lock by a `bigint` or by a pair of `integer`s, per database, and the two never meet. Programs
//! that lock by a name compute such a key, each by a formula of its own: [`KeyFormula`]. People who give out numbers by hand
//! divide them into ranges, one for each service: [`KeyRange`].
//!
//! - [`formula`]: the formulas.
//! - [`range`]: ranges of keys, and which service a job belongs to.
//! - [`assignment`]: decides about new and changed ranges.
//! - [`ranges_file`]: ranges in CSV and JSON, with the places of problems.
//! - [`job_key`]: whether a job may have a key.
//! - [`registry`]: what is wrong with ranges and keys, alone or compared with another environment.

pub mod assignment;
pub mod formula;
mod hash;
pub mod job_key;
pub mod range;
pub mod ranges_file;
pub mod registry;

pub use formula::{Derivation, DeriveError, DerivedKey, KeyFormula, ServerHash};
pub use range::{KeyRange, RangeError, service_of};

/// The largest key that a range may hold, 2^53 − 1, and the negative of the smallest. Node.js and everything else that
/// reads numbers as doubles rounds larger ones, and then locks another key.
pub const MAX_KEY: i64 = (1 << 53) - 1;
