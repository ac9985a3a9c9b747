//! The output: one line of JSON for each figure.

use serde::Serialize;
use serde_json::{Map, Value};

/// A figure, as `bench/report.py` reads it.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) peer: &'static str,
    pub(crate) version: &'static str,
    pub(crate) work: &'static str,
    pub(crate) round: u32,
    /// Of a drain: the requested number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefetch: Option<u16>,
    /// Of a lag, whose value is the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<f64>,
    /// Of drain and commands: processor time of the whole machine for each task, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processor_ms: Option<f64>,
    /// The settings of the measurement.
    pub(crate) settings: Map<String, Value>,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The parts of the value, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<f64>,
}

impl Line {
    pub(crate) fn print(&self) {
        // Numbers and texts can always be written as JSON.
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}

/// Returns the smallest sample that at least this share (0 to 1) of them does not exceed.
pub(crate) fn at(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}
