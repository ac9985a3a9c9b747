//! Metrics of a process, answered at `/metrics` in the OpenMetrics text format.
//!
//! [`table`] declares every metric of every program; from it `docs/reference/metrics.md` is written, and nothing else
//! is answered. Like logs, metrics belong to the process: the declarations are statics, so that a loop that counts
//! something need not be handed a counter.
//!
//! **Bounds.** No label holds an execution, a worker, a message or an address. A label whose values people choose (pool,
//! task type) has at most [`MAX_SERIES`] series in a metric; what comes later is recorded with the value `_other`, or left
//! out of a snapshot, and `sexton_series_dropped_total` counts it.
//!
//! **Whole-platform values.** Values of the database ([`SnapshotGauge`], [`SnapshotCounter`]) are read by each
//! scheduler, so every replica answers the same. A process that cannot read them any more answers none after
//! [`MAX_SNAPSHOT_AGE`], rather than old ones.

mod family;
mod page;
mod per_job;
mod server;
mod snapshot;
pub mod table;

use std::sync::OnceLock;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

pub use family::{Counter, Gauge, GaugeSeries, Histogram, MAX_SERIES};
pub use page::reference_page;
pub use snapshot::{MAX_SNAPSHOT_AGE, SnapshotCounter, SnapshotGauge};

pub use crate::settings::Program;

/// The content type of [`encode`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Beginning of every metric's name.
pub(crate) const PREFIX: &str = "sexton";

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Chooses which program's metrics this process answers; the first call decides.
pub fn init(program: Program, version: &str) {
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::with_prefix(PREFIX);
        for metric in table::ALL {
            if metric.info().programs.contains(&program) {
                metric.register(&mut registry);
            }
        }
        registry
    });
    table::BUILD_INFO.set([program.name(), version], 1.0);
}

/// Returns all metrics of this process; empty before [`init`].
pub fn encode() -> String {
    let mut text = String::new();
    if let Some(registry) = REGISTRY.get() {
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, registry);
    }
    text
}

#[cfg(test)]
mod tests;
