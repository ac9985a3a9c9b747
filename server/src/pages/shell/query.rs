//! Reads the query of a page's address, and makes addresses that differ from it in one parameter.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use url::form_urlencoded::{Serializer, byte_serialize, parse};

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
        let value: String = byte_serialize(value.as_bytes()).collect();
        let pair = format!("{name}={value}");
        let pairs: Vec<&str> = self.others(name).chain([pair.as_str()]).collect();
        format!("{}?{}", self.path, pairs.join("&"))
    }

    /// Returns the address without a parameter.
    fn without(&self, name: &str) -> String {
        let pairs: Vec<&str> = self.others(name).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", self.path, pairs.join("&"))
    }

    fn others(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_other = move |pair: &&str| pair.split('=').next() != Some(name);
        self.text.split('&').filter(|pair| !pair.is_empty()).filter(is_other)
    }

    /// The parameters as they stand in the address.
    pub(in crate::pages) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the addresses of the pages around this one.
    pub(in crate::pages) fn pages(&self, next_cursor: Option<&impl ToString>) -> Pages {
        let is_first = self.text.split('&').all(|pair| !pair.starts_with("cursor="));
        Pages {
            first: (!is_first).then(|| self.without("cursor")),
            next: next_cursor.map(|cursor| self.with("cursor", &cursor.to_string())),
        }
    }
}

/// Where the pages of a list lead. Lists are read forwards: the way to the page before is the browser's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::pages) struct Pages {
    /// The first page; `None`: it is this one.
    pub(in crate::pages) first: Option<String>,
    /// The next page; `None`: this is the last one.
    pub(in crate::pages) next: Option<String>,
}

impl Pages {
    /// Returns whether this is the only page.
    pub(in crate::pages) const fn is_only(&self) -> bool {
        self.first.is_none() && self.next.is_none()
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

/// Returns the address of a bulk's preview: its kind, and the pairs of a list's query that are kept.
pub(in crate::pages) fn bulk_address(
    path: &str,
    kind: &str,
    query: &str,
    is_kept: impl Fn(&str, &str) -> bool,
) -> String {
    address_of_pairs(path, &[("kind", kind)], query, is_kept)
}

/// Returns an address with these pairs, and those of a list's query that are kept. The latter are compared unescaped, as the list reads
/// them: `%73tate` is `state`.
pub(in crate::pages) fn address_of_pairs(
    path: &str,
    first: &[(&str, &str)],
    query: &str,
    is_kept: impl Fn(&str, &str) -> bool,
) -> String {
    let mut pairs = Serializer::new(String::new());
    pairs.extend_pairs(first);
    pairs.extend_pairs(parse(query.as_bytes()).filter(|(name, value)| is_kept(name, value)));
    let pairs = pairs.finish();
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("{path}{mark}{pairs}")
}

/// Leaves out the pairs without a value. Names are escaped as this program does it, so that they can be compared: `%6Cimit` is `limit`.
pub(super) fn without_empty(query: &str) -> String {
    let set = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(_, value)| !value.is_empty());
    let pairs = set.map(|(name, value)| {
        let name: String = parse(name.as_bytes()).map(|(name, _)| name.into_owned()).collect();
        let name: String = byte_serialize(name.as_bytes()).collect();
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_was_left_empty_is_no_condition() {
        assert_eq!(without_empty("job=&text=a+b&since=&x"), "text=a+b");
        assert_eq!(without_empty(""), "");
        assert_eq!(without_empty("%63ursor=%61&a%5Bb=c+d"), "cursor=%61&a%5Bb=c+d");
    }

    #[test]
    fn what_a_bulk_does_not_take_over_from_a_list_is_left_out_however_it_is_written() {
        let query = "%6Cimit=5&text=a%26b+c&limit=7&label=team%3Db";
        let address = bulk_address("/failed/bulk", "discard", query, |name, _| name != "limit");
        assert_eq!(address, "/failed/bulk?kind=discard&text=a%26b+c&label=team%3Db");
        assert_eq!(bulk_address("/x", "cancel", "", |_, _| true), "/x?kind=cancel");
    }

    #[test]
    fn the_pages_around_one_keep_the_other_parameters() {
        let query =
            PageQuery { values: (), path: "/failed".to_owned(), text: "job=a&cursor=b".to_owned() };
        assert_eq!(query.with("cursor", "c d"), "/failed?job=a&cursor=c+d");
        let pages = query.pages(Some(&"x"));
        assert_eq!(pages.next.as_deref(), Some("/failed?job=a&cursor=x"));
        assert_eq!(pages.first.as_deref(), Some("/failed?job=a"));
        let text = String::new();
        let only = PageQuery { values: (), path: "/failed".to_owned(), text };
        assert!(only.pages(None::<&String>).is_only());
        let last = PageQuery { text: "cursor=b".to_owned(), ..only };
        let pages = last.pages(None::<&String>);
        assert_eq!((pages.first.as_deref(), pages.next), (Some("/failed"), None));
    }
}
