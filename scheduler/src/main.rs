//! The scheduler: fires jobs.

use std::process::ExitCode;

use anyhow::Context as _;
use sexton_model::job::JobSpec;
use sexton_scheduler::program::run_scheduler;
use sexton_scheduler::start_up::environment;
use sexton_service::lifecycle::Signals;
use sexton_service::settings::{Program, SchedulerSettings, process_environment};
use sexton_service::{arguments, telemetry, traces};

fn main() -> ExitCode {
    if let Some(status) = arguments::handle(Program::Scheduler, std::env::args_os().skip(1)) {
        return status;
    }
    let (settings, jobs) = match environment::read(process_environment()) {
        Ok(read) => read,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(arguments::EXIT_USAGE);
        }
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime
        .context("failed to start the runtime")
        .and_then(|runtime| runtime.block_on(run(settings, jobs)));
    match outcome {
        Ok(status) => status,
        Err(error) => {
            eprintln!("scheduler: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(settings: SchedulerSettings, jobs: Vec<JobSpec>) -> anyhow::Result<ExitCode> {
    let signals = Signals::install().context("failed to listen for signals")?;
    telemetry::init(&settings.service.telemetry)?;
    traces::init(settings.service.traces.as_ref(), &settings.service.instance)?;
    let ended = run_scheduler(settings, jobs, signals).await;
    traces::shut_down().await;
    Ok(ended?.into())
}
