//! The command line: one run, one build without a fence, or all such builds.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use tokio::process::Command as Process;
use tokio::signal::unix::{SignalKind, signal};

use super::arena::Timeouts;
use super::fault::Fault;
use super::fence_off;
use super::fences::{self, CONTROL, Fence};
use super::plan::Amount;
use super::progress::{Progress, broken, strikes};
use super::report::Report;
use super::run::{Ended, Ending, Options, ServerSets, run};
use super::test_servers::TestServers;
use super::verdict::Verdict;
use crate::{commit, reliability};

/// Strikes faults under load, and checks what became of the executions inside.
///
/// With FENCE_OFF in the environment, the programs are first built without that fence of the
/// protocol; the run must then find a violation that the fence prevents, and ends with status 3.
/// FENCE_OFF=none removes none: such a run must find nothing.
#[derive(Debug, Parser)]
#[command(name = "torture")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Command {
    /// Build without each fence in turn; succeeds if every such build violates what the fence
    /// protects, and one with all fences violates nothing
    Fences,
}

#[derive(Clone, Debug, Args)]
struct RunArguments {
    /// Decides the order of the faults; a run with the same seed continues where the last one stopped
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The least number of faults
    #[arg(long, default_value_t = 1_000)]
    faults: usize,
    /// The least number of faults of each kind
    #[arg(long, default_value_t = 10)]
    each: usize,
    /// The limit of the whole run, such as 45m
    #[arg(long, default_value = "60m", value_parser = duration)]
    limit: Duration,
    /// The limit from the strike to the end of a struck execution, such as 90s; a broker that is
    /// killed between a delay queue and the main queue tries again after three minutes
    #[arg(long, default_value = "240s", value_parser = duration)]
    patience: Duration,
    /// The number of platforms that share servers which are left alone
    #[arg(long, default_value_t = 8)]
    calm: usize,
    /// The number of platforms with private servers, which are struck
    #[arg(long, default_value_t = 4)]
    stormy: usize,
    /// Only kinds whose name contains this
    #[arg(long)]
    only: Vec<String>,
    /// Kinds that come first, by their full names
    #[arg(long)]
    first: Vec<String>,
    /// The folder of the progress file; by default below the target folder
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Write the summary into this page
    #[arg(long, requires = "record")]
    report: Option<PathBuf>,
    /// Write the faults of each kind into this page
    #[arg(long, requires = "report")]
    record: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// Nothing could be struck at all: a server, an arena or a build is missing.
pub async fn main(arguments: Arguments) -> Result<ExitCode> {
    let fence = std::env::var("FENCE_OFF").ok().filter(|name| !name.is_empty());
    match (arguments.command, fence) {
        (Some(Command::Fences), _) => all_fences().await,
        (None, Some(name)) => {
            let ended = without(Fence::named(&name)?).await?;
            println!("torture: without {name}: {}", ended.describe());
            let as_expected = ended.is_as_expected();
            Ok(ExitCode::from(match (&ended.broken, as_expected) {
                (Some(_), true) => Verdict::Broken(Vec::new()).status(),
                (None, true) => 0,
                (_, false) => 1,
            }))
        }
        (None, None) => one_run(&arguments.arguments).await,
    }
}

async fn one_run(arguments: &RunArguments) -> Result<ExitCode> {
    if arguments.report.is_some() && commit::changes().is_some() {
        bail!("the report must be of a commit: commit what is changed, or leave out --report");
    }
    let options = options(arguments)?;
    let ending = Ending::default();
    let servers = async {
        let calm = Arc::new(TestServers::private().await?);
        let mut stormy = Vec::new();
        for _ in 0..options.stormy {
            stormy.push(Arc::new(TestServers::private().await?));
        }
        anyhow::Ok(ServerSets { calm, stormy })
    };
    let once = end_requested()?;
    tokio::pin!(once);
    let sites = tokio::select! {
        sites = servers => sites?,
        () = &mut once => bail!("stopped before anything was struck"),
    };
    let ended = {
        let running = run(options, &sites, ending.clone());
        tokio::pin!(running);
        tokio::select! {
            ended = &mut running => ended,
            () = &mut once => {
                println!("torture: comes to rest and judges; asked once more, it drops this session");
                ending.rest.cancel();
                let twice = end_requested()?;
                tokio::select! {
                    ended = &mut running => ended,
                    () = twice => {
                        ending.stop.cancel();
                        running.await
                    }
                }
            }
        }
    };
    // Checked first: servers that do not stop in good order must not hide violations.
    let judged = ended.and_then(|ended| Ok((ended.verdict.status(), verdict(&ended, arguments)?)));
    let at_rest = sites.end().await;
    let (status, code) = judged?;
    match at_rest {
        Err(error) if status == 0 => Err(error),
        Err(error) => {
            println!("torture: {error:#}");
            Ok(code)
        }
        Ok(()) => Ok(code),
    }
}

fn options(arguments: &RunArguments) -> Result<Options> {
    let mut kinds = Fault::all();
    if arguments.stormy == 0 {
        kinds.retain(|kind| !kind.is_of_server());
    }
    if !arguments.only.is_empty() {
        kinds.retain(|kind| arguments.only.iter().any(|part| kind.to_string().contains(part)));
    }
    let first = arguments.first.iter().map(|name| {
        Fault::named(name).with_context(|| format!("there is no fault that is called {name}"))
    });
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => target()?.join("torture").join(arguments.seed.to_string()),
    };
    Ok(Options {
        seed: arguments.seed,
        amount: Amount { total: arguments.faults, each: arguments.each },
        first: first.collect::<Result<_>>()?,
        kinds,
        limit: arguments.limit,
        folder,
        calm: arguments.calm,
        stormy: arguments.stormy,
        timeouts: Timeouts {
            lease: Duration::from_secs(4),
            recovery: arguments.patience,
            strike: Duration::from_secs(45),
        },
    })
}

