//! The options of a range of time, which includes its beginning and excludes its end.

use clap::Args;
use sexton_operations::instants::TimeRangeRequest;

/// Help text of `--since`.
pub const SINCE_HELP: &str = "At or after this instant: 2025-12-01T08:00:00Z, 2025-12-01T08:00, 2025-12-01, now, or a \
                              duration before now such as 36h";
/// Help text of `--until`.
pub const UNTIL_HELP: &str = "Before this instant, written as for --since";
/// Help text of `--at`.
pub const AT_HELP: &str = "At this instant, written as for --since";

/// From when until when.
#[derive(Clone, Default, PartialEq, Eq, Debug, Args)]
pub struct TimeRangeOptions {
    #[arg(long, value_name = "INSTANT", help = SINCE_HELP)]
    since: Option<String>,
    #[arg(long, value_name = "INSTANT", help = UNTIL_HELP)]
    until: Option<String>,
}

impl TimeRangeOptions {
    /// The request for an operation.
    pub fn request(&self) -> TimeRangeRequest<'_> {
        TimeRangeRequest { since: self.since.as_deref(), until: self.until.as_deref() }
    }
}

#[cfg(test)]
mod tests {
    use sexton_operations::instants::FORMS;

    use super::SINCE_HELP;

    #[test]
    fn the_help_names_the_forms_that_an_instant_may_have() {
        assert!(SINCE_HELP.ends_with(FORMS), "{SINCE_HELP}");
    }
}
