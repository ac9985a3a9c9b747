//! Reads parameters and bodies of requests. What cannot be understood is refused with its place.

use axum::body::Bytes;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use sexton_model::exact_json;

use crate::problem::{Problem, ProblemCode, ProblemPlace};

/// Parameters in the path.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

/// Parameters in the query. A parameter may be repeated if its type is a list; one that is unknown is refused.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

/// A body of JSON, which is an object. An empty body counts as `{}`.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T, S> FromRequestParts<S> for Path<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Self(value)).map_err(|rejection| {
            let (name, detail) = match rejection {
                PathRejection::FailedToDeserializePathParams(failed) => match failed.into_kind() {
                    ErrorKind::ParseErrorAtKey { key, value, expected_type } => {
                        (Some(key), format!("{value:?} is no {expected_type}"))
                    }
                    ErrorKind::DeserializeError { key, message, .. } => (Some(key), message),
                    other => (None, other.to_string()),
                },
                other => (None, other.body_text()),
            };
            Problem::invalid(ProblemPlace { pointer: None, parameter: name, line: None, detail })
        })
    }
}

impl<T, S> FromRequestParts<S> for Query<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        read_query(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Reads the text of a query.
pub(crate) fn read_query<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let reader = serde_html_form::Deserializer::from_bytes(text.as_bytes());
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        // Of a list the place in it says nothing: the parameter was repeated.
        let name = path.split('[').next().filter(|name| *name != ".");
        let parameter = name.map(str::to_owned);
        let detail = error.into_inner().to_string();
        Problem::invalid(ProblemPlace { pointer: None, parameter, line: None, detail })
    })
}

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            Problem::new(rejection.status(), ProblemCode::Invalid, rejection.body_text())
        })?;
        if bytes.is_empty() {
            return read_json(b"{}").map(Self);
        }
        if !is_json {
            let (status, detail) = (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send JSON, as `Content-Type: application/json`",
            );
            return Err(Problem::new(status, ProblemCode::Invalid, detail));
        }
        read_json(&bytes).map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = text.and_then(|text| text.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // The types would read an array, too, as their fields by position.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::invalid(ProblemPlace::at("", "the body must be a JSON object")));
    }
    exact_json::check(bytes)
        .map_err(|error| Problem::invalid(ProblemPlace::at("", error.to_string())))?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer(error.path());
        (pointer, error.into_inner().to_string())
    });
    let read = read.and_then(|value| {
        reader.end().map(|()| value).map_err(|error| (String::new(), error.to_string()))
    });
    read.map_err(|(pointer, detail)| {
        let pointer = Some(pointer);
        Problem::invalid(ProblemPlace { pointer, parameter: None, line: None, detail })
    })
}

/// The JSON pointer to where reading ended.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                format!("/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Unknown => String::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(PartialEq, Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(PartialEq, Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        #[serde(rename = "a/b")]
        value: u8,
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_with_a_pointer_to_it() {
        let refused = |text: &str| {
            let problem = read_json::<Example>(text.as_bytes()).unwrap_err();
            (problem.errors[0].pointer.clone().unwrap(), problem.errors[0].detail.clone())
        };
        let (pointer, detail) = refused(r#"{"items": [{"a/b": 1}, {"a/b": 300}]}"#);
        assert_eq!(pointer, "/items/1/a~1b");
        assert!(detail.contains("300"), "{detail}");
        let (pointer, detail) = refused(r#"{"items": [{"other": 1}]}"#);
        assert!(pointer.starts_with("/items/0") && detail.contains("other"), "{pointer} {detail}");
        assert!(refused(r#"{"items": []} x"#).1.contains("trailing"));
        assert!(refused("{").1.contains("EOF"));
        let long = r#"{"items": [{"a/b": 123456789012345678901234567890}]}"#;
        assert!(refused(long).1.starts_with("the integer 123456789012345678901234567890 does"));
        for text in ["[]", " [[]]", "null", "7", " "] {
            let (pointer, detail) = refused(text);
            assert!(pointer.is_empty() && detail.contains("JSON object"), "{text}: {detail}");
        }
        assert!(read_json::<Example>(b"\r\n\t {}").is_ok());
        assert_eq!(read_json::<Example>(b"{}").unwrap(), Example { items: Vec::new() });
    }
}
