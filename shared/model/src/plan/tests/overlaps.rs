//! Firings of a job whose executions must not overlap, planned together.

use proptest::prelude::*;

use super::properties::{downtimes, misfires, placed, tables};
use super::*;

#[test]
fn a_busy_job_that_must_not_overlap_is_skipped_by_name() {
    let table = every(10_000);
    let now = at("2026-01-01T00:00:25Z");
    for (busy, became) in [(false, ["run", "overlap", "overlap"]), (true, ["overlap"; 3])] {
        let due = PlanInput {
            overlap: Overlap::Skip,
            under_way: UnderWay { running: busy, ..UnderWay::default() },
            ..due(&table, Misfire::default(), "2026-01-01T00:00:00Z")
        };
        let ledger: Vec<_> =
            ledger(&table, &[plan(&due, now)]).into_iter().map(|(_, became)| became).collect();
        assert_eq!(ledger, became);
    }
}

proptest! {
    #[test]
    fn a_job_that_must_not_overlap_gets_at_most_one_run_and_none_while_busy(
        table in tables(), misfire in misfires(), downtime in downtimes(), busy in any::<bool>(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let under_way = UnderWay { running: busy, ..UnderWay::default() };
        let allow = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way, held: false };
        let skip = PlanInput { overlap: Overlap::Skip, ..allow };
        let (allowed, skipped) = (plan(&allow, now), plan(&skip, now));
        let runs = |plan: &Plan| -> Vec<DateTime<Utc>> {
            plan.firings.iter()
                .filter(|firing| firing.disposition == Disposition::Run)
                .map(|firing| firing.scheduled_for)
                .collect()
        };
        let first = if busy { vec![] } else { runs(&allowed).into_iter().take(1).collect() };
        prop_assert_eq!(runs(&skipped), first);
        prop_assert_eq!(allowed.gaps, skipped.gaps);
        prop_assert_eq!(allowed.firings.len(), skipped.firings.len());
        // Of a job that queues the first runs and one waits; of one that replaces only the newest runs.
        let planned = |overlap| plan(&PlanInput { overlap, ..allow }, now).firings;
        let run_or_wait = |firings: &[Firing]| -> Vec<usize> {
            let such = |firing: &Firing| !matches!(firing.disposition, Disposition::Skipped(_));
            (0..firings.len()).filter(|index| such(&firings[*index])).collect()
        };
        let queued = planned(Overlap::Queue);
        let limit = if busy { 1 } else { 2 };
        prop_assert_eq!(run_or_wait(&queued), (0..queued.len().min(limit)).collect::<Vec<_>>());
        let replaced = planned(Overlap::Replace);
        let newest: Vec<usize> = replaced.len().checked_sub(1).into_iter().collect();
        prop_assert_eq!(run_or_wait(&replaced), newest);
    }
}
