//! Numbers as a line of small bars.

/// From the smallest to the largest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// For zero.
const ZERO_BAR: char = '·';

/// One character for each number, in proportion to the largest; whatever is more than zero has a bar.
pub fn sparkline(numbers: &[u64]) -> String {
    let max = numbers.iter().copied().max().unwrap_or_default();
    let bar = |number: u64| match (u128::from(number) * 8).checked_div(u128::from(max)) {
        None | Some(_) if number == 0 => ZERO_BAR,
        // At most 8, at the largest; BARS has as many.
        share => BARS[(share.unwrap_or(0).max(1) - 1).min(7) as usize],
    };
    numbers.iter().map(|number| bar(*number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_only_zero_has_none() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), "·▁▄█");
        assert_eq!(sparkline(&[0, 0]), "··");
        assert_eq!(sparkline(&[3, 3]), "██");
        assert_eq!(sparkline(&[1, u64::MAX]), "▁█");
        assert_eq!(sparkline(&[]), "");
    }
}
