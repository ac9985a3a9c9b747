//! The ledger strip: the disposition of each of a job's last firings, as cells that lead to their explanations.

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::plan::Timetable;
use sexton_operations::error::OperationError;
use sexton_operations::ledger::{ExplainedFiring, FiringSelector, explain};
use sexton_operations::text;
use sexton_store::Store;
use sexton_store::jobs::Job;

use crate::pages::shell::instant::in_address;

/// Firings of a strip.
const MAX_CELLS: usize = 100;
/// Firings that are read at most: a schedule that was denser before has more than the present one in the same time.
const MAX_READ: usize = 1_000;
/// How far back a strip looks.
const MAX_DAYS_BACK: TimeDelta = TimeDelta::days(400);
/// Longest title of a cell, in characters.
const MAX_TITLE_CHARS: usize = 300;
/// Width and height of a cell, in pixels.
const WIDTH: u32 = 10;
const HEIGHT: u32 = 26;

/// What became of a firing, as far as a cell shows it. The height of its bar says it to those who see no colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Ran,
    UnderWay,
    Failed,
    GivenUp,
    Skipped,
    NotRun,
    Unknown,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Ran,
        Self::UnderWay,
        Self::Failed,
        Self::GivenUp,
        Self::Skipped,
        Self::NotRun,
        Self::Unknown,
    ];

    /// Judges a disposition by its word.
    fn of(word: &str) -> Self {
        match word {
            "ran" => Self::Ran,
            "running" | "queued" | "due" | "not_yet" => Self::UnderWay,
            "failed" => Self::Failed,
            "discarded" | "cancelled" => Self::GivenUp,
            "skipped" | "coalesced" => Self::Skipped,
            "unknown" => Self::Unknown,
            _ => Self::NotRun,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::UnderWay => "under-way",
            Self::Failed => "failed",
            Self::GivenUp => "given-up",
            Self::Skipped => "skipped",
            Self::NotRun => "not-run",
            Self::Unknown => "unknown",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Ran => "ran, and succeeded",
            Self::UnderWay => "due or under way",
            Self::Failed => "failed",
            Self::GivenUp => "cancelled, or failed and given up",
            Self::Skipped => "skipped, or another firing ran for it",
            Self::NotRun => "did not run",
            Self::Unknown => "no record is left",
        }
    }

    const fn bar_height(self) -> u32 {
        match self {
            Self::Ran => HEIGHT,
            Self::UnderWay => 20,
            Self::Failed => 16,
            Self::GivenUp => 12,
            Self::Skipped => 8,
            Self::NotRun => 4,
            Self::Unknown => 1,
        }
    }
}

/// The bar of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bar(Kind);

impl HtmlSafe for Bar {}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, bar) = (self.0.class(), self.0.bar_height());
        let y = HEIGHT - bar;
        write!(
            f,
            r#"<svg class="bar bar-{class}" aria-hidden="true" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"><rect class="slot" width="{WIDTH}" height="{HEIGHT}"/><rect y="{y}" width="{WIDTH}" height="{bar}"/></svg>"#
        )
    }
}

/// A firing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    pub(super) bar: Bar,
    /// When, and what became of it.
    pub(super) title: String,
    /// The value of `at` in the address that explains it.
    pub(super) at: String,
}

/// A kind of the strip's firings, and their number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LegendEntry {
    pub(super) bar: Bar,
    pub(super) label: &'static str,
    pub(super) count: usize,
}

/// The strip.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Strip {
    pub(super) cells: Vec<Cell>,
    pub(super) legend: Vec<LegendEntry>,
    pub(super) first: Option<DateTime<Utc>>,
    pub(super) last: Option<DateTime<Utc>>,
    /// The value of `before` in the address of the firings before these; `None`: the strip is not full.
    pub(super) older: Option<String>,
}

/// Reads the last firings of a job before `until`.
pub(super) async fn read(
    store: &Store,
    job: &Job,
    until: DateTime<Utc>,
) -> Result<Strip, OperationError> {
    let timetable = job.spec().ok().and_then(|spec| Timetable::of(&spec).ok());
    let Some(timetable) = timetable else { return Ok(Strip::default()) };
    let earliest = until - MAX_DAYS_BACK;
    let since = timetable.nth_last(earliest.max(job.created_at), until, MAX_CELLS as u64);
    let mut since = since.unwrap_or(earliest);
    while since < until {
        let selector = FiringSelector::Range { since, until, limit: MAX_READ };
        let found = explain(store, job, selector, None).await?;
        if found.next_cursor.is_none() {
            return Ok(strip(found.firings));
        }
        // An earlier schedule was denser: the newest firings were not reached.
        since += (until - since) * 9 / 10 + TimeDelta::microseconds(1);
    }
    Ok(Strip::default())
}

fn strip(mut firings: Vec<ExplainedFiring>) -> Strip {
    let left_out = firings.len().saturating_sub(MAX_CELLS);
    firings.drain(..left_out);
    let kinds: Vec<Kind> = firings.iter().map(|firing| Kind::of(&firing.disposition)).collect();
    let counts = Kind::ALL.map(|kind| (kind, kinds.iter().filter(|one| **one == kind).count()));
    let (first, last) = (firings.first(), firings.last());
    let is_full = firings.len() == MAX_CELLS;
    Strip {
        first: first.map(|firing| firing.scheduled_for),
        last: last.map(|firing| firing.scheduled_for),
        older: first.filter(|_| is_full).map(|firing| in_address(firing.scheduled_for)),
        cells: firings.iter().zip(kinds).map(|(firing, kind)| cell(firing, kind)).collect(),
        legend: counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| LegendEntry { bar: Bar(kind), label: kind.label(), count })
            .collect(),
    }
}

fn cell(firing: &ExplainedFiring, kind: Kind) -> Cell {
    let when = text::instant(firing.scheduled_for);
    let title = text::line(&format!("{when}: {}", firing.why), MAX_TITLE_CHARS);
    Cell { bar: Bar(kind), title, at: in_address(firing.scheduled_for) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firing(second: i64, disposition: &str) -> ExplainedFiring {
        ExplainedFiring {
            scheduled_for: DateTime::from_timestamp(second, 0).unwrap(),
            execution_key: String::new(),
            revision: Some(1),
            disposition: disposition.to_owned(),
            why: "the sentence".to_owned(),
            actor: None,
            reason: None,
            into_key: None,
            due_at: None,
            execution: None,
            timeline: None,
        }
    }

    #[test]
    fn the_newest_firings_are_shown_and_each_is_counted_once() {
        let mut firings: Vec<ExplainedFiring> = (0..150).map(|at| firing(at, "ran")).collect();
        firings.push(firing(150, "failed"));
        firings.push(firing(151, "over_limit"));
        let strip = strip(firings);
        assert_eq!(strip.cells.len(), MAX_CELLS);
        assert_eq!(strip.legend.iter().map(|entry| entry.count).sum::<usize>(), MAX_CELLS);
        assert_eq!(strip.last.unwrap().timestamp(), 151);
        assert_eq!(strip.older.as_deref(), Some("1970-01-01T00:00:52Z"));
        let labels: Vec<&str> = strip.legend.iter().map(|entry| entry.label).collect();
        assert_eq!(labels, ["ran, and succeeded", "failed", "did not run"]);
    }

    #[test]
    fn no_two_kinds_look_the_same_without_colours() {
        let mut heights = Kind::ALL.map(Kind::bar_height);
        heights.sort_unstable();
        assert!(heights.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
