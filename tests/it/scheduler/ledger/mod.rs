//! The ledger against a list that is made by hand: random histories of one job through the real planner
//! with a clock that is moved by hand, and beside it a walk over every second that knows nothing of how
//! the platform keeps its books. Each firing has one disposition, and both name the same.

mod oracle;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::{JobSpec, Misfire, MisfirePolicy, Overlap, Schedule};
use sexton_operations::job_names::find_including_deleted;
use sexton_operations::ledger::{FiringSelector, explain};
use sexton_operations::paging::{Cursor, PagedList};
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::maintenance::ledger_check::LedgerCheck;
use sexton_store::backfill::{self, Backfill};
use sexton_store::jobs::{Apply, Delete, apply, delete, pause, resume};
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{Trigger, trigger};
use uuid::Uuid;

use super::Fixture;
use oracle::{ExplainedFiring, Oracle, Pattern};

const CASES: u64 = 8;
const STEPS: usize = 60;

/// Numbers that look random and are the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// One job's history.
struct History<'a> {
    f: &'a Fixture,
    draw: Draw,
    name: String,
    spec: JobSpec,
    now: DateTime<Utc>,
    oracle: Oracle,
    triggers: u64,
}

impl<'a> History<'a> {
    async fn begin(f: &'a Fixture, seed: u64) -> Self {
        let mut draw = Draw(seed);
        // A day for each story, so that no two share an instant.
        let now = super::at(seed as i64 * 100 * 86_400 + 7);
        let name = format!("story.number{seed}");
        let (spec, pattern) = definition(&mut draw, &name);
        let oracle = Oracle::new(now, pattern, &spec);
        let mut history = Self { f, draw, name, spec, now, oracle, triggers: 0 };
        history.applied().await;
        history
    }

    fn by(actor: &str) -> AuditContext<'_> {
        AuditContext { actor, reason: Some("because") }
    }

    async fn applied(&mut self) {
        let specs = [self.spec.clone()];
        let request = Apply { specs: &specs, actor: "ann", dry_run: false, prune: false };
        let fresh = || JobId::new(Uuid::now_v7());
        apply(self.f.db.store(), request, fresh, Some(self.now)).await.unwrap();
    }

    async fn step(&mut self) {
        match self.draw.below(20) {
            0..7 => {
                let seconds = self.draw.one_of(&[1, 20, 59, 61, 150, 600, 1_500, 5_000, 40_000]);
                self.now += TimeDelta::seconds(seconds);
            }
            7..12 => self.plan().await,
            12 => self.pause_or_resume().await,
            13 => self.edit().await,
            14 => self.trigger().await,
            15..18 => self.end().await,
            18 => self.backfill().await,
            // Both within a moment: what is due at this very instant.
            _ => {
                self.plan().await;
                self.pause_or_resume().await;
            }
        }
    }

    async fn plan(&mut self) {
        let (planner, _dispatcher) = self.f.planner();
        let report = planner.run_once(Some(self.now)).await.unwrap();
        assert_eq!(report.quarantined, 0);
        self.oracle.plan(self.now);
    }

    async fn pause_or_resume(&mut self) {
        let (store, now) = (self.f.db.store(), Some(self.now));
        if self.oracle.is_paused() {
            resume(store, &self.name, Self::by("rob"), now).await.unwrap();
            self.oracle.resume(self.now);
        } else {
            let actor = self.draw.one_of(&["bob", "eve"]);
            pause(store, &self.name, Self::by(actor), now).await.unwrap();
            self.oracle.pause(actor);
        }
    }

    async fn edit(&mut self) {
        let (spec, pattern) = definition(&mut self.draw, &self.name);
        self.spec = spec;
        self.applied().await;
        self.oracle.edit(self.now, pattern, &self.spec);
    }

    async fn trigger(&mut self) {
        self.triggers += 1;
        let key = format!("own-{}", self.triggers);
        let request = Trigger {
            job: &self.name,
            key: Some(&key),
            params: serde_json::Map::new(),
            id: ExecutionId::new(Uuid::now_v7()),
            claimed_by: "test:1",
        };
        trigger(self.f.db.store(), request, Some(Self::by("ann")), Some(self.now)).await.unwrap();
        self.oracle.claimed(key);
    }

    /// Executions come to their ends: one, or all but those that a backfill has made.
    async fn end(&mut self) {
        let mut ending = self.oracle.under_way();
        if ending.is_empty() {
            return;
        }
        if self.draw.below(3) == 0 {
            ending.retain(|key| self.oracle.counts(key));
        } else {
            ending = vec![ending[self.draw.below(ending.len() as u64) as usize].clone()];
        }
        let ends = [("succeeded", "ran"), ("failed", "failed"), ("cancelled", "cancelled")];
        let (state, word) = self.draw.one_of(&ends);
        let done = sqlx::query(
            "UPDATE sexton.executions SET state = $2, finished_at = $3, next_attempt_at = NULL
             WHERE execution_key = ANY ($1) AND job_id = (SELECT id FROM sexton.jobs WHERE name = $4)",
        )
        .bind(&ending)
        .bind(state)
        .bind(self.now)
        .bind(&self.name)
        .execute(self.f.db.pool())
        .await
        .unwrap();
        assert_eq!(done.rows_affected(), ending.len() as u64);
        for key in ending {
            self.oracle.end(&key, word);
        }
    }

    async fn backfill(&mut self) {
        let ago = self.draw.one_of(&[30, 600, 4_000]);
        // Also from before the job was made.
        let earliest = self.oracle.begin() - TimeDelta::seconds(900);
        let from = (self.now - TimeDelta::seconds(ago)).max(earliest);
        let request = Backfill {
            approved: None,
            job: &self.name,
            from,
            to: self.now,
            rate: None,
            allow_overlap: true,
            claimed_by: "test:1",
            dry_run: false,
        };
        let mut place = None;
        loop {
            let fresh = || ExecutionId::new(Uuid::now_v7());
            let (store, by) = (self.f.db.store(), Self::by("ann"));
            let batch = backfill::create_batch(store, request, place, fresh, by, Some(self.now))
                .await
                .unwrap();
            place = batch.next;
            if place.is_none() {
                break;
            }
        }
        self.oracle.backfill(from, self.now);
    }

    /// What the ledger says of everything up to an hour ahead, page by page.
    async fn explain_all(&self) -> Vec<ExplainedFiring> {
        let job = find_including_deleted(self.f.db.store(), &self.name).await.unwrap();
        let (mut from, to) = (self.oracle.begin() - TimeDelta::days(1), self.horizon());
        let mut all = Vec::new();
        loop {
            let when = FiringSelector::Range {
                since: from,
                until: to + TimeDelta::microseconds(1),
                limit: 777,
            };
            let answer = explain(self.f.db.store(), &job, when, Some(self.now)).await.unwrap();
            all.extend(answer.firings.into_iter().map(|firing| ExplainedFiring {
                at: firing.scheduled_for,
                behind: firing.into_key.or(firing.actor),
                disposition: firing.disposition,
            }));
            let Some(cursor) = answer.next_cursor else { return all };
            let next = Cursor::read(PagedList::Firings, Some(&cursor.to_string()));
            from = next.unwrap().expect("the cursor is given");
        }
    }

    /// The ledger check finds a record of everything that cursors have passed.
    async fn has_no_unaccounted_firing(&self, seed: u64) {
        let checked = LedgerCheck::new(self.f.store()).run_once(Some(self.now)).await.unwrap();
        assert_eq!(checked.unaccounted, 0, "story {seed}: {checked:?}");
    }

    fn horizon(&self) -> DateTime<Utc> {
        self.now + TimeDelta::minutes(10)
    }

    async fn explains_what_happened(&mut self, seed: u64) {
        let (explained, walk) =
            (self.explain_all().await, self.oracle.walk(self.now, self.horizon()));
        for (explained, walked) in explained.iter().zip(&walk) {
            assert_eq!(explained, walked, "story {seed}: left is the ledger's");
        }
        assert_eq!(explained.len(), walk.len(), "story {seed}");
        // One instant says the same as the range, and an instant between firings is reported as no firing.
        let job = find_including_deleted(self.f.db.store(), &self.name).await.unwrap();
        for _ in 0..20 {
            let span = (self.horizon() - self.oracle.begin()).num_seconds() as u64;
            let at = self.oracle.begin() + TimeDelta::seconds(self.draw.below(span) as i64);
            let answer = explain(self.f.db.store(), &job, FiringSelector::At(at), Some(self.now))
                .await
                .unwrap();
            let place = walk.partition_point(|explained| explained.at < at);
            if let Some(explained) = walk.get(place).filter(|explained| explained.at == at) {
                let disposition = &answer.firings[0].disposition;
                assert_eq!(disposition, &explained.disposition, "story {seed}: {at}");
            } else {
                let none = answer.no_firing.unwrap();
                // As the schedules say, of which there was none before the job.
                let begin = self.oracle.begin();
                let before =
                    walk[..place].last().map(|explained| explained.at).filter(|at| *at > begin);
                assert_eq!(none.before, before, "story {seed}: before {at}");
                let after = walk.get(place).map(|explained| explained.at);
                assert!(after.is_none() || none.after == after, "story {seed}: after {at}");
            }
        }
    }
}

