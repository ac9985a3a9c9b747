//! Values that are read as a whole: a scrape sees all of one reading, or none.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::family::{Info, MAX_SERIES, Metric, Series};

/// How long a reading is answered.
pub const MAX_SNAPSHOT_AGE: Duration = Duration::from_mins(2);

/// Gauges of one reading.
#[derive(Debug)]
pub struct SnapshotGauge<const N: usize>(Snapshot<N>);

/// Counters of one reading, such as sums over the database.
#[derive(Debug)]
pub struct SnapshotCounter<const N: usize>(Snapshot<N>);

#[derive(Debug)]
struct Snapshot<const N: usize> {
    info: Info,
    reading: Mutex<Option<Reading<N>>>,
}

#[derive(Debug)]
struct Reading<const N: usize> {
    at: Instant,
    series: Vec<(Series<N>, f64)>,
}

impl<const N: usize> Reading<N> {
    /// Returns the series, none if they are too old.
    fn series_at(&self, now: Instant) -> &[(Series<N>, f64)] {
        let is_fresh = now.saturating_duration_since(self.at) < MAX_SNAPSHOT_AGE;
        if is_fresh { &self.series } else { &[] }
    }
}

impl<const N: usize> SnapshotGauge<N> {
    /// Replaces all series: those of `values`, and one of `_other` whose value stands for those left out.
    pub fn set_with_other(&self, values: Vec<([&str; N], f64)>, other: Option<f64>) {
        self.0.replace(values, other);
    }
}

impl<const N: usize> Snapshot<N> {
    const fn new(info: Info) -> Self {
        Self { info, reading: Mutex::new(None) }
    }

    fn set(&self, values: Vec<([&str; N], f64)>) {
        let dropped = values.len().saturating_sub(MAX_SERIES);
        super::table::SERIES_DROPPED.add([], dropped as u64);
        self.replace(values, None);
    }

    /// Replaces all series; `other` is the value of those that the caller has left out.
    fn replace(&self, values: Vec<([&str; N], f64)>, other: Option<f64>) {
        let labels = self.info.labels;
        let series = values.into_iter().take(MAX_SERIES);
        let series = series.map(|(values, value)| (Series::new(labels, values), value));
        let other = other.map(|value| (Series::other(labels, [""; N]), value));
        let series = series.chain(other).collect();
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Reading { at: Instant::now(), series });
    }

    fn encode(&self, mut encoder: DescriptorEncoder<'_>, kind: MetricType) -> fmt::Result {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let series = reading.as_ref().map_or(&[][..], |reading| reading.series_at(Instant::now()));
        if series.is_empty() {
            return Ok(());
        }
        let is_counter = matches!(kind, MetricType::Counter);
        let mut metric = encoder.encode_descriptor(self.info.name, self.info.help, None, kind)?;
        for (series, value) in series {
            let mut encoder = metric.encode_family(series)?;
            if is_counter {
                encoder.encode_counter::<NoLabelSet, f64, f64>(value, None)?;
            } else {
                encoder.encode_gauge(value)?;
            }
        }
        Ok(())
    }
}

macro_rules! snapshot {
    ($type:ident, $collector:ident, $kind:expr) => {
        impl<const N: usize> $type<N> {
            pub(super) const fn new(info: Info) -> Self {
                Self(Snapshot::new(info))
            }

            /// Replaces all series.
            pub fn set(&self, values: Vec<([&str; N], f64)>) {
                self.0.set(values);
            }
        }

        impl<const N: usize> Metric for $type<N> {
            fn info(&self) -> &Info {
                &self.0.info
            }

            fn register(&'static self, registry: &mut Registry) {
                registry.register_collector(Box::new($collector(self)));
            }
        }

        #[derive(Debug)]
        struct $collector<const N: usize>(&'static $type<N>);

        impl<const N: usize> Collector for $collector<N> {
            fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
                self.0.0.encode(encoder, $kind)
            }
        }
    };
}

snapshot!(SnapshotGauge, GaugeCollector, MetricType::Gauge);
snapshot!(SnapshotCounter, CounterCollector, MetricType::Counter);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_reading_is_not_answered() {
        let at = Instant::now();
        let reading: Reading<0> = Reading { at, series: vec![(Series::new(&[], []), 1.0)] };
        assert_eq!(reading.series_at(at + MAX_SNAPSHOT_AGE / 2).len(), 1);
        assert!(reading.series_at(at + MAX_SNAPSHOT_AGE).is_empty());
    }
}
