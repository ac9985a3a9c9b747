//! The report: the struck faults, the violations, and the recovery times.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::fault::Fault;
use super::progress::{Counts, Line, broken, counts, list_strikes};

/// The data of a report.
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

    /// The summary, a section of the documentation; `day` is the report's, as in 2026-01-01.
    pub fn section(&self, day: &str) -> String {
        let mut page = String::from(HEAD);
        let faults: usize = self.recoveries.values().map(Vec::len).sum();
        let Counts { executions, attempts, runs, reruns, in_time, late } = self.counts;
        let broken =
            |kind: &str| self.broken.iter().filter(|broken| *broken == kind).count() as u64;
        let rows = [
            ("day", day.to_owned()),
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
            ("executions that succeeded in time", number(in_time)),
            ("false alarms among these", number(broken("false alarm"))),
            ("executions that were late or failed for long", number(late)),
            ("not noticed among these", number(broken("unnoticed"))),
            ("tries that struck no execution", number(self.missed as u64)),
        ];
        page.push_str("| | |\n|---|---|\n");
        for (what, value) in rows {
            let _ = writeln!(page, "| {what} | {value} |");
        }
        page.push_str(MEANINGS);
        for family in families() {
            self.summarize(&mut page, family);
        }
        page
    }

    /// Every kind of fault, for the record.
    pub fn record(&self) -> String {
        let mut page = format!(
            "## Torture\n\n<!-- Written by `make torture`; not to be edited by hand. -->\n\n\
             | | |\n|---|---|\n| seed | {} |\n| versions | {} |\n\n{JUDGED}",
            self.seed,
            self.versions.join(", ")
        );
        for family in families() {
            self.table(&mut page, family);
        }
        page
    }

    /// A row for a class of faults: the spread of the medians of its kinds, and the slowest of all.
    fn summarize(&self, page: &mut String, family: &str) {
        let of_class = self.recoveries.iter().filter(|(fault, _)| fault.family() == family);
        let strikes: Vec<_> = of_class.map(|(_, strikes)| strikes).collect();
        let at = |percent| {
            let times = strikes.iter().map(|kind| sorted(kind));
            times.filter_map(move |times| percentile(&times, percent))
        };
        let medians = match (at(50).min(), at(50).max()) {
            (Some(least), Some(most)) => format!("{:.1}–{}", least.as_secs_f64(), seconds(most)),
            _ => "–".to_owned(),
        };
        let slowest = at(99).max().map_or("–".to_owned(), seconds);
        let (kinds, struck) = (strikes.len(), strikes.iter().map(|kind| kind.len()).sum::<usize>());
        let _ = writeln!(page, "| {family} | {kinds} | {struck} | {medians} | {slowest} |");
    }

    fn table(&self, page: &mut String, family: &str) {
        let _ = write!(page, "\n### {}\n\n", heading(family));
        page.push_str("| fault | struck | recovery p50 | p99 |\n|---|---|---|---|\n");
        for fault in Fault::all().into_iter().filter(|fault| fault.family() == family) {
            let strikes = self.recoveries.get(&fault).map_or(&[][..], Vec::as_slice);
            let times = sorted(strikes);
            let at = |percent| percentile(&times, percent).map_or("–".to_owned(), seconds);
            let struck = strikes.len();
            let _ = writeln!(page, "| {fault} | {struck} | {} | {} |", at(50), at(99));
        }
    }
}

const HEAD: &str = "\
## Torture

<!-- Written by `make torture`; not to be edited by hand. -->

`make torture` loads many platforms on real servers and strikes faults: it kills processes between any two effects,
kills, freezes and wipes servers, cuts, delays and swallows their traffic, moves messages by hand, and interrupts bulks. A
fault counts only if an execution was inside the step that it struck. Tasks write a ledger of their own, outside the
platform; the judge compares it with the rows. The seed decides the order of the faults.

";

const MEANINGS: &str = "
*Lost* is an execution without an end, *opened twice* an attempt whose task began more than once, *overlapping* a run beside
another one of the same idempotency key. A *re-run* repeats the work of an attempt that ended as lost, as promised. No other
[promise that the judge checks](../../tests/long-runs.md#torture) was broken.

Recovery is the time from the strike to the end of the last execution inside, with the rest of its task and a retry's delay of
one second; leases last four seconds. Each [kind of fault](../../tests/long-runs.md#torture) is in the record.

| class of faults | kinds | struck | recovery p50 by kind | slowest p99 |
|---|---|---|---|---|
";

const JUDGED: &str = "\
The judge ends a run at the first broken promise. It checks that

- no execution is lost, no attempt opened twice, and no runs of one idempotency key overlap: each run holds a lock that the
  kernel releases when its last process is gone;
- no attempt opens before it is due, after a success, or after an operator ended its execution;
- no failed execution runs that nobody moved, no key has two executions, and no task runs without an attempt;
- each success has its task's end in the ledger;
- every second of the job that fires each second has an execution or a gap;
- no monitor counts an execution as late that succeeded by its deadline, six seconds after it was due; each that was late or
  failed for 20 s while a scheduler reached the database is counted, with an incident;
- no bulk repeats an effect that the ledger had at the failure, or resolves an execution without one;
- every bulk ends, counts what its items say, records each action once, and leaves no verify execution;
- no program ends by itself or panics;
- in the end, failed rows and parked messages are the same.

Recovery is the time from the strike to the end of the last execution that was inside, with the rest of its task and its
retry's delay of one second (eight for a ticket that comes before it is due). Leases last four seconds. There is no time where
every execution had ended before the strike. *Wiped* includes the reconciler's wait of five minutes, shortened by ageing the
rows.
";

/// The classes of faults, in the order of the list.
fn families() -> Vec<&'static str> {
    let mut families: Vec<_> = Fault::all().iter().map(|fault| fault.family()).collect();
    families.dedup();
    families
}

fn sorted(strikes: &[Option<Duration>]) -> Vec<Duration> {
    let mut times: Vec<Duration> = strikes.iter().flatten().copied().collect();
    times.sort_unstable();
    times
}

fn heading(family: &str) -> String {
    let mut letters = family.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The smallest time that at least `percent` percent of the sorted `times` do not exceed.
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
        let report = Report::of(&lines);
        let page = report.section("2026-01-01");
        for row in [
            "| seed | 42 |",
            "| versions | Sexton 1, RabbitMQ 2 |",
            "| day | 2026-01-01 |",
            "| time | 2 min |",
            "| faults struck | 2 |",
            "| executions | 12,345 |",
            "| lost executions | 0 |",
            "| overlapping runs | 1 |",
            "| re-runs | 2 |",
            "| tries that struck no execution | 1 |",
            "| fault points | 2 | 2 | 1.2–1.2 s | 1.2 s |",
            "| servers | 0 | 0 | – | – |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        let record = report.record();
        for row in [
            "| seed | 42 |",
            "| scheduler.pruned | 1 | – | – |",
            "| worker.opened | 1 | 1.2 s | 1.2 s |",
            "| worker.ran | 0 | – | – |",
            "| RabbitMQ wiped | 0 | – | – |",
        ] {
            assert!(record.contains(row), "{row}\n{record}");
        }
    }
}
