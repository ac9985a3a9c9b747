//! The frame of every page: navigation, the caller, the instant at which it was made; and how pages write times and links.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use askama::filters::HtmlSafe;
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use sexton_model::access::Role;
use sexton_model::duration;
use sexton_operations::text;

use super::assets;
use super::visit::Site;
use crate::access::Caller;

/// Longest text in a table, in characters.
const MAX_CELL_CHARS: usize = 200;

/// A part of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pages) enum Section {
    /// `/`
    Overview,
    /// `/jobs`
    Jobs,
    /// `/firings`
    Firings,
    /// `/executions`
    Executions,
    /// `/failed`
    Failed,
    /// `/bulks`
    Bulks,
    /// `/approvals`
    Approvals,
    /// `/incidents`
    Incidents,
    /// `/monitors`
    Monitors,
    /// `/workers`
    Workers,
    /// `/audit`
    Audit,
    /// `/settings`
    Settings,
    /// None of the navigation's.
    Other,
}

/// A link of the navigation.
#[derive(Debug)]
pub(in crate::pages) struct Link {
    pub(in crate::pages) section: Section,
    pub(in crate::pages) path: &'static str,
    pub(in crate::pages) text: &'static str,
}

/// In the order of the navigation.
const LINKS: [Link; 12] = [
    Link { section: Section::Overview, path: "/", text: "Overview" },
    Link { section: Section::Jobs, path: "/jobs", text: "Jobs" },
    Link { section: Section::Firings, path: "/firings", text: "Firings" },
    Link { section: Section::Executions, path: "/executions", text: "Executions" },
    Link { section: Section::Failed, path: "/failed", text: "Failed" },
    Link { section: Section::Bulks, path: "/bulks", text: "Bulks" },
    Link { section: Section::Approvals, path: "/approvals", text: "Approvals" },
    Link { section: Section::Incidents, path: "/incidents", text: "Incidents" },
    Link { section: Section::Monitors, path: "/monitors", text: "Monitors" },
    Link { section: Section::Workers, path: "/workers", text: "Workers" },
    Link { section: Section::Audit, path: "/audit", text: "Audit" },
    Link { section: Section::Settings, path: "/settings", text: "Settings" },
];

/// The frame of a page.
#[derive(Clone, Debug)]
pub(in crate::pages) struct Frame {
    pub(in crate::pages) base: Arc<str>,
    /// `None`: nobody knows who looks.
    pub(in crate::pages) caller: Option<Caller>,
    pub(in crate::pages) section: Section,
    /// By the database's clock.
    pub(in crate::pages) now: DateTime<Utc>,
    /// The page's address, with its query.
    pub(in crate::pages) path: String,
    /// How many requests wait for approval.
    pub(in crate::pages) waiting: i64,
}

impl Frame {
    /// Returns what surrounds a page for people whom nobody knows yet; no such page shows a time.
    pub(in crate::pages) fn of_nobody(site: &Site, section: Section) -> Self {
        let (base, now, path) = (Arc::clone(&site.base), DateTime::UNIX_EPOCH, String::new());
        Self { base, caller: None, section, now, path, waiting: 0 }
    }

    pub(in crate::pages) fn links(&self) -> &'static [Link] {
        &LINKS
    }

    /// Returns how many things wait in the part of the console that a link leads to; 0: nothing to say.
    pub(in crate::pages) fn waiting_at(&self, link: &Link) -> i64 {
        if link.section == Section::Approvals { self.waiting } else { 0 }
    }

    /// Returns an address of this console.
    pub(in crate::pages) fn url(&self, path: impl fmt::Display) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the address of a file that never changes.
    pub(in crate::pages) fn asset(&self, name: &str) -> String {
        format!("{}/assets/{}", self.base, assets::versioned(name))
    }

    /// Returns whether the visitor may do what needs `role`.
    pub(in crate::pages) fn may(&self, role: Role) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.role >= role)
    }

    /// Returns why a visitor may not do what needs `role`.
    pub(in crate::pages) fn why_not(&self, role: Role) -> String {
        let has = self.caller.as_ref().map_or("no role", |caller| caller.role.as_str());
        format!("this needs the role {}; you have {has}", role.as_str())
    }

    /// Writes how long ago an instant was, and itself beside.
    pub(in crate::pages) const fn ago(&self, at: &DateTime<Utc>) -> Time {
        Time { at: *at, now: Some(self.now) }
    }

    /// Writes an instant.
    pub(in crate::pages) const fn time(&self, at: &DateTime<Utc>) -> Time {
        Time { at: *at, now: None }
    }

    /// Writes a time in milliseconds.
    pub(in crate::pages) fn duration(&self, from: &DateTime<Utc>, to: &DateTime<Utc>) -> String {
        text::duration((*to - *from).num_milliseconds())
    }

    /// Writes a limit in milliseconds as definitions write it: `2h`, `90m`.
    pub(in crate::pages) fn limit(&self, ms: impl Borrow<i64>) -> String {
        duration::format(Duration::from_millis(ms.borrow().max(&0).unsigned_abs()))
    }

    /// Returns a word of a row for people: `pool_without_workers` without its underscores.
    pub(in crate::pages) fn words(&self, word: &str) -> String {
        self.cell(&word.replace('_', " "))
    }

    /// Names what an incident is about: a job, a check, a group and a channel by their names, the platform by what is wrong with it.
    pub(in crate::pages) fn subject(&self, kind: &str, name: &str) -> String {
        match kind {
            "platform" => format!("platform: {}", self.words(&name.replace(':', ": "))),
            kind => format!("{kind} {}", self.cell(name)),
        }
    }

    /// Returns a text on one line that fits into a cell.
    pub(in crate::pages) fn cell(&self, text: &str) -> String {
        text::line(text, MAX_CELL_CHARS)
    }

    /// Returns a text with its line breaks, what would disturb a reader escaped.
    pub(in crate::pages) fn lines(&self, text: &str) -> String {
        text::lines(text)
    }

    /// Returns JSON for people.
    pub(in crate::pages) fn json(&self, value: &Value) -> String {
        // A value is always JSON.
        text::ascii_controls(&serde_json::to_string_pretty(value).unwrap_or_default())
    }
}

/// An instant, as `<time>`. What has the class `at` is written anew by the script, by the clock that a person has chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::pages) struct Time {
    at: DateTime<Utc>,
    /// `Some`: as the distance from then.
    now: Option<DateTime<Utc>>,
}

impl HtmlSafe for Time {}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let absolute = self.at.format("%Y-%m-%d %H:%M:%S UTC");
        match self.now {
            Some(now) => write!(
                f,
                r#"<time datetime="{exact}">{} <span class="at">{absolute}</span></time>"#,
                text::ago(self.at, now)
            ),
            None => write!(f, r#"<time datetime="{exact}" class="at">{absolute}</time>"#),
        }
    }
}

/// Renders a page.
pub(in crate::pages) fn html(template: &impl askama::Template) -> Response {
    match template.render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
