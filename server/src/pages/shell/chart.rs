//! Small charts as SVG, drawn here, so that they need no script and no style of their own.

use std::fmt;
use std::fmt::Write as _;

use askama::filters::HtmlSafe;

/// Height of a sparkline, and width of one of its bars, in pixels.
const HEIGHT: u64 = 20;
const BAR_WIDTH: usize = 4;

/// Bars of numbers, the oldest first.
#[derive(Clone, Debug)]
pub(in crate::pages) struct Sparkline<'a> {
    pub(in crate::pages) values: &'a [u64],
    /// What it shows, for people who do not see it.
    pub(in crate::pages) label: String,
}

impl HtmlSafe for Sparkline<'_> {}

impl fmt::Display for Sparkline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.values.len() * BAR_WIDTH;
        let most = self.values.iter().copied().max().unwrap_or(0).max(1);
        let mut bars = String::new();
        for (index, value) in self.values.iter().enumerate().filter(|(_, value)| **value > 0) {
            // A small number is seen, too.
            let height = (u128::from(*value) * u128::from(HEIGHT) / u128::from(most)).max(2);
            let (x, y) = (index * BAR_WIDTH, u128::from(HEIGHT).saturating_sub(height));
            let bar = BAR_WIDTH - 1;
            write!(bars, r#"<rect x="{x}" y="{y}" width="{bar}" height="{height}"/>"#)?;
        }
        write!(
            f,
            r#"<svg class="sparkline" role="img" aria-label="{}" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}">{bars}</svg>"#,
            self.label
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_has_the_whole_height_and_the_smallest_is_seen() {
        let drawn = |values: &[u64]| Sparkline { values, label: "trend".to_owned() }.to_string();
        let text = drawn(&[0, 1, 1_000_000]);
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains(r#"x="4" y="18""#) && text.contains(r#"x="8" y="0""#), "{text}");
        assert_eq!(drawn(&[0, 0]).matches("<rect").count(), 0);
        assert!(drawn(&[u64::MAX]).contains(r#"height="20"/>"#));
    }
}
