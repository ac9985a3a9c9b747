//! Parameters and documents that several routes have in common.

use serde::{Deserialize, Deserializer, Serialize, de};
use sexton_operations::paging::MAX_PAGE_ROWS;
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Problem, ProblemPlace};

/// Rows of a page unless the request says so.
const DEFAULT_ROWS: i64 = 50;

/// Rows of a page: 1 to 1,000.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ToSchema)]
#[schema(value_type = i64, minimum = 1, maximum = 1000, default = 50)]
pub struct PageSize(i64);

impl PageSize {
    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self(DEFAULT_ROWS)
    }
}

impl<'de> Deserialize<'de> for PageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = i64::deserialize(deserializer)?;
        if (1..=MAX_PAGE_ROWS).contains(&rows) {
            return Ok(Self(rows));
        }
        Err(de::Error::custom(format!("must be 1 to {MAX_PAGE_ROWS}, not {rows}")))
    }
}

/// A reason, in the query.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Reason {
    /// Reason, recorded in the audit.
    pub reason: Option<String>,
}

/// A reason, in the body.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReasonBody {
    /// Reason, recorded in the audit.
    pub reason: Option<String>,
}

/// A reason that must be given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredReason {
    /// Reason, recorded in the audit.
    pub reason: String,
}

/// A list without pages.
#[derive(Debug, Serialize, ToSchema)]
pub struct Items<T> {
    /// All of them.
    pub items: Vec<T>,
}

/// Which page of a list to show.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct PageParameters {
    /// Rows of a page.
    #[param(inline)]
    pub limit: PageSize,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Refuses a request for what is at `pointer` in its body.
pub fn problem_of_field(pointer: &str, detail: &str) -> Problem {
    let (pointer, detail) = (Some(pointer.to_owned()), detail.to_owned());
    Problem::invalid(ProblemPlace { pointer, parameter: None, line: None, detail })
}
