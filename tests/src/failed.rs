//! The cost of failed executions in large numbers: rows like those of a platform that has run for
//! long, operators' queries of them, and how long each takes.
//!
//! Every value follows from the row's number, so two runs query the same rows.

mod data;
mod platform_rows;
mod queries;
mod report;
mod suspended;

pub use data::{Size, fill};
pub use platform_rows::{PlatformRows, fill_platform_rows};
pub use queries::{Query, all_queries, measure};
pub use report::table;

use serde_json::Value;

/// How long the answers to one query took, and how the server found them.
#[derive(Clone, PartialEq, Debug)]
pub struct QueryTimes {
    /// The query.
    pub name: &'static str,
    /// The number of rows in the last answer.
    pub rows: usize,
    /// Milliseconds, ascending.
    pub times: Vec<f64>,
    /// The plans of its statements that search; empty for the others.
    pub plans: Vec<Value>,
}

impl QueryTimes {
    /// The time that this percentage of the answers did not exceed.
    pub fn percentile(&self, percent: usize) -> f64 {
        let place = (self.times.len() * percent).div_ceil(100).clamp(1, self.times.len().max(1));
        self.times.get(place - 1).copied().unwrap_or_default()
    }

    /// The pages that its plans read, cached ones included.
    pub fn pages(&self) -> u64 {
        let read = |plan: &Value, field: &str| plan[0]["Plan"][field].as_u64().unwrap_or_default();
        let each = |plan| read(plan, "Shared Hit Blocks") + read(plan, "Shared Read Blocks");
        self.plans.iter().map(each).sum()
    }

    /// The indexes that its plans use, and the tables that they read whole.
    pub fn ways(&self) -> Vec<String> {
        let mut ways = Vec::new();
        self.plans.iter().for_each(|plan| walk(&plan[0]["Plan"], &mut ways));
        ways.sort();
        ways.dedup();
        ways
    }
}

fn walk(plan: &Value, ways: &mut Vec<String>) {
    if let Some(index) = plan["Index Name"].as_str() {
        ways.push(index.to_owned());
    } else if plan["Node Type"] == "Seq Scan" {
        ways.push(format!("all of {}", plan["Relation Name"].as_str().unwrap_or("?")));
    }
    plan["Plans"].as_array().into_iter().flatten().for_each(|inside| walk(inside, ways));
}
