//! Traces: real programs, and a collector that receives what they send.

mod collector;
mod encrypted;
mod off;
mod trees;

use sexton_tests::platform::{Platform, Program};

use self::collector::{Collector, Received};

/// A platform whose programs trace.
struct Traced {
    collector: Collector,
    platform: Platform,
    _scheduler: Program,
    worker: Program,
}

impl Traced {
    /// Starts it with this catalogue and these jobs.
    async fn new(catalogue: &str, jobs: &str) -> Self {
        let collector = Collector::start().await;
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(catalogue);
        let url = collector.url();
        let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())];
        let mut scheduler = platform.start_scheduler("s1", &env).unwrap();
        let mut worker = platform.start_worker("w1", &env).unwrap();
        scheduler.ready().await;
        worker.ready().await;
        platform.apply(jobs).await.unwrap();
        Self { collector, platform, _scheduler: scheduler, worker }
    }

    /// Waits for the only span that fits.
    async fn span(&mut self, what: &str, fits: impl Fn(&Received) -> bool) -> Received {
        let found = self.collector.wait_for(what, 1, fits).await;
        assert_eq!(found.len(), 1, "{what}: {found:#?}");
        found[0].clone()
    }

    /// Waits for the span of an attempt of the job.
    async fn attempt(&mut self, job: &str, number: i32) -> Received {
        let number = number.to_string();
        self.span(&format!("attempt {number} of {job}"), |one| {
            one.name.starts_with("process ")
                && one.attribute("sexton.job") == job
                && one.attribute("sexton.attempt") == number
        })
        .await
    }

    /// Waits for the span with this place.
    async fn at(&mut self, what: &str, trace: &str, span: &str) -> Received {
        self.span(what, |one| one.trace == trace && one.span == span).await
    }
}

/// The id of an execution without its dashes, as a trace has it.
fn simple(id: &str) -> String {
    id.replace('-', "")
}
