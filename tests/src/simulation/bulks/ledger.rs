//! The simulation's own record of bulks: the requests and the answers.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId};

use super::super::op::ScriptedAnswer;

/// What no operation is drawn for, and what must come to pass all the same.
pub(in crate::simulation) const EXPECTED_EVENTS: [&str; 9] = [
    "an answer by which an execution is resolved",
    "an answer by which an execution is requeued",
    "a question without an answer",
    "a question that nobody hears any more",
    "a canary that pauses its bulk",
    "an item that is refused",
    "a bulk of what another has done",
    "a bulk of those that somebody names",
    "a bulk of a group",
];

/// The bulks of a simulation, and their questions.
#[derive(Debug, Default)]
pub(in crate::simulation) struct BulkLedger {
    /// Those that mean whatever had failed, and those that mean what fits a filter.
    pub(super) of_all: HashSet<i64>,
    pub(super) of_filter: HashSet<i64>,
    /// How often each was stopped and resumed.
    pub(super) steered: HashMap<i64, i64>,
    /// Since when each that has a pace is carried out, and how many it has begun since.
    pub(super) paces: HashMap<i64, (DateTime<Utc>, i64)>,
    /// The params of the execution that a question asks about, at the time of the question.
    pub(super) params: HashMap<ExecutionId, String>,
    /// The answers of the questions' attempts.
    answers: HashMap<(ExecutionId, AttemptNumber), ScriptedAnswer>,
    /// The commands' answers about items.
    commanded: HashMap<(i64, i64), ScriptedAnswer>,
    /// Executions that were resolved: their effect has happened.
    pub(in crate::simulation) resolved: HashSet<ExecutionId>,
    /// Questions of which nothing more is to come.
    pub(super) answered: HashSet<ExecutionId>,
    came: BTreeSet<&'static str>,
}

impl BulkLedger {
    /// Somebody asks for one.
    pub(super) fn begins(&mut self, id: i64, of_all: bool, of_filter: bool) {
        self.steered.insert(id, 0);
        if of_all {
            self.of_all.insert(id);
        }
        if of_filter {
            self.of_filter.insert(id);
        }
    }

    /// Whether there are any.
    pub(in crate::simulation) fn is_any(&self) -> bool {
        !self.steered.is_empty()
    }

    /// Somebody stops it, or lets it go on: its pace begins anew.
    pub(super) fn steered(&mut self, id: i64) {
        *self.steered.entry(id).or_default() += 1;
        self.paces.remove(&id);
    }

    /// A scheduler carries out a batch of it.
    pub(super) fn carried(&mut self, id: i64, now: DateTime<Utc>) {
        self.paces.entry(id).or_insert((now, 0));
    }

    /// An attempt of a question answers.
    pub(in crate::simulation) fn record_answer(
        &mut self,
        id: ExecutionId,
        at: AttemptNumber,
        reply: ScriptedAnswer,
    ) {
        self.answers.insert((id, at), reply);
    }

    /// Records the answer of the attempt that ended a question.
    pub(super) fn answer(&self, id: ExecutionId, at: AttemptNumber) -> Option<ScriptedAnswer> {
        self.answers.get(&(id, at)).copied()
    }

    /// A command says something of an item.
    pub(super) fn commanded(&mut self, id: i64, ordinal: i64, reply: ScriptedAnswer) {
        self.commanded.insert((id, ordinal), reply);
    }

    /// The command's answer about it.
    pub(super) fn command(&self, id: i64, ordinal: i64) -> Option<ScriptedAnswer> {
        self.commanded.get(&(id, ordinal)).copied()
    }

    /// Somebody has taken back that a question was given up: it is his now.
    pub(in crate::simulation) fn restored(&mut self, id: ExecutionId) {
        self.answered.insert(id);
    }

    /// Something of what must come to pass has.
    pub(super) fn comes(&mut self, what: &'static str) {
        self.came.insert(what);
    }

    /// What has.
    pub(in crate::simulation) fn observed_events(&self) -> impl Iterator<Item = String> {
        self.came.iter().map(|what| (*what).to_owned())
    }
}
