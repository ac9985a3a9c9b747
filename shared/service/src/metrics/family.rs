//! Metrics that this process counts itself.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabel as _, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge;
use prometheus_client::metrics::histogram;
use prometheus_client::registry::Registry;

use super::Program;
use super::table::SERIES_DROPPED;

/// Maximum number of series of one metric with a label whose values people choose.
pub const MAX_SERIES: usize = 1_000;
/// The value of such a label in the series beyond [`MAX_SERIES`].
const OTHER: &str = "_other";

/// A label of a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) values: Values,
}

/// The values of a label.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// Words of this program, which the page lists or describes.
    Fixed(&'static str),
    /// Names that people choose; bounded by [`MAX_SERIES`].
    Chosen(&'static str),
}

/// The description of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Without the prefix, and for a counter without `_total`.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [Label],
    pub(crate) programs: &'static [Program],
    /// Whether it is a value of the whole platform.
    pub(crate) is_platform: bool,
}

impl Info {
    /// Returns the help text; the encoder adds a full stop.
    pub(super) fn help_line(&self) -> &'static str {
        self.help.trim_end_matches('.')
    }
}

/// The type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A declared metric.
pub trait Metric: Sync {
    /// Returns its description.
    fn info(&self) -> &Info;
    /// Adds it to a registry.
    fn register(&'static self, registry: &mut Registry);
}

/// The label values of one series.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Series<const N: usize>([(&'static str, String); N]);

impl<const N: usize> Series<N> {
    pub(super) fn new(labels: &'static [Label], values: [&str; N]) -> Self {
        Self(std::array::from_fn(|index| (labels[index].name, values[index].to_owned())))
    }

    /// The series of values beyond the bound.
    pub(super) fn other(labels: &'static [Label], values: [&str; N]) -> Self {
        Self(std::array::from_fn(|index| match labels[index].values {
            Values::Chosen(_) => (labels[index].name, OTHER.to_owned()),
            Values::Fixed(_) => (labels[index].name, values[index].to_owned()),
        }))
    }
}

impl<const N: usize> EncodeLabelSet for Series<N> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.iter().try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

/// The series of a metric, and how a new one begins.
type Map<M, const N: usize> = Family<Series<N>, M, fn() -> M>;

/// A metric's series: one `M` for each set of label values.
#[derive(Debug)]
struct AllSeries<M, const N: usize> {
    info: Info,
    family: LazyLock<Map<M, N>>,
    /// Series that were made, for the bound.
    made: AtomicUsize,
}

impl<M: Clone, const N: usize> AllSeries<M, N> {
    const fn new(info: Info, family: fn() -> Map<M, N>) -> Self {
        Self { info, family: LazyLock::new(family), made: AtomicUsize::new(0) }
    }

    /// Returns the series of these values, or that of `_other`.
    fn get(&self, values: [&str; N]) -> M {
        let labels = self.info.labels;
        let series = Series::new(labels, values);
        if let Some(found) = self.family.get(&series) {
            return M::clone(&found);
        }
        let is_chosen = labels.iter().any(|label| matches!(label.values, Values::Chosen(_)));
        if is_chosen && self.made.fetch_add(1, Ordering::Relaxed) >= MAX_SERIES {
            SERIES_DROPPED.add([], 1);
            return self.family.get_or_create_owned(&Series::other(labels, values));
        }
        self.family.get_or_create_owned(&series)
    }
}

/// A number that only grows.
#[derive(Debug)]
pub struct Counter<const N: usize>(AllSeries<counter::Counter, N>);

impl<const N: usize> Counter<N> {
    pub(super) const fn new(info: Info) -> Self {
        Self(AllSeries::new(info, || Family::new_with_constructor(counter::Counter::default)))
    }

    /// Adds `count` to the series of these label values.
    pub fn add(&self, values: [&str; N], count: u64) {
        if count > 0 {
            self.0.get(values).inc_by(count);
        }
    }
}

type FloatGauge = gauge::Gauge<f64, AtomicU64>;

/// A number that goes up and down.
#[derive(Debug)]
pub struct Gauge<const N: usize>(AllSeries<FloatGauge, N>);

impl<const N: usize> Gauge<N> {
    pub(super) const fn new(info: Info) -> Self {
        Self(AllSeries::new(info, || Family::new_with_constructor(FloatGauge::default)))
    }

    /// Sets the series of these label values.
    pub fn set(&self, values: [&str; N], value: f64) {
        self.0.get(values).set(value);
    }

    /// Returns the series of these label values, for those who change it often.
    pub fn series(&self, values: [&str; N]) -> GaugeSeries {
        GaugeSeries(self.0.get(values))
    }
}

/// One series of a gauge. Clones are the same series.
#[derive(Clone, Debug)]
pub struct GaugeSeries(FloatGauge);

impl GaugeSeries {
    /// Adds to its value.
    pub fn add(&self, value: f64) {
        self.0.inc_by(value);
    }
}

/// A distribution, in buckets.
#[derive(Debug)]
pub struct Histogram<const N: usize>(AllSeries<histogram::Histogram, N>);

/// Upper bounds of the buckets of waits, in seconds.
const WAIT_BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0];
/// Upper bounds of the buckets of runs, in seconds.
const RUN_BUCKETS: [f64; 14] = [
    0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0,
    86_400.0,
];

impl<const N: usize> Histogram<N> {
    /// For waits of a millisecond to ten minutes.
    pub(super) const fn of_waits(info: Info) -> Self {
        Self(AllSeries::new(info, || {
            Family::new_with_constructor(|| histogram::Histogram::new(WAIT_BUCKETS))
        }))
    }

    /// For runs of some milliseconds to a day.
    pub(super) const fn of_runs(info: Info) -> Self {
        Self(AllSeries::new(info, || {
            Family::new_with_constructor(|| histogram::Histogram::new(RUN_BUCKETS))
        }))
    }

    /// Adds a duration to the series of these label values.
    pub fn observe(&self, values: [&str; N], duration: Duration) {
        self.0.get(values).observe(duration.as_secs_f64());
    }
}

macro_rules! metric {
    ($type:ident) => {
        impl<const N: usize> Metric for $type<N> {
            fn info(&self) -> &Info {
                &self.0.info
            }

            fn register(&'static self, registry: &mut Registry) {
                let info = &self.0.info;
                // Otherwise the first increase would be a series that begins with it, and no rate would count it.
                if N == 0 && info.kind != Kind::Gauge {
                    self.0.get([""; N]);
                }
                registry.register(info.name, info.help_line(), Family::clone(&self.0.family));
            }
        }
    };
}

metric!(Counter);
metric!(Gauge);
metric!(Histogram);
