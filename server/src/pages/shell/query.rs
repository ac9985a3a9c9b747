//! Reads the query of a page's address, and makes addresses that differ from it in one parameter.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use url::form_urlencoded::byte_serialize;

use super::refusal::Refusal;
use super::visit::Site;
use crate::api::read_query;

/// The parameters of an address. A field of a form that was left empty counts as absent.
#[derive(Clone, Debug)]
pub(in crate::pages) struct PageQuery<T> {
    pub(in crate::pages) values: T,
    /// The path, with the base path.
    path: String,
    /// The query without empty parameters.
    text: String,
}

impl<T> PageQuery<T> {
    /// Returns the address with a parameter set to another value.
    pub(in crate::pages) fn with(&self, name: &str, value: &str) -> String {
        let prefix = format!("{name}=");
        let others =
            self.text.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with(&prefix));
        let value: String = byte_serialize(value.as_bytes()).collect();
        let pairs: Vec<String> =
            others.map(str::to_owned).chain([format!("{prefix}{value}")]).collect();
        format!("{}?{}", self.path, pairs.join("&"))
    }

    /// The parameters as they stand in the address.
    pub(in crate::pages) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the address of the next page of a list.
    pub(in crate::pages) fn next(&self, cursor: Option<&impl ToString>) -> Option<String> {
        cursor.map(|cursor| self.with("cursor", &cursor.to_string()))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Site> for PageQuery<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Refusal> {
        let path = format!("{}{}", site.base, parts.uri.path());
        let text = without_empty(parts.uri.query().unwrap_or_default());
        match read_query(&text) {
            Ok(values) => Ok(Self { values, path, text }),
            Err(problem) => Err(Refusal::new(problem, site, path)),
        }
    }
}

/// Leaves out the pairs without a value.
pub(super) fn without_empty(query: &str) -> String {
    let is_set = |pair: &&str| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty());
    query.split('&').filter(is_set).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_was_left_empty_is_no_condition() {
        assert_eq!(without_empty("job=&text=a+b&since=&x"), "text=a+b");
        assert_eq!(without_empty(""), "");
    }

    #[test]
    fn the_next_page_keeps_the_other_parameters() {
        let query =
            PageQuery { values: (), path: "/failed".to_owned(), text: "job=a&cursor=b".to_owned() };
        assert_eq!(query.with("cursor", "c d"), "/failed?job=a&cursor=c+d");
        assert_eq!(query.next(Some(&"x")), Some("/failed?job=a&cursor=x".to_owned()));
        assert_eq!(query.next(None::<&String>), None);
    }
}
