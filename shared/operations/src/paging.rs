//! Pages of lists, and the cursors between them.
//!
//! A cursor is the position of a page's last row; the next page begins behind it. So rows that come and go meanwhile
//! neither move nor repeat the others. To its users a cursor is an opaque text: it names its list and order, and a
//! list refuses the cursor of another one.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::InvalidRequest;
use crate::text::line;

/// Maximum number of rows of a page.
pub const MAX_PAGE_ROWS: i64 = 1_000;
/// Maximum length of a cursor, in bytes; no written one is longer.
const MAX_CURSOR_BYTES: usize = 2_000;
/// Maximum length of the quoted input in a problem, in characters.
const MAX_ECHO_CHARS: usize = 60;

/// A list with pages. Each order of a list counts as a list of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagedList {
    /// Jobs by name.
    Jobs,
    /// Deleted jobs, the latest deletion first.
    DeletedJobs,
    /// Firings of a job, the oldest first.
    Firings,
    /// Executions, the latest claim first.
    Executions,
    /// Failed executions, the latest failure first.
    NewestFailures,
    /// Failed executions, the oldest failure first.
    OldestFailures,
    /// Failure groups, the largest first.
    LargestGroups,
    /// Failure groups, the latest failure first.
    LatestGroups,
    /// Failure groups, the newest group first.
    NewestGroups,
    /// Bulks, the newest first.
    Bulks,
    /// Items of a bulk, in its order.
    BulkItems,
    /// Requests for approval, the newest first.
    Approvals,
    /// Unknown messages, the oldest first.
    UnknownMessages,
    /// Operators' actions, the newest first.
    Actions,
    /// Flows, the newest first.
    Flows,
    /// Incidents, the newest first.
    Incidents,
    /// Notifications, the newest first.
    Notifications,
    /// Monitors by the names of their jobs.
    Monitors,
    /// Checks by name.
    Checks,
    /// Gaps of all jobs, the latest record first.
    Gaps,
    /// Gaps of a job, the latest firing first.
    GapsOfJob,
}

impl PagedList {
    const fn tag(self) -> &'static str {
        match self {
            Self::Jobs => "j",
            Self::DeletedJobs => "jd",
            Self::Firings => "f",
            Self::Executions => "e",
            Self::NewestFailures => "fn",
            Self::OldestFailures => "fo",
            Self::LargestGroups => "gs",
            Self::LatestGroups => "gl",
            Self::NewestGroups => "gn",
            Self::Bulks => "b",
            Self::BulkItems => "bi",
            Self::Approvals => "v",
            Self::UnknownMessages => "u",
            Self::Actions => "a",
            Self::Flows => "w",
            Self::Incidents => "i",
            Self::Notifications => "n",
            Self::Monitors => "m",
            Self::Checks => "k",
            Self::Gaps => "p",
            Self::GapsOfJob => "pj",
        }
    }
}

/// Where the next page of a list begins, as a text of letters, digits, `-` and `_`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cursor(String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Cursor {
    /// Returns the cursor behind `position` in `list`.
    pub fn behind(list: PagedList, position: &impl Serialize) -> Self {
        // Positions are numbers, texts and instants, all of which are JSON.
        let json = serde_json::to_vec(&(list.tag(), position)).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(json))
    }

    /// Parses the cursor of a page of `list`; `None`: none is given.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] of the field `cursor` for a text that is no cursor of this list.
    pub fn read<P: DeserializeOwned>(
        list: PagedList,
        text: Option<&str>,
    ) -> Result<Option<P>, InvalidRequest> {
        let Some(text) = text else { return Ok(None) };
        let parsed = (text.len() <= MAX_CURSOR_BYTES)
            .then(|| URL_SAFE_NO_PAD.decode(text).ok())
            .flatten()
            .and_then(|json| serde_json::from_slice::<(String, P)>(&json).ok())
            .filter(|(tag, _)| tag == list.tag());
        parsed.map(|(_, position)| Some(position)).ok_or_else(|| {
            let echo = line(text, MAX_ECHO_CHARS);
            let problem = format!(
                "{echo:?} is no cursor of this list in this order; copy the one that its previous page ended with \
                 (next_cursor in JSON)"
            );
            InvalidRequest::field("cursor", problem)
        })
    }
}

/// A page of a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows, in the list's order.
    pub items: Vec<T>,
    /// The cursor of the next page; `None`: this is the last one.
    pub next_cursor: Option<Cursor>,
}

impl<T> Page<T> {
    /// Makes a page of at most `limit` rows from up to `limit + 1` rows that were read: the extra one says that
    /// another page follows. `position` is that of a row.
    pub fn from_rows<P: Serialize>(
        mut rows: Vec<T>,
        limit: i64,
        list: PagedList,
        position: impl Fn(&T) -> P,
    ) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let end = rows.last().filter(|_| more);
        let next_cursor = end.map(|row| Cursor::behind(list, &position(row)));
        Self { items: rows, next_cursor }
    }

    /// Converts each row.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next_cursor: self.next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let at: DateTime<Utc> = "1969-12-31T23:59:59.123456Z".parse().unwrap();
        let position = (at, Uuid::from_u128(u128::MAX - 7));
        let cursor = Cursor::behind(PagedList::OldestFailures, &position).to_string();
        assert!(
            cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)),
            "{cursor}"
        );
        let read = Cursor::read(PagedList::OldestFailures, Some(&cursor)).unwrap();
        assert_eq!(read, Some(position));
        assert_eq!(Cursor::read::<i64>(PagedList::Bulks, None).unwrap(), None);
    }

    #[test]
    fn a_text_that_is_no_cursor_of_the_list_is_refused_with_the_place_where_cursors_come_from() {
        let other = Cursor::behind(PagedList::Bulks, &7).to_string();
        let of_text = Cursor::behind(PagedList::Actions, &"seven").to_string();
        let cut = &other[..other.len() - 1];
        let long = "A".repeat(MAX_CURSOR_BYTES + 1);
        for text in ["", "ä", "7", "--", &other, &of_text, cut, &long] {
            let refused = Cursor::read::<i64>(PagedList::Actions, Some(text)).unwrap_err();
            assert!(refused.to_string().contains("next_cursor"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_page_has_a_cursor_exactly_if_another_row_follows() {
        let page = |read, limit| {
            Page::from_rows((1..=read).collect(), limit, PagedList::Bulks, |id: &i64| *id)
        };
        assert_eq!(page(2, 2), Page { items: vec![1, 2], next_cursor: None });
        let cursor = Cursor::behind(PagedList::Bulks, &2);
        assert_eq!(page(3, 2), Page { items: vec![1, 2], next_cursor: Some(cursor) });
        assert_eq!(page(0, 2), Page { items: vec![], next_cursor: None });
    }
}
