//! Lints the day fields: where both restrict the days, the expression has two meanings, and `days` says which.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Code, Finding, Severity};
use crate::cron::{CronError, DayRule, Dialect, Dst, Expression, restricts_days_twice};
use crate::job::{JobSpec, Schedule};
use crate::zone::Zone;

/// Number of firings that are shown of each meaning.
const SHOWN_FIRINGS: usize = 3;

/// The two meanings of an expression whose day fields both restrict the days, for a job that says no `days`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DayMeanings {
    /// The one that it has without `days`.
    pub in_force: DayRule,
    /// The next firings if both fields must select a day, at most three; empty: it never fires.
    pub both: Vec<DateTime<Utc>>,
    /// The next firings if either field suffices, at most three; empty: it never fires.
    pub either: Vec<DateTime<Utc>>,
}

impl DayMeanings {
    /// Returns the meanings of an expression of the job called `name`, after `now`; `None` if it has one alone.
    ///
    /// # Errors
    ///
    /// [`CronError`] if it does not parse.
    pub(super) fn of_expression(
        text: &str,
        name: &str,
        zone: Zone,
        dst: Dst,
        now: DateTime<Utc>,
    ) -> Result<Option<Self>, CronError> {
        if !restricts_days_twice(text) {
            return Ok(None);
        }
        let read = |days| Expression::parse_with_days(text, Dialect::Any, name, days);
        let firings = |rule| -> Result<Vec<_>, CronError> {
            let firings = read(Some(rule))?.iter_after(now, zone, dst);
            Ok(firings.take(SHOWN_FIRINGS).collect())
        };
        Ok(Some(Self {
            in_force: read(None)?.day_rule(),
            both: firings(DayRule::Both)?,
            either: firings(DayRule::Either)?,
        }))
    }

    /// Returns the meanings of a job's expression, after `now`; `None` if it has one alone, or the job says `days`.
    ///
    /// Looks at the expression, not at the job's other limits: excluded days count as firings.
    pub fn of_job(spec: &JobSpec, now: DateTime<Utc>) -> Option<Self> {
        let (Schedule::Cron { expression }, None) = (&spec.schedule, spec.days) else {
            return None;
        };
        Self::of_expression(expression, &spec.name, spec.timezone, spec.dst, now).ok().flatten()
    }

    /// Returns both meanings with their firings on the clocks of `zone`; a fragment for people.
    pub fn describe(&self, zone: Zone) -> String {
        let [both, either] = [&self.both, &self.either].map(|firings| shown(firings, zone));
        let meaning = match self.in_force {
            DayRule::Either => format!(
                "a day fires that either selects ({either}), not only one that both select ({both})"
            ),
            DayRule::Both => format!(
                "only a day fires that both select ({both}), since one begins with *, not each that \
                 either selects ({either})"
            ),
        };
        format!("both day fields restrict the days, and days is missing: as in cron, {meaning}")
    }

    /// Returns what to write for each meaning, the one in force first; a fragment for people.
    pub const fn instead(&self) -> &'static str {
        match self.in_force {
            DayRule::Either => "days = \"either\" to keep this, or days = \"both\"",
            DayRule::Both => "days = \"both\" to keep this, or days = \"either\"",
        }
    }

    /// Returns them as a finding.
    pub(super) fn finding(&self, zone: Zone) -> Finding {
        Finding::new(Code::DayFields, Severity::Warning, self.describe(zone), self.instead())
    }
}

fn shown(firings: &[DateTime<Utc>], zone: Zone) -> String {
    let texts = firings.iter().map(|at| zone.at(*at).format("%a %F %T").to_string());
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "never".to_owned() } else { texts.join(", ") }
}
