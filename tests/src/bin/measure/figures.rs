//! The measured figures, printed at once and kept for the record.

use std::fmt::Write as _;

/// Figures, in the order in which they were taken.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<(String, String)>);

impl Figures {
    /// Adds a figure and prints it at once.
    pub(super) fn add(&mut self, what: impl Into<String>, figure: impl Into<String>) {
        let (what, figure) = (what.into(), figure.into());
        println!("{what}: {figure}");
        self.0.push((what, figure));
    }

    /// All figures as a table.
    pub(super) fn table(&self) -> String {
        let mut text = "| what | measured |\n|---|---|\n".to_owned();
        for (what, figure) in &self.0 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {what} | {figure} |");
        }
        text
    }
}

/// One or more durations in milliseconds.
#[derive(Debug)]
pub(super) struct Spread(Vec<f64>);

impl Spread {
    /// From durations in any order.
    pub(super) fn new(mut millis: Vec<f64>) -> Self {
        millis.sort_by(f64::total_cmp);
        Self(millis)
    }

    /// The smallest duration that at least this share (0 to 1) of them does not exceed.
    pub(super) fn at(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len()) - 1).copied().unwrap_or(f64::NAN)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text for people.
    pub(super) fn render(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms, {} times", self.at(0.5), self.at(0.99), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_value_that_the_share_does_not_exceed() {
        let spread = Spread::new((1..=200).rev().map(f64::from).collect());
        let at = |share: f64| spread.at(share) as u32;
        assert_eq!([at(0.0), at(0.5), at(0.99), at(1.0)], [1, 100, 198, 200]);
        assert_eq!(Spread::new(vec![7.0]).render(), "p50 7.0 ms, p99 7.0 ms, 1 times");
    }

    #[test]
    fn figures_become_a_table() {
        let mut figures = Figures::default();
        figures.add("one", "1 ms");
        assert!(figures.table().ends_with("|---|---|\n| one | 1 ms |\n"), "{}", figures.table());
    }
}
