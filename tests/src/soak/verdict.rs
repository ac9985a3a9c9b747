//! Whether something grows: a slope, its noise, and what is allowed. Pure.
//!
//! # The rule
//!
//! Only the second half of a soak counts; in the first, caches and pools fill and tables find their
//! size. Through its samples goes the Theil-Sen line (the median of the slopes between any two
//! samples), which a few outliers do not turn. What it gains over the length of the whole soak is the
//! growth. Noise is three times the spread of the samples about that line, as their median distance
//! tells it. A series is bounded if its growth is at most the largest of
//!
//! - its noise,
//! - a share of its median (5 % for memory),
//! - a floor, below which growth is of no concern, such as a few messages in a queue.

use serde::Serialize;

/// From the median distance of a normal distribution to its standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;
/// How many standard deviations count as noise.
const DEVIATIONS: f64 = 3.0;
/// With fewer samples in the second half there is no verdict.
const MIN_SAMPLES: usize = 4;

/// The samples of one quantity.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name, for people.
    pub name: String,
    /// Seconds since the soak began, and the value then.
    pub points: Vec<(f64, f64)>,
    /// The share of the median by which it may grow over the whole soak.
    pub share: f64,
    /// The growth that is always allowed, in the quantity's unit.
    pub floor: f64,
}

/// The growth of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// The name of the series.
    pub name: String,
    /// The median of the second half.
    pub median: f64,
    /// The gain of the line over the length of the whole soak; negative if it falls.
    pub grown: f64,
    /// Three standard deviations about the line.
    pub noise: f64,
    /// The most that it may have grown.
    pub allowed: f64,
}

impl Growth {
    /// Whether it grew by no more than is allowed.
    pub fn is_bounded(&self) -> bool {
        self.grown <= self.allowed
    }
}

/// Judges a series by the rule above; `None` if there are too few samples for a judgement.
pub fn growth(series: &Series) -> Option<Growth> {
    let (first, last) = (series.points.first()?.0, series.points.last()?.0);
    let points = &series.points[series.points.len() / 2..];
    if points.len() < MIN_SAMPLES {
        return None;
    }
    let slope = theil_sen(points)?;
    let level = median(points.iter().map(|(at, value)| value - slope * at))?;
    let distances = points.iter().map(|(at, value)| (value - level - slope * at).abs());
    let noise = DEVIATIONS * MAD_TO_DEVIATION * median(distances)?;
    let median = median(points.iter().map(|(_, value)| *value))?;
    Some(Growth {
        name: series.name.clone(),
        median,
        grown: slope * (last - first),
        noise,
        allowed: noise.max(series.share * median).max(series.floor),
    })
}

/// The median of the slopes between any two points of different times.
fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(index, from)| {
        points[index + 1..].iter().filter(|to| to.0 > from.0).map(move |to| (from, to))
    });
    median(pairs.map(|(from, to)| (to.1 - from.1) / (to.0 - from.0)))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        even if even % 2 == 0 => Some(f64::midpoint(values[middle - 1], values[middle])),
        _ => Some(values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges 240 samples, five seconds apart, with the value of `value` at each.
    fn judged(share: f64, floor: f64, value: impl Fn(usize) -> f64) -> Growth {
        let points = (0..240).map(|n| (n as f64 * 5.0, value(n))).collect();
        growth(&Series { name: "it".to_owned(), points, share, floor }).unwrap()
    }

    /// A number between -1 and 1 that follows no line.
    fn shake(n: usize) -> f64 {
        ((n * 7_919) % 201) as f64 / 100.0 - 1.0
    }

    #[test]
    fn a_flat_or_falling_series_is_bounded() {
        for slope in [0.0, -1.0] {
            let growth = judged(0.05, 0.0, |n| 1_000.0 + slope * n as f64);
            assert!(growth.is_bounded(), "{growth:?}");
        }
    }

    #[test]
    fn a_leak_is_found_under_noise_ten_times_its_step() {
        let steady = judged(0.05, 0.0, |n| 1_000.0 + 5.0 * shake(n));
        assert!(steady.is_bounded() && steady.noise > 5.0, "{steady:?}");
        let leak = judged(0.05, 0.0, |n| 1_000.0 + 0.5 * n as f64 + 5.0 * shake(n));
        assert!(!leak.is_bounded(), "{leak:?}");
        assert!((leak.grown - 119.5).abs() < 10.0, "{leak:?}");
    }

    #[test]
    fn growth_within_the_share_or_below_the_floor_is_accepted() {
        let value = |n: usize| 1_000.0 + 0.1 * n as f64;
        assert!(!judged(0.01, 0.0, value).is_bounded());
        assert!(judged(0.05, 0.0, value).is_bounded());
        assert!(judged(0.01, 24.0, value).is_bounded());
    }

    #[test]
    fn a_warm_up_and_single_outliers_are_ignored() {
        let growth = judged(0.05, 0.0, |n| match n {
            0..100 => n as f64 * 10.0,
            150 | 200 => 50_000.0,
            _ => 1_000.0,
        });
        assert!(growth.is_bounded() && growth.grown.abs() < 1.0, "{growth:?}");
    }

    #[test]
    fn a_table_that_grows_in_steps_is_found() {
        let growth = judged(0.1, 8_192.0, |n| (n / 10 * 65_536) as f64);
        assert!(!growth.is_bounded(), "{growth:?}");
    }

    #[test]
    fn too_few_samples_give_no_verdict() {
        let points = vec![(0.0, 1.0), (5.0, 1.0), (10.0, 1.0)];
        let series = Series { name: "it".to_owned(), points, share: 0.05, floor: 0.0 };
        assert_eq!(growth(&series), None);
    }
}
