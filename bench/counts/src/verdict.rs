//! The comparison: what was counted now against what was recorded.

use std::fmt::Write as _;

use crate::baseline::Baseline;

/// By how much a function may grow, in percent of what was recorded.
pub const TOLERANCE_PERCENT: u64 = 3;
/// Growing by so many instructions is never told: of a function of fifty they are one register saved more.
pub const MIN_CHANGE_INSTRUCTIONS: u64 = 10;

/// What became of one function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Within the tolerance.
    Same,
    /// Dearer by more than it.
    Grew,
    /// Cheaper by more than it.
    Shrank,
    /// Nothing was recorded.
    New,
}

/// Judges one count.
pub const fn judge(recorded: Option<u64>, now: u64) -> Change {
    let Some(recorded) = recorded else { return Change::New };
    let percent = recorded.saturating_mul(TOLERANCE_PERCENT) / 100;
    let least = if percent > MIN_CHANGE_INSTRUCTIONS { percent } else { MIN_CHANGE_INSTRUCTIONS };
    if now > recorded.saturating_add(least) {
        Change::Grew
    } else if now < recorded.saturating_sub(least) {
        Change::Shrank
    } else {
        Change::Same
    }
}

/// What there is to say, and whether it is a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// For people.
    pub text: String,
    /// A function grew, or is not recorded, or what is recorded is not counted any more.
    pub failed: bool,
}

/// Compares two counts. Under other circumstances they are shown beside each other, and nothing fails.
pub fn compare(recorded: &Baseline, now: &Baseline) -> Report {
    let mut text = String::new();
    let mut told = Vec::new();
    for (name, count) in &now.instructions {
        let before = recorded.of(name);
        let change = judge(before, *count);
        // Writing to a String cannot fail.
        let _ = match before {
            Some(before) => {
                let percent = (*count as f64 / before.max(1) as f64 - 1.0) * 100.0;
                writeln!(
                    text,
                    "{name:30} {before:>9} -> {count:>9}  {percent:+6.1} %  {}",
                    word(change)
                )
            }
            None => {
                writeln!(text, "{name:30} {:>9} -> {count:>9}            {}", "none", word(change))
            }
        };
        told.push(change);
    }
    let gone = recorded.instructions.iter().filter(|(name, _)| now.of(name).is_none());
    let gone: Vec<_> = gone.map(|(name, _)| name.as_str()).collect();
    for name in &gone {
        let _ = writeln!(text, "{name:30} is recorded and not counted any more");
    }
    let differences = now.made.differences(&recorded.made);
    let failed = told.contains(&Change::Grew) || told.contains(&Change::New) || !gone.is_empty();
    let failed = failed && differences.is_empty();
    text.push_str(&conclusion(&differences, &told, failed));
    Report { text, failed }
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::Same => "",
        Change::Grew => "GREW",
        Change::Shrank => "shrank",
        Change::New => "NEW",
    }
}

fn conclusion(differences: &[String], told: &[Change], failed: bool) -> String {
    if !differences.is_empty() {
        return format!(
            "\nNOT judged: what is recorded was counted under other circumstances.\n  {}\n\
             Count the commit before yours here as well and compare, or, where this compiler is the one \
             to stay, record anew: make counts-record\n",
            differences.join("\n  ")
        );
    }
    if failed {
        return format!(
            "\nThe tolerance is {TOLERANCE_PERCENT} %, and {MIN_CHANGE_INSTRUCTIONS} instructions. Make it as cheap as it was; \
             or, if what it does now is worth its price, or the list of cases has changed:\n\
             make counts-record, and say why in the commit.\n"
        );
    }
    if told.contains(&Change::Shrank) {
        return "\nNothing grew. To keep what was gained: make counts-record\n".to_owned();
    }
    format!("\nNothing grew by more than {TOLERANCE_PERCENT} %.\n")
}

#[cfg(test)]
mod tests;
