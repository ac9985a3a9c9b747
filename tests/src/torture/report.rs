//! The report: what was struck, what was lost, and how long recovery took.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::fault::Fault;
use super::progress::{Counts, Line, broken, counts, list_strikes};

/// What a report is made of.
#[derive(Clone, Debug)]
pub struct Report {
    seed: u64,
    versions: Vec<String>,
    counts: Counts,
    time: Duration,
    missed: usize,
    broken: Vec<String>,
    recoveries: BTreeMap<Fault, Vec<Option<Duration>>>,
}

impl Report {
    /// Reads the lines of a run's progress.
    pub fn of(lines: &[Line]) -> Self {
        let mut report = Self {
            seed: 0,
            versions: Vec::new(),
            counts: Counts::default(),
            time: Duration::ZERO,
            missed: 0,
            broken: broken(lines).into_iter().map(|(kind, _)| kind.to_owned()).collect(),
            recoveries: BTreeMap::new(),
        };
        for line in lines {
            match line {
                Line::Begun { seed, versions } => {
                    report.seed = *seed;
                    report.versions.clone_from(versions);
                }
                Line::Missed { .. } => report.missed += 1,
                _ => {}
            }
        }
        (report.counts, report.time) = counts(lines);
        for (fault, recovery) in list_strikes(lines) {
            report.recoveries.entry(fault).or_default().push(recovery);
        }
        report
    }

    /// As a section of the documentation.
    pub fn section(&self) -> String {
        let mut page = String::from(HEAD);
        let faults: usize = self.recoveries.values().map(Vec::len).sum();
        let Counts { executions, attempts, runs, reruns } = self.counts;
        let broken =
            |kind: &str| self.broken.iter().filter(|broken| *broken == kind).count() as u64;
        let rows = [
            ("seed", self.seed.to_string()),
            ("versions", self.versions.join(", ")),
            ("time", format!("{} min", self.time.as_secs().div_ceil(60))),
            ("faults struck", number(faults as u64)),
            ("kinds of faults", self.recoveries.len().to_string()),
            ("executions", number(executions)),
            ("attempts", number(attempts)),
            ("runs of a task", number(runs)),
            ("lost executions", number(broken("lost"))),
            ("attempts opened twice", number(broken("opened twice"))),
            ("overlapping runs", number(broken("overlapping runs"))),
            ("re-runs", number(reruns)),
        ];
        page.push_str("| | |\n|---|---|\n");
        for (what, value) in rows {
            let _ = writeln!(page, "| {what} | {value} |");
        }
        let _ = write!(page, "\n{}", meanings(self.missed));
        let all = Fault::all();
        let mut families: Vec<_> = all.iter().map(|fault| fault.family()).collect();
        families.dedup();
        for family in families {
            self.table(&mut page, family);
        }
        page
    }

    fn table(&self, page: &mut String, family: &str) {
        let _ = write!(page, "\n#### {}\n\n", heading(family));
        page.push_str("| fault | struck | recovery p50 | p99 |\n|---|---|---|---|\n");
        for fault in Fault::all().into_iter().filter(|fault| fault.family() == family) {
            let strikes = self.recoveries.get(&fault).map_or(&[][..], Vec::as_slice);
            let mut times: Vec<Duration> = strikes.iter().flatten().copied().collect();
            times.sort_unstable();
            let at = |percent| percentile(&times, percent).map_or("–".to_owned(), seconds);
            let struck = strikes.len();
            let _ = writeln!(page, "| {fault} | {struck} | {} | {} |", at(50), at(99));
        }
    }
}

const HEAD: &str = "\
## Torture

<!-- Written by `make torture`; not to be edited by hand. -->

`make torture` runs many platforms side by side on real PostgreSQL and RabbitMQ servers, keeps all of them
under load, and strikes faults: it kills processes between any two effects, kills, freezes and wipes servers,
cuts, slows and swallows what they say to each other, moves messages by hand, and has operators requeue what
failed in bulks whose questions a worker answers. A fault counts only if an
execution was inside the step that it struck. What must hold afterwards stands in
[the guarantees](../reference/guarantees.md); a ledger that the tasks write themselves, outside of the platform, says
whether it did. The seed decides which faults come in which order.

";

fn meanings(missed: usize) -> String {
    format!(
        "\
*Lost* is an execution that came to no end. *Opened twice* is an attempt whose task was begun more than
once. *Overlapping* is a run that began while another run of the same idempotency key was alive: each holds a
lock that the kernel releases when its last process is gone. A *re-run* is a run of an attempt that was
ended as lost, so that the next attempt did its work again: at least once, as promised. Besides, no attempt
was opened before it was due, after a success, or after an operator had ended its execution, no failed
execution ran that nobody had moved, no key had two executions, no attempt was marked as succeeded without
its task's end in the ledger, no task ran without an attempt, every second of the job that fires each second
has an execution or a gap, nothing whose effect the ledger had when it failed was run again by a bulk, nothing
was resolved whose effect it had not, every bulk came to its end, counted what its items say, recorded once what
it did to each and left no question, no program ended by itself or panicked, and in the end the failed rows and the
parked messages were the same. Only what was judged in the end counts.

{missed} further tries found no execution inside and do not count.

### Recovery by kind

From the strike to the end of the last execution that was inside, the rest of its task and its retry's delay
of one second included (eight for a ticket that comes before it is due). Leases last four seconds.
Where an execution had come to its end before the strike there is no such time. *Wiped* includes the patience of the reconciler, shortened by hand from five minutes: the rows are aged.
"
    )
}

fn heading(family: &str) -> String {
    let mut letters = family.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The smallest time that at least so many percent of `times`, which are sorted, do not exceed.
fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<_> = (1..=10).map(Duration::from_secs).collect();
        assert_eq!(percentile(&times, 50), Some(Duration::from_secs(5)));
        assert_eq!(percentile(&times, 99), Some(Duration::from_secs(10)));
        assert_eq!(percentile(&times[..1], 50), Some(Duration::from_secs(1)));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn the_page_lists_injected_faults_and_their_outcome() {
        let counts = Counts { executions: 12_345, attempts: 3, reruns: 2, ..Counts::default() };
        let lines = [
            Line::Begun {
                seed: 42,
                versions: vec!["Sexton 1".to_owned(), "RabbitMQ 2".to_owned()],
            },
            Line::Struck {
                session: 1,
                arena: 0,
                fault: "worker.opened".to_owned(),
                executions: vec![],
                recovery_ms: Some(1_250),
            },
            Line::Struck {
                session: 1,
                arena: 0,
                fault: "scheduler.pruned".to_owned(),
                executions: vec![],
                recovery_ms: None,
            },
            Line::Missed { fault: "worker.ran".to_owned(), why: "nothing".to_owned() },
            Line::Broken { kind: "overlapping runs".to_owned(), what: "two".to_owned() },
            Line::Closed { session: 1, arena: 0, counts, seconds: 61 },
        ];
        let page = Report::of(&lines).section();
        for row in [
            "| seed | 42 |",
            "| versions | Sexton 1, RabbitMQ 2 |",
            "| time | 2 min |",
            "| faults struck | 2 |",
            "| scheduler.pruned | 1 | – | – |",
            "| executions | 12,345 |",
            "| lost executions | 0 |",
            "| overlapping runs | 1 |",
            "| re-runs | 2 |",
            "| worker.opened | 1 | 1.2 s | 1.2 s |",
            "| worker.ran | 0 | – | – |",
            "| RabbitMQ wiped | 0 | – | – |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