/// Success only if everything was struck without a violation; then the report is written.
fn verdict(ended: &Ended, arguments: &RunArguments) -> Result<ExitCode> {
    match &ended.verdict {
        Verdict::Broken(broken) => {
            for what in broken {
                println!("torture: BROKEN: {what}");
            }
            println!(
                "torture: promises were broken; when what was wrong is mended, delete the folder of \
                 this run and begin again"
            );
        }
        Verdict::Unfinished { left, short_of } => {
            for (fault, times) in short_of {
                println!("torture: {fault} was struck {times} times, not {}", arguments.each);
            }
            println!("torture: {left} faults are left; the same command goes on");
        }
        Verdict::Kept => {
            println!("torture: every fault was struck, and every promise was kept");
            if let (Some(page), Some(record)) = (&arguments.report, &arguments.record) {
                let report = Report::of(&ended.lines);
                let day = sexton_service::clock::now().format("%Y-%m-%d").to_string();
                reliability::write(page, "torture", &report.section(&day))?;
                reliability::write(record, "torture", &report.record())?;
            }
        }
    }
    Ok(ExitCode::from(ended.verdict.status()))
}

/// The end of a run without a fence.
struct FenceRun {
    fence: &'static Fence,
    faults: usize,
    /// The kind and the text of the first violation.
    broken: Option<(String, String)>,
}

impl FenceRun {
    /// Whether its first violation is an expected one; with all fences, whether there is none.
    fn is_as_expected(&self) -> bool {
        match &self.broken {
            Some((kind, _)) => self.fence.expected.contains(&kind.as_str()),
            None => self.fence.expected.is_empty() && self.faults > 0,
        }
    }

    fn describe(&self) -> String {
        let faults = self.faults;
        match &self.broken {
            Some((_, what)) if self.is_as_expected() => {
                format!("red after {faults} faults: {what}")
            }
            Some((_, what)) => format!("RED OTHERWISE after {faults} faults: {what}"),
            None if self.is_as_expected() => format!("green after {faults} faults"),
            None => format!("NOT red after {faults} faults"),
        }
    }
}

async fn all_fences() -> Result<ExitCode> {
    let mut lines = Vec::new();
    let mut all = true;
    for fence in [&CONTROL].into_iter().chain(fences::all()) {
        let ended = without(fence).await?;
        all &= ended.is_as_expected();
        lines.push(format!("{:20} {}", fence.name, ended.describe()));
    }
    println!("{}", lines.join("\n"));
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds without a fence and runs a bounded torture on the build, in a separate process.
async fn without(fence: &'static Fence) -> Result<FenceRun> {
    let target = target()?;
    println!("torture: builds without {}", fence.name);
    let programs = fence_off::build(fence, &target).await?;
    let folder = target.join("torture").join(format!("without-{}", fence.name));
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut inner = Process::new(std::env::current_exe()?);
    inner
        .env_remove("FENCE_OFF")
        .env("TEST_BIN_DIR", &programs)
        .args(["--faults", "400", "--each", "2", "--limit", "12m", "--patience", "60s"])
        .args(["--calm", "4", "--stormy", "0", "--folder"])
        .arg(&folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for name in fence.first {
        inner.args(["--first", name]);
    }
    let mut running = inner.spawn().context("run torture without a fence")?;
    let status = tokio::select! {
        status = running.wait() => status?,
        () = end_requested()? => {
            running.kill().await?;
            bail!("stopped");
        }
    };
    let (_, lines) = Progress::open(&folder)?;
    let first = broken(&lines).first().map(|(kind, what)| ((*kind).to_owned(), (*what).to_owned()));
    // Failed by its exit status, and with a violation.
    let red = Verdict::Broken(Vec::new()).status();
    let broken = first.filter(|_| status.code() == Some(i32::from(red)));
    Ok(FenceRun { fence, faults: strikes(&lines), broken })
}

/// The target folder that this program was built into, as `<profile>/torture`.
fn target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().nth(2);
    folder.map(Path::to_owned).context("this program is in no target folder of cargo's")
}

/// Waits for Ctrl-C or SIGTERM.
fn end_requested() -> Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    sexton_model::duration::parse(text).map_err(|error| error.to_string())
}
