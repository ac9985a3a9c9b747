//! The goals of the demo, and which of them were observed.

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, presets};
use uuid::Uuid;

use super::changes::EventKind;
use super::rows::Totals;

/// Something to be observed, in the order of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    Fired,
    Ran,
    Failed,
    Retried,
    Parked,
    Shown,
    Requeued,
    Succeeded,
    Repaired,
    SchedulerKilled,
    FiredOn,
    WorkerKilled,
    Lost,
    Recovered,
    Complete,
}

impl Goal {
    const ALL: [Self; 15] = [
        Self::Fired,
        Self::Ran,
        Self::Failed,
        Self::Retried,
        Self::Parked,
        Self::Shown,
        Self::Requeued,
        Self::Succeeded,
        Self::Repaired,
        Self::SchedulerKilled,
        Self::FiredOn,
        Self::WorkerKilled,
        Self::Lost,
        Self::Recovered,
        Self::Complete,
    ];

    /// The name in the summary and in the list of missing goals.
    fn title(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Ran => "ran",
            Self::Failed => "failed",
            Self::Retried => "retried after n s",
            Self::Parked => "parked",
            Self::Shown => "shown to an operator",
            Self::Requeued => "requeued by the operator",
            Self::Succeeded => "succeeded",
            Self::Repaired => "succeeded after the requeue",
            Self::SchedulerKilled => "scheduler killed",
            Self::FiredOn => "fired by the other scheduler",
            Self::WorkerKilled => "worker killed while it ran a task",
            Self::Lost => "attempt found lost",
            Self::Recovered => "lost, then succeeded elsewhere",
            Self::Complete => "every firing that was due is there",
        }
    }
}

/// How often each goal was observed, and where first.
#[derive(Debug, Default)]
pub(super) struct Ledger([(u64, Option<Uuid>); Goal::ALL.len()]);

impl Ledger {
    /// Records one observation.
    pub(super) fn observe(&mut self, goal: Goal, id: Option<Uuid>) {
        self.count(goal, 1, id);
    }

    /// Records several at once.
    pub(super) fn count(&mut self, goal: Goal, times: u64, id: Option<Uuid>) {
        let (count, example) = &mut self.0[goal as usize];
        *count += times;
        *example = example.or(id);
    }

    /// Records what an event shows.
    pub(super) fn note(&mut self, id: Uuid, what: &EventKind) {
        let goals: &[Goal] = match what {
            EventKind::Fired { .. } => &[Goal::Fired],
            EventKind::Ran { .. } => &[Goal::Ran],
            EventKind::Failed { .. } => &[Goal::Failed],
            EventKind::Lost { .. } => &[Goal::Lost],
            EventKind::Retried { was_lost: false, .. } => &[Goal::Retried],
            EventKind::Triggered | EventKind::Retried { was_lost: true, .. } => &[],
            EventKind::Parked { .. } => &[Goal::Parked],
            EventKind::Requeued { .. } => &[Goal::Requeued],
            EventKind::Succeeded { was_requeued: true, .. } => &[Goal::Succeeded, Goal::Repaired],
            EventKind::Succeeded { was_lost: true, .. } => &[Goal::Succeeded, Goal::Recovered],
            EventKind::Succeeded { .. } => &[Goal::Succeeded],
        };
        for goal in goals {
            self.observe(*goal, Some(id));
        }
    }

    /// The titles of the goals that were not observed.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let missing = |goal: &Goal| self.0[*goal as usize].0 == 0;
        Goal::ALL.into_iter().filter(missing).map(Goal::title).collect()
    }

    /// The summary as a table.
    pub(super) fn table(&self, has_color: bool) -> String {
        let mut table = bare_table();
        table.set_header(["to be observed", "times", "first in execution", " "]);
        for goal in Goal::ALL {
            let (count, example) = self.0[goal as usize];
            let (mark, color) =
                if count > 0 { ("ok", Color::Green) } else { ("MISSING", Color::Red) };
            let mark = Cell::new(mark);
            table.add_row([
                Cell::new(goal.title()),
                Cell::new(count).set_alignment(CellAlignment::Right),
                Cell::new(example.map(|id| id.to_string()).unwrap_or_default()),
                if has_color { mark.fg(color).add_attribute(Attribute::Bold) } else { mark },
            ]);
        }
        table.to_string()
    }
}

/// The numbers of the whole run, for the final check.
pub(super) struct Balance {
    /// The rows' numbers.
    pub(super) totals: Totals,
    /// Firings that were due and have no execution.
    pub(super) missed: u64,
}

impl Balance {
    /// The numbers that must be zero and are not, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        let wrong = self.zeros().into_iter().filter(|(_, number)| *number != 0);
        wrong.map(|(title, number)| format!("{title}: {number}, not 0")).collect()
    }

    fn zeros(&self) -> [(&'static str, i64); 5] {
        [
            ("executions with two live attempts", self.totals.overlapping),
            ("duplicates of (job, execution key)", self.totals.duplicates),
            ("firings without an execution", self.missed as i64),
            ("executions that have not ended", self.totals.unended),
            ("executions still parked", self.totals.parked),
        ]
    }

    /// The numbers as a table.
    pub(super) fn table(&self, has_color: bool) -> String {
        let mut table = bare_table();
        table.set_header(["in all", " ", " "]);
        for (title, number) in [
            ("executions", self.totals.executions),
            ("attempts", self.totals.attempts),
            ("attempts lost", self.totals.lost_attempts),
        ] {
            let number = Cell::new(number).set_alignment(CellAlignment::Right);
            table.add_row([Cell::new(title), number, Cell::new("")]);
        }
        for (title, number) in self.zeros() {
            let (mark, color) =
                if number == 0 { ("ok", Color::Green) } else { ("WRONG", Color::Red) };
            let mark = Cell::new(mark);
            table.add_row([
                Cell::new(title),
                Cell::new(number).set_alignment(CellAlignment::Right),
                if has_color { mark.fg(color).add_attribute(Attribute::Bold) } else { mark },
            ]);
        }
        table.to_string()
    }
}

fn bare_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unobserved_goals_are_named() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.missing().len(), Goal::ALL.len());
        for (index, goal) in Goal::ALL.into_iter().enumerate() {
            assert_eq!(goal as usize, index, "the list is in the order of the variants");
            ledger.observe(goal, None);
        }
        assert_eq!(ledger.missing(), Vec::<&str>::new());
        let mut ledger = Ledger::default();
        let id = Uuid::from_u128(7);
        let requeued = EventKind::Succeeded { attempts: 4, was_requeued: true, was_lost: false };
        ledger.note(id, &requeued);
        assert!(!ledger.missing().contains(&"succeeded after the requeue"));
        assert!(ledger.missing().contains(&"lost, then succeeded elsewhere"));
        let table = ledger.table(false);
        let line = |title| table.lines().find(|line| line.contains(title)).unwrap();
        assert!(line("succeeded after").contains(&id.to_string()), "{table}");
        assert!(line("parked").contains("MISSING"), "{table}");
    }

    #[test]
    fn a_nonzero_count_of_losses_is_a_fault() {
        let totals = Totals {
            executions: 3,
            attempts: 5,
            lost_attempts: 1,
            overlapping: 0,
            duplicates: 0,
            unended: 0,
            parked: 0,
        };
        assert_eq!(Balance { totals, missed: 0 }.faults(), Vec::<String>::new());
        let totals = Totals { overlapping: 1, duplicates: 1, unended: 1, parked: 1, ..totals };
        assert_eq!(Balance { totals, missed: 1 }.faults().len(), 5);
    }
}
