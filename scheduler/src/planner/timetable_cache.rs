//! Caches parsed cron expressions: jobs share few of them, and parsing one takes longer than the remainder of
//! planning a job (measured: 10 to 40 µs against 0.3 to 3 µs for the next firing).

use std::collections::HashMap;
use std::sync::Arc;

use sexton_model::cron::{DayRule, Dst, depends_on_name};
use sexton_model::job::{Schedule, ScheduleConstraints};
use sexton_model::plan::{Timetable, TimetableError};
use sexton_model::zone::Zone;
use sexton_store::firing::DueJob;

/// The most cached expressions, about a kilobyte each. When there are more, all are dropped, and the ones in
/// use are parsed again.
const MAX_TIMETABLES: usize = 1_000;

/// Timetables by their inputs.
#[derive(Debug, Default)]
pub(crate) struct TimetableCache(HashMap<Key, Arc<Timetable>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    expression: String,
    timezone: Zone,
    dst: Dst,
    days: Option<DayRule>,
    /// The job's name, if the expression depends on it.
    name: Option<String>,
}

impl TimetableCache {
    /// Returns the timetable of `job`.
    pub(crate) fn of(&mut self, job: &DueJob) -> Result<Arc<Timetable>, TimetableError> {
        let Schedule::Cron { expression } = &job.schedule else {
            return job.timetable().map(Arc::new);
        };
        let key = Key {
            expression: expression.clone(),
            timezone: job.timezone,
            dst: job.dst,
            days: job.days,
            name: depends_on_name(expression).then(|| job.name.clone()),
        };
        let known = self.0.get(&key).cloned();
        let bare = known.map_or_else(|| self.parse(key, job), Ok)?;
        // Few jobs have constraints, and no two jobs share them.
        if job.constraints == ScheduleConstraints::default() {
            return Ok(bare);
        }
        Ok(Arc::new(job.apply_terms(Timetable::clone(&bare))))
    }

    fn parse(&mut self, key: Key, job: &DueJob) -> Result<Arc<Timetable>, TimetableError> {
        let bare = Timetable::new(&job.name, &job.schedule, job.timezone, job.dst, job.days)?;
        let bare = Arc::new(bare);
        if self.0.len() >= MAX_TIMETABLES {
            self.0.clear();
        }
        self.0.insert(key, Arc::clone(&bare));
        Ok(bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::claim_batch::test_jobs::job;

    fn of(timetable_cache: &mut TimetableCache, name: &str, expression: &str) -> Arc<Timetable> {
        let job = DueJob { name: name.to_owned(), ..job(1, expression) };
        timetable_cache.of(&job).unwrap()
    }

    #[test]
    fn an_expression_is_parsed_once_and_a_bad_one_never_kept() {
        let mut timetable_cache = TimetableCache::default();
        let first = of(&mut timetable_cache, "a", "0 8 * * *");
        let again = of(&mut timetable_cache, "b", "0 8 * * *");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(timetable_cache.of(&job(1, "often")).is_err());
        assert_eq!(timetable_cache.0.len(), 1);
    }

    #[test]
    fn jobs_share_a_timetable_only_if_they_fire_at_the_same_instants() {
        let mut timetable_cache = TimetableCache::default();
        let job = job(1, "H 8 * * *");
        let mut fires_at = |job: &DueJob| {
            timetable_cache.of(job).unwrap().next_after(chrono::DateTime::UNIX_EPOCH).unwrap()
        };
        let first = fires_at(&job);
        assert_ne!(fires_at(&DueJob { name: "job2".into(), ..job.clone() }), first);
        let vienna = Zone::parse("Europe/Vienna").unwrap();
        assert_ne!(fires_at(&DueJob { timezone: vienna, ..job.clone() }), first);
        assert_eq!(fires_at(&job), first);
        fires_at(&DueJob { dst: Dst::Skip, ..job.clone() });
        let thirteenth = |days| {
            let schedule = Schedule::Cron { expression: "0 8 13 * FRI".into() };
            DueJob { schedule, days, ..job.clone() }
        };
        let either = fires_at(&thirteenth(Some(DayRule::Either)));
        assert_ne!(fires_at(&thirteenth(Some(DayRule::Both))), either);
        assert_eq!(fires_at(&thirteenth(None)), either);
        assert_eq!(timetable_cache.0.len(), 7);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut timetable_cache = TimetableCache::default();
        for number in 0..2 * MAX_TIMETABLES {
            let (minute, hour) = (number % 60, number / 60 % 24);
            let day = 1 + number / 1_440;
            of(&mut timetable_cache, "a", &format!("{minute} {hour} {day} * *"));
        }
        assert!((1..=MAX_TIMETABLES).contains(&timetable_cache.0.len()));
    }
}
