//! `ETag` and `If-Match` (RFC 9110): nobody overwrites a change that he has not seen.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{Problem, ProblemCode, ProblemPlace};

/// The revision that the sender has seen, as it was sent.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct IfMatch {
    /// The `ETag` of the job that the sender has seen.
    #[serde(rename = "If-Match")]
    #[param(example = "\"7\"")]
    if_match: String,
}

/// As [`IfMatch`], where it may be absent.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct OptionalIfMatch {
    /// The `ETag` of the job that the sender has seen; needed without `dry_run`.
    #[serde(rename = "If-Match")]
    #[param(example = "\"7\"")]
    _if_match: Option<String>,
}

/// Returns the `ETag` of a revision.
pub fn etag(revision: i32) -> HeaderValue {
    HeaderValue::try_from(format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

impl IfMatch {
    /// Reads it from the request's headers; `None`: it has none.
    fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(IF_MATCH)?.to_str().unwrap_or_default();
        Some(Self { if_match: text.to_owned() })
    }

    /// Returns the revision.
    ///
    /// # Errors
    ///
    /// 400, with the parameter, for a text that is no `ETag` of a job.
    pub fn revision(&self) -> Result<i32, Problem> {
        let text = self.if_match.trim();
        let text = text.strip_prefix("W/").unwrap_or(text);
        let digits = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let revision = digits.and_then(|digits| digits.parse().ok());
        revision.ok_or_else(|| {
            let detail = "is no ETag of a job; send back that of GET, such as \"7\"".to_owned();
            let parameter = Some("If-Match".to_owned());
            Problem::invalid(ProblemPlace { pointer: None, parameter, line: None, detail })
        })
    }
}

impl IfMatch {
    /// 428: it is missing.
    pub fn missing() -> Problem {
        let detail =
            "send the ETag of the job that you have seen, as `If-Match: \"7\"`; GET shows it";
        let status = StatusCode::PRECONDITION_REQUIRED;
        let place = ProblemPlace {
            pointer: None,
            parameter: Some("If-Match".to_owned()),
            line: None,
            detail: "is missing".to_owned(),
        };
        Problem { errors: vec![place], ..Problem::new(status, ProblemCode::Invalid, detail) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Self::read(&parts.headers).ok_or_else(Self::missing)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Problem> {
        Ok(Self::read(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_read_as_it_was_sent() {
        for text in ["\"7\"", " \"7\" ", "W/\"7\""] {
            assert_eq!(IfMatch { if_match: text.to_owned() }.revision().unwrap(), 7, "{text}");
        }
        for text in ["", "7", "*", "\"\"", "\"seven\"", "\"7\", \"8\""] {
            let refused = IfMatch { if_match: text.to_owned() }.revision().unwrap_err();
            assert_eq!(refused.errors[0].parameter.as_deref(), Some("If-Match"), "{text}");
        }
        assert_eq!(etag(12), "\"12\"");
    }
}
