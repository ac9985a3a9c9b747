//! How another scheduler combines the two day fields, for the field `days` of a job.
//!
//! Each answers for an expression whose day fields both restrict the days, and `None` for others, where all agree.

use sexton_model::cron::{DayRule, Dialect, Expression, restricts_days_twice};

/// Vixie's cron and its descendants: either field suffices, unless one begins with `*`.
pub(super) fn cron_days(schedule: &str) -> Option<DayRule> {
    if !restricts_days_twice(schedule) {
        return None;
    }
    // What a job means that says nothing is what cron means.
    Expression::parse(schedule, Dialect::Any, "").ok().map(|expression| expression.day_rule())
}

/// Kubernetes: either field suffices, unless one has an item `*`, `?` or `*/1`. So `*/2` leaves it at either, which cron
/// does not.
pub(super) fn kubernetes_days(schedule: &str) -> Option<DayRule> {
    if !restricts_days_twice(schedule) {
        return None;
    }
    let mut fields = schedule.split_ascii_whitespace().rev();
    let (day_of_week, day_of_month) = (fields.next()?, fields.nth(1)?);
    let starred = [day_of_month, day_of_week].iter().any(|field| field.split(',').any(is_star));
    Some(if starred { DayRule::Both } else { DayRule::Either })
}

fn is_star(item: &str) -> bool {
    let (base, step) = item.split_once('/').unwrap_or((item, "1"));
    matches!(base, "*" | "?") && step.parse() == Ok(1_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_restricting_day_fields_keep_their_meaning_of_cron_and_of_kubernetes() {
        use DayRule::{Both, Either};
        for (days, cron, kubernetes) in [
            ("13 * FRI", Some(Either), Some(Either)),
            ("1-31 * MON", Some(Either), Some(Either)),
            ("*/2 * MON", Some(Both), Some(Either)),
            ("1 * */3", Some(Both), Some(Either)),
            ("*/1 * MON", Some(Both), Some(Both)),
            ("*,13 * MON", Some(Both), Some(Both)),
            ("13,* * MON", Some(Either), Some(Both)),
            ("13 * 5,?", Some(Either), Some(Both)),
            ("* * MON", None, None),
            ("13 * ?", None, None),
            ("nonsense * MON", None, Some(Either)),
        ] {
            let schedule = format!("0 0 {days}");
            assert_eq!(cron_days(&schedule), cron, "{schedule}");
            assert_eq!(kubernetes_days(&schedule), kubernetes, "{schedule}");
        }
        for text in ["@daily", "", "13 FRI"] {
            assert_eq!((cron_days(text), kubernetes_days(text)), (None, None), "{text}");
        }
    }
}
