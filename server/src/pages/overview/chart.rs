//! The firings of the next day as bars, a bar for ten minutes.

use std::fmt;
use std::fmt::Write as _;

use askama::filters::HtmlSafe;
use sexton_operations::jobs::density::FiringDensity;

/// Height of the chart, and width of one of its bars with the gap behind it, in units that the page stretches.
const HEIGHT: u64 = 100;
const BAR_WIDTH: usize = 6;

/// Bars of the parts of a day.
#[derive(Clone, Copy, Debug)]
pub(super) struct DensityChart<'a>(pub(super) &'a FiringDensity);

impl HtmlSafe for DensityChart<'_> {}

impl fmt::Display for DensityChart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(density) = self;
        let most = density.counts.iter().copied().max().unwrap_or(0).max(1);
        let mut bars = String::new();
        for (part, firings) in density.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // A small number is seen, too.
            let height = (u128::from(*firings) * u128::from(HEIGHT) / u128::from(most)).max(2);
            let (x, y) = (part * BAR_WIDTH, u128::from(HEIGHT).saturating_sub(height));
            let bar = BAR_WIDTH - 1;
            let at = density.begin(part).format("%H:%M");
            write!(
                bars,
                r#"<rect x="{x}" y="{y}" width="{bar}" height="{height}"><title>{at} UTC: {firings}</title></rect>"#
            )?;
        }
        let width = density.counts.len() * BAR_WIDTH;
        let total = density.total();
        write!(
            f,
            r#"<svg class="density" role="img" aria-label="{total} firings in the next 24 hours, at most {most} in ten minutes" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none">{bars}</svg>"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_when_and_how_many() {
        let from = "2026-01-01T23:50:00Z".parse().unwrap();
        let density = FiringDensity { from, counts: vec![0, 3, 6000], jobs: 1, complete: true };
        let text = DensityChart(&density).to_string();
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains("<title>00:00 UTC: 3</title>"), "{text}");
        assert!(text.contains(r#"y="98" width="5" height="2""#), "{text}");
        assert!(text.contains("6003 firings in the next 24 hours, at most 6000 in ten"), "{text}");
    }
}
