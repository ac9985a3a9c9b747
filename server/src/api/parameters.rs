//! Parameters and documents that several routes have in common.

use chrono::{DateTime, Datelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, de};
use sexton_model::access::Role;
use sexton_model::job_scope::{Grant, JobScope};
use sexton_operations::instants::{InvalidInstant, START_YEARS};
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

/// Reads the instant from which on a request looks ahead.
pub(super) fn from<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let from = Option::<DateTime<Utc>>::deserialize(deserializer)?;
    match from {
        Some(at) if !START_YEARS.contains(&at.year()) => {
            let text = at.to_rfc3339();
            Err(de::Error::custom(InvalidInstant::Far { text, years: START_YEARS }))
        }
        from => Ok(from),
    }
}

/// Longest reason, in bytes.
const MAX_REASON_BYTES: usize = 2_000;

/// Reads a reason that need not be given, without blanks around it; nothing but blanks is none.
pub fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    if text.as_ref().is_some_and(|text| text.len() > MAX_REASON_BYTES || text.contains('\0')) {
        return Err(de::Error::custom(format!(
            "a reason has at most {MAX_REASON_BYTES} bytes, none of them U+0000"
        )));
    }
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Reads a reason that must be given.
pub fn required_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let missing = || de::Error::custom("is empty: those who read it must learn why");
    reason(deserializer)?.ok_or_else(missing)
}

/// Longest name of a file, in bytes: each of up to a thousand problems repeats it.
pub const MAX_FILE_NAME_BYTES: usize = 255;

/// Reads the name of a file, for problems.
pub fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    if name.as_ref().is_some_and(|name| name.len() > MAX_FILE_NAME_BYTES) {
        let detail = format!("has more than {MAX_FILE_NAME_BYTES} bytes");
        return Err(de::Error::custom(detail));
    }
    Ok(name)
}

/// A reason, in the query.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Reason {
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "reason")]
    pub reason: Option<String>,
}

/// A reason, in the body.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReasonBody {
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "reason")]
    pub reason: Option<String>,
}

/// A reason that must be given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredReason {
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "required_reason")]
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
    Problem::invalid(ProblemPlace::at(pointer, detail))
}

/// Reads what a token or an account may do, of a body with `only_jobs`.
pub fn grant(role: Role, only_jobs: Option<&str>) -> Result<Grant, Problem> {
    Ok(Grant { role, only_jobs: job_scope(only_jobs)? })
}

/// Reads the field `only_jobs`.
pub fn job_scope(only_jobs: Option<&str>) -> Result<Option<JobScope>, Problem> {
    let only_jobs = only_jobs.map(str::parse).transpose();
    only_jobs.map_err(|problem: String| problem_of_field("/only_jobs", &problem))
}

/// Refuses a request for a parameter of its path or query.
pub fn problem_of_parameter(name: &str, detail: &str) -> Problem {
    let (parameter, detail) = (Some(name.to_owned()), detail.to_owned());
    Problem::invalid(ProblemPlace { pointer: None, parameter, line: None, detail })
}