/// A definition of the same name, and the same as a pattern of seconds.
fn definition(draw: &mut Draw, name: &str) -> (JobSpec, Pattern) {
    let (schedule, pattern) = match draw.below(5) {
        0 => (every(1), Pattern::Every(1)),
        1 => (every(90), Pattern::Every(90)),
        2 => (every(60), Pattern::Every(60)),
        3 => (cron("*/7 * * * *"), Pattern::Minutes(7)),
        _ => (cron("*/15 * * * *"), Pattern::Minutes(15)),
    };
    let policy =
        draw.one_of(&[MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::FireAll]);
    let window = Duration::from_secs(draw.one_of(&[10, 300, 86_400]));
    let limit = draw.one_of(&[1, 3, 50]);
    let spec = JobSpec {
        overlap: draw.one_of(&[Overlap::Allow, Overlap::Skip]),
        misfire: Misfire { policy, window, limit, rate: None },
        ..JobSpec::new(name, "work", schedule)
    };
    (spec, pattern)
}

fn every(seconds: u64) -> Schedule {
    Schedule::every(Duration::from_secs(seconds))
}

fn cron(expression: &str) -> Schedule {
    Schedule::Cron { expression: expression.to_owned() }
}

#[tokio::test]
async fn every_firing_of_a_random_history_has_the_disposition_that_a_walk_gives_it() {
    let f = Fixture::without_broker().await;
    for seed in 1..=CASES {
        let mut history = History::begin(&f, seed).await;
        for _ in 0..STEPS {
            history.step().await;
            history.has_no_unaccounted_firing(seed).await;
        }
        history.explains_what_happened(seed).await;
        // `explain` finds a deleted job by its name.
        let request = Delete { name: &history.name, cancel: true, dry_run: false, revision: None };
        delete(f.db.store(), request, History::by("ann"), Some(history.now)).await.unwrap();
        history.oracle.delete(history.now);
        history.explains_what_happened(seed).await;
    }
}
