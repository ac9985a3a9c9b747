//! The verdict on a run's progress. Pure: every reader of the file gets the same one.

use super::fault::Fault;
use super::plan::{self, Amount};
use super::progress::{Line, broken, list_strikes};

/// The result of a run, from all records of its sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Invariants were violated, in any session; the run can only be begun anew.
    Broken(Vec<String>),
    /// Not everything was struck and checked yet.
    Unfinished {
        /// The number of faults of the plan that are still missing.
        left: usize,
        /// The kinds that were struck too seldom, with their numbers.
        short_of: Vec<(Fault, usize)>,
    },
    /// Everything was struck, and every arena passed the final check.
    Kept,
}

impl Verdict {
    /// The verdict on a run of `kinds`, from its progress.
    pub fn of(lines: &[Line], seed: u64, kinds: &[Fault], amount: Amount) -> Self {
        let broken = broken(lines);
        if !broken.is_empty() {
            return Self::Broken(broken.into_iter().map(|(_, what)| what.to_owned()).collect());
        }
        let struck: Vec<Fault> = list_strikes(lines).into_iter().map(|(fault, _)| fault).collect();
        let left = plan::left(&plan::plan(seed, kinds, amount), &struck).len();
        let short_of = plan::short_of(kinds, &struck, amount.each);
        if left == 0 && short_of.is_empty() {
            Self::Kept
        } else {
            Self::Unfinished { left, short_of }
        }
    }

    /// The exit status: 0 for a finished run without a violation, 3 for a violation, 1 for an unfinished run.
    pub const fn status(&self) -> u8 {
        match self {
            Self::Broken(_) => 3,
            Self::Unfinished { .. } => 1,
            Self::Kept => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::progress::Counts;

    const KINDS: [Fault; 2] = [Fault::Point("worker.opened"), Fault::Point("worker.ran")];
    const AMOUNT: Amount = Amount { total: 4, each: 2 };

    fn verdict(lines: &[Line]) -> Verdict {
        Verdict::of(lines, 1, &KINDS, AMOUNT)
    }

    fn all_struck() -> Vec<Line> {
        let struck = |fault: &Fault| Line::Struck {
            session: 1,
            arena: 0,
            fault: fault.to_string(),
            executions: vec!["e".to_owned()],
            recovery_ms: Some(1),
        };
        KINDS.iter().chain(&KINDS).map(struck).collect()
    }

    fn closed() -> Line {
        Line::Closed { session: 1, arena: 0, counts: Counts::default(), seconds: 9 }
    }

    fn lost() -> Line {
        Line::Broken { kind: "lost".to_owned(), what: "lost: one".to_owned() }
    }

    #[test]
    fn a_run_with_every_fault_injected_and_judged_is_green() {
        let verdict = verdict(&[all_struck(), vec![closed()]].concat());
        assert_eq!((verdict.status(), verdict), (0, Verdict::Kept));
    }

    #[test]
    fn one_violation_makes_the_run_red() {
        let red = Verdict::Broken(vec!["lost: one".to_owned()]);
        for lines in [
            [all_struck(), vec![lost(), closed()]].concat(),
            [all_struck(), vec![closed(), lost()]].concat(),
            [vec![lost()], all_struck(), vec![closed()]].concat(),
            vec![lost()],
        ] {
            let verdict = verdict(&lines);
            assert_eq!((verdict.status(), &verdict), (3, &red));
        }
    }

    #[test]
    fn faults_of_an_unjudged_arena_remain_to_be_injected() {
        let verdict = verdict(&all_struck());
        let short_of = KINDS.iter().map(|kind| (*kind, 0)).collect();
        assert_eq!(verdict, Verdict::Unfinished { left: 4, short_of });
        assert_eq!(verdict.status(), 1);
    }
}
