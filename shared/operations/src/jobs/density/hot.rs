//! Which minutes of a day are hot: too many jobs fire in them at the same time.

/// Fewer firings in a minute crowd nothing.
const MIN_FIRINGS: u64 = 20;
/// How many times what the other minutes have.
const FACTOR: u64 = 3;
/// One in so many minutes may stand out; what happens more often is the day's rhythm.
const ONE_IN: usize = 20;

/// Returns the hot ones among the minutes of a day, by their places, the fullest first.
///
/// A minute is hot that has at least 20 firings, and at least three times as many as nineteen of twenty minutes of the day have at most.
/// So 400 firings at midnight are found on a day with 80 in every other minute, and those of jobs that fire every five minutes, with 20 in
/// each, are not.
pub(super) fn hot_minutes(firings: &[u64]) -> Vec<usize> {
    let mut sorted = firings.to_vec();
    sorted.sort_unstable();
    let usual = sorted.get(sorted.len() - sorted.len().div_ceil(ONE_IN)).copied().unwrap_or(0);
    let least = usual.saturating_mul(FACTOR).max(MIN_FIRINGS);
    let mut hot: Vec<usize> = (0..firings.len()).filter(|at| firings[*at] >= least).collect();
    hot.sort_by_key(|at| (std::cmp::Reverse(firings[*at]), *at));
    hot
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: usize = 1440;

    /// A day with `firings` in every minute that `is_full` selects, and `others` in the rest.
    fn day(firings: u64, others: u64, is_full: impl Fn(usize) -> bool) -> Vec<u64> {
        (0..DAY).map(|minute| if is_full(minute) { firings } else { others }).collect()
    }

    #[test]
    fn one_full_minute_is_hot_on_an_empty_and_on_a_busy_day() {
        assert_eq!(hot_minutes(&day(20, 0, |minute| minute == 7)), [7]);
        assert_eq!(hot_minutes(&day(400, 80, |minute| minute == 0)), [0]);
    }

    #[test]
    fn few_firings_and_little_more_than_usual_are_not() {
        assert!(hot_minutes(&day(19, 0, |minute| minute == 7)).is_empty());
        assert!(hot_minutes(&day(239, 80, |minute| minute == 7)).is_empty());
        assert!(hot_minutes(&day(0, 0, |_| false)).is_empty());
        assert!(hot_minutes(&day(500, 500, |_| true)).is_empty());
        assert!(hot_minutes(&[]).is_empty());
    }

    #[test]
    fn every_hour_is_hot_and_every_quarter_is_the_rhythm_of_the_day() {
        assert_eq!(hot_minutes(&day(50, 0, |minute| minute % 60 == 0)).len(), 24);
        assert!(hot_minutes(&day(50, 0, |minute| minute % 15 == 0)).is_empty());
    }

    #[test]
    fn the_fullest_comes_first_and_of_two_the_earlier() {
        let mut firings = day(30, 0, |minute| minute == 5 || minute == 3);
        firings[9] = u64::MAX;
        assert_eq!(hot_minutes(&firings), [9, 3, 5]);
    }
}
