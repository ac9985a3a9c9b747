//! The measurements, as a table for the document.

use std::fmt::Write as _;

use super::QueryTimes;

/// A table, one line for each query.
pub fn table(answered: &[QueryTimes]) -> String {
    let mut text = String::from(
        "| question | rows | p50 ms | p99 ms | max ms | pages | by |\n|---|---|---|---|---|---|---|\n",
    );
    for one in answered {
        let [p50, p99, max] = [50, 99, 100].map(|percent| one.percentile(percent));
        let pages = if one.plans.is_empty() { String::new() } else { one.pages().to_string() };
        let ways: Vec<String> = one.ways().iter().map(|way| format!("`{way}`")).collect();
        let (name, rows, ways) = (one.name, one.rows, ways.join(", "));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {rows} | {p50:.1} | {p99:.1} | {max:.1} | {pages} | {ways} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = (1..=200).map(f64::from).collect();
        let one = QueryTimes { name: "x", rows: 1, times, plans: Vec::new() };
        assert_eq!(
            (one.percentile(50), one.percentile(99), one.percentile(100)),
            (100.0, 198.0, 200.0)
        );
        assert!(table(&[one]).contains("| x | 1 | 100.0 | 198.0 | 200.0 |  |  |"));
    }
}
