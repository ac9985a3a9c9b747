//! Parsed cron expressions, kept: jobs share few of them, and parsing one takes as long as the rest
//! of planning a job (measured: 10 to 40 µs against 0.1 µs for the next firing).

use std::collections::HashMap;
use std::sync::Arc;

use sexton_model::job::Schedule;
use sexton_model::plan::{Timetable, TimetableError};

/// Expressions kept, about a kilobyte each. When there are more, all are forgotten and the ones in
/// use come back.
const MOST: usize = 1_000;

/// Timetables by cron expression.
#[derive(Debug, Default)]
pub(crate) struct Timetables(HashMap<String, Arc<Timetable>>);

impl Timetables {
    /// The timetable of `schedule`.
    pub(crate) fn of(&mut self, schedule: &Schedule) -> Result<Arc<Timetable>, TimetableError> {
        let Schedule::Cron { expression } = schedule else {
            return Timetable::new(schedule).map(Arc::new);
        };
        if let Some(known) = self.0.get(expression) {
            return Ok(Arc::clone(known));
        }
        let timetable = Arc::new(Timetable::new(schedule)?);
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(expression.clone(), Arc::clone(&timetable));
        Ok(timetable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(expression: String) -> Schedule {
        Schedule::Cron { expression }
    }

    #[test]
    fn an_expression_is_parsed_once_and_a_bad_one_never_kept() {
        let mut timetables = Timetables::default();
        let first = timetables.of(&cron("0 8 * * *".into())).unwrap();
        let again = timetables.of(&cron("0 8 * * *".into())).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(timetables.of(&cron("often".into())).is_err());
        assert_eq!(timetables.0.len(), 1);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut timetables = Timetables::default();
        for number in 0..2 * MOST {
            let (minute, hour) = (number % 60, number / 60 % 24);
            let day = 1 + number / 1_440;
            timetables.of(&cron(format!("{minute} {hour} {day} * *"))).unwrap();
        }
        assert!((1..=MOST).contains(&timetables.0.len()));
    }
}
