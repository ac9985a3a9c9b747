//! Lints the text of an expression.
//!
//! The rules judge the notation, not the sets: `*/25` and `0,25,50` select the same, and only the first one looks like
//! every 25 minutes.

use chrono::{DateTime, NaiveDate, Utc};

use super::{Code, DayMeanings, Finding, Severity, lint_horizon, steps};
use crate::cron::{
    Anomaly, AnomalyKind, CronError, DayRule, Dialect, Dst, Expression, Fields, is_starred,
};
use crate::zone::Zone;

/// Returns the findings about an expression of the job called `name` that says `days` or not, at `now`: in the order of
/// the rules, each at most once, those about steps once for each field.
///
/// # Errors
///
/// [`CronError`] if it does not parse.
pub(super) fn findings_of(
    text: &str,
    name: &str,
    zone: Zone,
    dst: Dst,
    days: Option<DayRule>,
    now: DateTime<Utc>,
) -> Result<Vec<Finding>, CronError> {
    let expression = Expression::parse_with_days(text, Dialect::Any, name, days)?;
    let fields = Fields::split(text, Dialect::Any)?;
    if expression.next_after(now, zone, dst).is_none() {
        let message = "it never fires: nothing matches within 100 years";
        let instead = "choose a day that one of the months has";
        return Ok(vec![Finding::new(Code::NeverFires, Severity::Error, message, instead)]);
    }
    let mut findings = Vec::new();
    if days.is_none() {
        let meanings = DayMeanings::of_expression(text, name, zone, dst, now)?;
        findings.extend(meanings.map(|meanings| meanings.finding(zone)));
    }
    findings.extend(every_minute(fields));
    findings.extend(steps::too_large(fields, name));
    findings.extend(steps::uneven(fields));
    findings.extend(missing_day(fields, &expression));
    findings.extend(clock_change(fields, &expression, zone, dst, now));
    Ok(findings)
}

fn every_minute(fields: Fields<'_>) -> Option<Finding> {
    let Fields { second, minute, hour, .. } = fields;
    if minute != "*" || is_starred(hour) || second == "*" {
        return None;
    }
    let message = format!("every minute of hour {hour}: 60 times in each of these hours");
    let instead = format!("0 in place of the minute's * to run once: 0 {hour} …");
    Some(Finding::new(Code::EveryMinute, Severity::Warning, message, instead))
}

/// Finds a plain day that one of the selected months does not have.
fn missing_day(fields: Fields<'_>, expression: &Expression) -> Option<Finding> {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-'));
    if !plain(fields.day_of_month) || !matches!(fields.day_of_week, "*" | "?") {
        return None;
    }
    // A common year and a leap year suffice, because weekdays do not matter.
    let lacking = |year: i32| {
        (1..=12)
            .filter_map(move |month| NaiveDate::from_ymd_opt(year, month, 1))
            .filter(|first| expression.sets().selects_month(*first))
            .filter(|first| expression.sets().days_in(*first) == 0)
            .map(|first| first.format("%B").to_string())
            .collect::<Vec<_>>()
    };
    let (common, leap) = (lacking(2025), lacking(2028));
    let message = match (common.as_slice(), leap.is_empty()) {
        ([], _) => return None,
        (_, true) => "it fires in leap years alone".to_owned(),
        (months, false) => format!("it does not fire in {}", months.join(", ")),
    };
    let instead = "L in the day of month for the last day";
    let message = format!("day {}: {message}", fields.day_of_month);
    Some(Finding::new(Code::MissingDay, Severity::Warning, message, instead))
}

/// Finds the first clock change that matters, and counts the further ones.
fn clock_change(
    fields: Fields<'_>,
    expression: &Expression,
    zone: Zone,
    dst: Dst,
    now: DateTime<Utc>,
) -> Option<Finding> {
    // The clocks do not affect a step of minutes over the whole day.
    if expression.is_wildcard() && is_starred(fields.hour) {
        return None;
    }
    let anomalies = expression.anomalies(now, lint_horizon(now), zone, dst);
    let bad = |anomaly: &&Anomaly| anomaly.kind != AnomalyKind::FirstPass;
    let first = anomalies.iter().find(bad).or_else(|| anomalies.first())?;
    let severity = match first.kind {
        AnomalyKind::FirstPass => Severity::Note,
        AnomalyKind::Moved | AnomalyKind::Skipped | AnomalyKind::Doubled => Severity::Warning,
    };
    let more = match anomalies.len() {
        1 => String::new(),
        count => format!("; {} more changes within two years", count - 1),
    };
    let message = format!("{}{more}", first.describe(zone));
    let instead = match first.kind {
        AnomalyKind::Skipped if expression.is_wildcard() => {
            "a minute and an hour without *, whose firings are moved behind the gap"
        }
        AnomalyKind::Skipped => "dst = \"vixie\", or a time at which clocks do not change",
        AnomalyKind::Doubled if !expression.is_wildcard() => "dst = \"vixie\" to fire once",
        _ => "a time at which clocks do not change, if it matters",
    };
    Some(Finding::new(Code::ClockChange, severity, message, instead))
}
