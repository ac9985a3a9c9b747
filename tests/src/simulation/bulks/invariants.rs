//! What bulks promise: each execution that one means is done at most once by it and as it was seen, nothing
//! whose effect has happened is run, and nothing stays in its hands.

use sexton_model::bulk::{BulkKind, BulkState};
use sexton_model::id::ExecutionId;
use sexton_model::state::{Cause, State};

use super::super::invariants::{Checker, invariant};
use super::super::op::ScriptedAnswer;
use super::super::rows::{Row, Rows};
use super::super::schedulers::RETENTION_DAYS;
use super::super::stop::Stop;
use super::rows::{Bulk, Bulks, Item};
use super::{BULK_INTERVAL, canary};

/// A bulk and all executions, before an operation and after it.
pub(super) struct BulkChecker<'a> {
    pub(super) was: &'a Bulk,
    pub(super) is: &'a Bulk,
    pub(super) before: &'a Rows,
    pub(super) after: &'a Rows,
}

/// Fails unless the bulk's state allows it.
macro_rules! bulk_invariant {
    ($look:expr, $holds:expr, $($text:tt)+) => {
        invariant!($holds, "bulk {}: {}", $look.is.state.as_str(), format_args!($($text)+))
    };
}
pub(super) use bulk_invariant;

impl Checker<'_> {
    /// What bulks have moved, by their items and their questions, so that it may have moved.
    pub(in crate::simulation) fn moved_by_bulks(
        &self,
        before: &Bulks,
        after: &Bulks,
    ) -> Vec<(ExecutionId, Cause)> {
        let mut moved = Vec::new();
        for is in after.values() {
            let was = before.get(&is.id);
            for (ordinal, item) in &is.items {
                let old = was.and_then(|was| was.items.get(ordinal));
                if old.is_none_or(|old| old.state == item.state) {
                    continue;
                }
                match item.state.as_str() {
                    "done" => moved.push((item.execution, is.kind.cause())),
                    "resolved" => moved.push((item.execution, Cause::Resolve)),
                    _ => {}
                }
            }
            let answered = is.questions.iter().filter(|(ordinal, question)| {
                let old = was.and_then(|was| was.questions.get(ordinal));
                question.answer.is_some() && old.is_none_or(|old| old.answer.is_none())
            });
            for (_, question) in answered {
                moved.extend([(question.id, Cause::Discard), (question.id, Cause::Cancel)]);
            }
        }
        let given_up = before.values().filter(|was| self.notes.pruned && self.is_old(was));
        for id in given_up.flat_map(Bulk::unheard) {
            moved.extend([(id, Cause::Discard), (id, Cause::Cancel)]);
        }
        moved
    }

    /// Whether retention may take it.
    fn is_old(&self, bulk: &Bulk) -> bool {
        let over = matches!(bulk.state, BulkState::Stopped | BulkState::Done);
        let cut = self.now - chrono::Duration::days(RETENTION_DAYS.into());
        over && bulk.ended_at.is_some_and(|at| at < cut)
    }

    /// Compares them before and after.
    pub(in crate::simulation) fn bulks(
        &mut self,
        (before, after): (&Rows, &Rows),
        (were, are): (&Bulks, &Bulks),
    ) -> Result<(), Stop> {
        for was in were.values().filter(|was| !are.contains_key(&was.id)) {
            invariant!(self.notes.pruned && self.is_old(was), "a bulk is gone");
            for id in was.unheard() {
                let left = after.get(&id).filter(|row| !is_over(row));
                invariant!(left.is_none(), "a bulk is gone, and its question stays");
                self.ledger.bulks.answered.insert(id);
                self.ledger.bulks.comes("a question that nobody hears any more");
            }
        }
        for is in are.values() {
            counted(is)?;
            let Some(was) = were.get(&is.id) else {
                for item in is.items.values() {
                    selected(is, item, before)?;
                }
                continue;
            };
            let look = BulkChecker { was, is, before, after };
            self.steps(&look)?;
            self.items(&look)?;
            self.questions(&look)?;
            self.pace(&look)?;
            canary::holds(&look)?;
        }
        let is_question = |id| are.values().any(|is| is.questions.values().any(|it| it.id == id));
        let new = after.values().filter(|row| !before.contains_key(&row.id));
        for row in new.filter(|row| row.asks_about.is_some()) {
            invariant!(is_question(row.id), "nobody asks: {}", row.name());
        }
        Ok(())
    }

    /// It is stopped and resumed by people, and goes on by schedulers.
    fn steps(&self, look: &BulkChecker<'_>) -> Result<(), Stop> {
        use BulkState::{Done, Paused, Preparing, Running, Stopped};
        let BulkChecker { was, is, .. } = look;
        let (person, scheduler) =
            (self.notes.steered == Some(is.id), self.notes.bulk == Some(is.id));
        let may = match (was.state, is.state) {
            (from, to) if from == to => true,
            (Preparing | Running | Paused, Stopped) | (Paused | Stopped, Preparing | Running) => {
                person
            }
            (Preparing, Running | Done) => {
                self.whole(look)?;
                scheduler
            }
            (Running, Paused | Done) => scheduler,
            (Stopped, Done) => self.notes.pruned && self.is_old(was),
            _ => false,
        };
        bulk_invariant!(look, may, "it was {}", was.state.as_str());
        if is.state == Done && was.state != Stopped {
            let open = is.count("unasked") + is.count("waiting");
            bulk_invariant!(look, open == 0, "{open} items are open");
            let unheard = is.unheard().count();
            bulk_invariant!(look, unheard == 0, "{unheard} questions are not heard");
        }
        Ok(())
    }

    /// The bulk selects what had failed when the operator looked, and has not been touched since.
    fn whole(&self, look: &BulkChecker<'_>) -> Result<(), Stop> {
        if !self.ledger.bulks.of_all.contains(&look.is.id) {
            return Ok(());
        }
        let fits = |row: &&Row| {
            let early = row.finished_at.is_some_and(|at| at < look.is.previewed_at);
            look.is.kind.acts_on(row.state) && early
        };
        for row in look.after.values().filter(fits) {
            let is_selected = look.is.items.values().any(|item| item.execution == row.id);
            bulk_invariant!(look, is_selected, "it does not mean {}", row.name());
        }
        Ok(())
    }

    fn items(&mut self, look: &BulkChecker<'_>) -> Result<(), Stop> {
        // One that was selected may be requeued by others and fail again at the instant at which the operator
        // looked, since the clock stands still here: the bulk selects it once more then, at another attempt.
        let mut attempts: Vec<_> =
            look.is.items.values().map(|item| (item.execution, item.seen)).collect();
        attempts.sort_unstable();
        let twice = attempts.windows(2).any(|pair| pair[0] == pair[1]);
        bulk_invariant!(look, !twice, "it means an attempt twice");
        let done = look.is.items.values().filter(|item| item.state == "done");
        let mut done: Vec<ExecutionId> = done.map(|item| item.execution).collect();
        done.sort_unstable();
        let twice = done.windows(2).find(|pair| pair[0] == pair[1]);
        bulk_invariant!(look, twice.is_none(), "it is done twice: {twice:?}");
        for (ordinal, old) in &look.was.items {
            let there = look.is.items.contains_key(ordinal);
            bulk_invariant!(look, there, "item {ordinal} ({}) is gone", old.state);
        }
        for (ordinal, item) in &look.is.items {
            match look.was.items.get(ordinal) {
                None if self.ledger.bulks.of_filter.contains(&look.is.id) => {
                    selected(look.is, item, look.before)?;
                }
                Some(old) if old != item => self.item(look, *ordinal, old, item)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn item(
        &mut self,
        look: &BulkChecker<'_>,
        ordinal: i64,
        old: &Item,
        item: &Item,
    ) -> Result<(), Stop> {
        let alive = match look.was.state {
            BulkState::Running => true,
            // A command may answer already.
            BulkState::Preparing => look.is.asks("command") && old.state == "unasked",
            _ => false,
        };
        let may = alive && self.notes.bulk == Some(look.is.id);
        bulk_invariant!(look, may, "item {ordinal} becomes {} though nobody may", item.state);
        let same = (old.execution, old.seen) == (item.execution, item.seen);
        bulk_invariant!(look, same, "item {ordinal} is another");
        let row = look.before.get(&item.execution);
        let unchanged = row.filter(|row| is_as_seen(look.is, item, row));
        let answer = self.valid_answer(look, ordinal, item);
        let needs_answer = self.needs_answer(look.is, row);
        match (old.state.as_str(), item.state.as_str()) {
            ("waiting", "done") => {
                bulk_invariant!(
                    look,
                    unchanged.is_some(),
                    "it has done what it did not mean: {item:?}"
                );
                let may_requeue = !needs_answer || answer == Some(ScriptedAnswer::No);
                bulk_invariant!(
                    look,
                    may_requeue,
                    "done, though the answer was {answer:?}: {item:?}"
                );
                if look.is.asks("task") && needs_answer {
                    self.ledger.bulks.comes("an answer by which an execution is requeued");
                }
                let moved = match look.is.kind {
                    BulkKind::Requeue => State::Pending,
                    BulkKind::Discard => State::Discarded,
                    BulkKind::Restore => State::Failed,
                    BulkKind::Cancel => State::Cancelled,
                };
                let is = look.after.get(&item.execution);
                let done = is.is_some_and(|is| is.state == moved);
                bulk_invariant!(look, done, "done, and it is {:?}", is.map(Row::name));
            }
            ("unasked", "resolved") => {
                bulk_invariant!(
                    look,
                    unchanged.is_some(),
                    "it resolves what it did not mean: {item:?}"
                );
                bulk_invariant!(
                    look,
                    answer == Some(ScriptedAnswer::Yes),
                    "resolved, though it was {answer:?}"
                );
                self.ledger.bulks.resolved.insert(item.execution);
            }
            ("unasked", "waiting") => {
                let may_wait = !needs_answer
                    || self.recorded_answer(look, ordinal) == Some(ScriptedAnswer::No);
                bulk_invariant!(look, may_wait, "it waits, though nobody said no: {item:?}");
            }
            ("unasked", "left") => {
                let answered = unchanged.is_some()
                    && matches!(answer, Some(ScriptedAnswer::Yes | ScriptedAnswer::No));
                bulk_invariant!(
                    look,
                    !answered,
                    "left, though the answer was {answer:?}: {item:?}"
                );
            }
            ("unasked" | "waiting", "refused") => {
                let edited = row.is_some() && self.recorded_answer(look, ordinal) != answer;
                let may = unchanged.is_none() || edited;
                bulk_invariant!(look, may, "refused, and it is as it was seen: {item:?}");
            }
            (from, to) => {
                bulk_invariant!(look, false, "item {ordinal} was {from} and becomes {to}");
            }
        }
        Ok(())
    }

    /// Whether the requeue needs an answer first.
    fn needs_answer(&self, bulk: &Bulk, row: Option<&Row>) -> bool {
        bulk.asks("command")
            || (bulk.asks("task") && row.is_some_and(|row| (self.has_verify_task)(row)))
    }

    /// The answer about an item, if it is about the params that its execution has.
    fn valid_answer(
        &self,
        look: &BulkChecker<'_>,
        ordinal: i64,
        item: &Item,
    ) -> Option<ScriptedAnswer> {
        let answer = self.recorded_answer(look, ordinal)?;
        let Some(question) = look.is.questions.get(&ordinal) else { return Some(answer) };
        let params = self.ledger.bulks.params.get(&question.id)?;
        let has = &look.before.get(&item.execution)?.params;
        (params == has).then_some(answer)
    }

    /// The answer about an item, about whichever params.
    fn recorded_answer(&self, look: &BulkChecker<'_>, ordinal: i64) -> Option<ScriptedAnswer> {
        if look.is.asks("command") {
            return self.ledger.bulks.command(look.is.id, ordinal);
        }
        let row = look.before.get(&look.is.questions.get(&ordinal)?.id)?;
        let ended = row.state == State::Succeeded;
        ended.then(|| self.ledger.bulks.answer(row.id, row.attempt)).flatten()
    }

    fn questions(&mut self, look: &BulkChecker<'_>) -> Result<(), Stop> {
        for (ordinal, question) in &look.is.questions {
            let row = look.after.get(&question.id);
            let Some(old) = look.was.questions.get(ordinal) else {
                let Some(item) = look.was.items.get(ordinal) else {
                    return Err(Stop::broken("a question of an item that nobody has selected"));
                };
                let about = look.before.get(&item.execution);
                let selectable = about.is_some_and(|about| {
                    is_as_seen(look.is, item, about) && self.needs_answer(look.is, Some(about))
                });
                let open = item.state == "unasked" && look.was.state == BulkState::Running;
                bulk_invariant!(
                    look,
                    selectable && open,
                    "it asks about what it does not mean: {item:?}"
                );
                let same = row.zip(about).is_some_and(|(row, about)| {
                    row.asks_about == Some(about.id)
                        && row.params == about.params
                        && row.idempotency_key == about.idempotency_key
                });
                bulk_invariant!(
                    look,
                    same,
                    "it asks about something else: {:?}",
                    row.map(Row::name)
                );
                let params = about.map(|about| about.params.clone()).unwrap_or_default();
                self.ledger.bulks.params.insert(question.id, params);
                continue;
            };
            let stays = old.answer.is_none() || old.answer == question.answer;
            bulk_invariant!(look, old.id == question.id && stays, "another question or answer");
            if old.answer.is_none() && question.answer.is_some() {
                let over = row.is_none_or(is_over);
                bulk_invariant!(look, over, "heard, and it stays: {:?}", row.map(Row::name));
                self.ledger.bulks.answered.insert(question.id);
            }
        }
        let gone = look.was.questions.keys().any(|known| !look.is.questions.contains_key(known));
        bulk_invariant!(look, !gone, "a question is forgotten");
        Ok(())
    }

    /// No more have begun than its pace allows since it is carried out.
    fn pace(&mut self, look: &BulkChecker<'_>) -> Result<(), Stop> {
        let begun = look.is.items.iter().filter(|(ordinal, item)| {
            let waited = look.was.items.get(ordinal).is_some_and(|old| old.state == "waiting");
            waited && matches!(item.state.as_str(), "done" | "refused")
        });
        let begun = begun.count() as i64;
        if begun == 0 || !look.is.is_paced {
            return Ok(());
        }
        let now = self.now;
        let (since, all) = self.ledger.bulks.paces.entry(look.is.id).or_insert((now, 0));
        *all += begun;
        let most = (now - *since).num_seconds() / BULK_INTERVAL.num_seconds() + 1;
        bulk_invariant!(look, *all <= most, "{all} have begun, and its pace allows {most}");
        Ok(())
    }
}

/// What is selected is as the operator saw it.
fn selected(bulk: &Bulk, item: &Item, before: &Rows) -> Result<(), Stop> {
    let row = before.get(&item.execution);
    let selectable = row.is_some_and(|row| {
        let early = row.finished_at.is_some_and(|at| at <= bulk.previewed_at);
        is_as_seen(bulk, item, row) && early
    });
    invariant!(selectable, "a bulk means what it should not: {:?}", row.map(Row::name));
    Ok(())
}

fn is_as_seen(bulk: &Bulk, item: &Item, row: &Row) -> bool {
    bulk.kind.acts_on(row.state) && row.attempt.get() == item.seen
}

/// Whether nothing more is to come of it, and no operator has to look at it.
fn is_over(row: &Row) -> bool {
    row.state.is_final() || row.state == State::Discarded
}

/// The counts are those of the items.
fn counted(bulk: &Bulk) -> Result<(), Stop> {
    let states = ["done", "refused", "resolved", "left"].map(|state| bulk.count(state) as i64);
    let [done, refused, resolved, left] = states;
    let items = [bulk.items.len() as i64, done, refused, resolved, left];
    invariant!(bulk.counted == items, "a bulk counts {:?}, of {items:?}", bulk.counted);
    Ok(())
}
