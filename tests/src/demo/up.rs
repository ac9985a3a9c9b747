//! `make up` and `make down`: the platform, left running.
//!
//! A detached process, the holder, owns servers, programs, database and namespace as the demo does,
//! and ends them all when `down` sends it a signal. A holder that is killed takes all
//! of it along: shells that outlive it see to that. What was recorded is gone then, as it is after
//! `down`: this is for trying out, not for keeping.
//!
//! Where `state_folder` is `None`, the state is under the target folder.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sexton_servers::{Needed, Servers, provide};
use tokio::time::Instant;

use super::cluster::{Cluster, example};
use super::output;
use super::state::{State, StateFolder};
use super::stop_signal::StopSignal;

/// Installing the servers' packages on a bare machine takes the longest.
const UP_DEADLINE: Duration = Duration::from_mins(10);

/// Running tasks get their time to end.
const DOWN_DEADLINE: Duration = Duration::from_mins(2);

/// How long programs may take to end in good order.
const STOP_DEADLINE: Duration = Duration::from_secs(35);

/// Between two looks at the state folder.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the platform, unless it runs, and prints how to talk to it.
///
/// # Errors
///
/// It did not get up; nothing is left running then.
pub async fn up(state_folder: Option<PathBuf>) -> Result<ExitCode> {
    let folder = StateFolder::find(state_folder)?;
    let Some(lock) = folder.lock()? else {
        let state = wait_for(&folder, None).await?;
        let holder = state.holder_pid;
        output::write(&format!("Sexton is already running (holder: process {holder})."));
        output::write(&directions(&state));
        return Ok(ExitCode::SUCCESS);
    };
    let log = folder.begin()?;
    output::write("Starting PostgreSQL, RabbitMQ, two schedulers, two workers and the console …");
    let mut stop_signal = StopSignal::listen()?;
    let mut holder = Command::new(std::env::current_exe()?)
        .args(["keep", "--state-folder"])
        .arg(folder.path())
        .current_dir("/")
        // The process with the locked file open holds the lock: from now on the holder alone.
        .stdin(Stdio::from(lock))
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("failed to start the holder")?;
    tokio::select! {
        state = wait_for(&folder, Some(&mut holder)) => {
            output::write(&directions(&state?));
            Ok(ExitCode::SUCCESS)
        }
        code = stop_signal.exit_code() => {
            stop(&folder, holder.id()).await?;
            Ok(code)
        }
    }
}

/// Waits until the state is there. Gives up when the holder has ended.
async fn wait_for(folder: &StateFolder, mut holder: Option<&mut Child>) -> Result<State> {
    let deadline = Instant::now() + UP_DEADLINE;
    while Instant::now() < deadline {
        if let Some(state) = folder.read() {
            return Ok(state);
        }
        if let Some(holder) = &mut holder
            && let Some(status) = holder.try_wait()?
        {
            bail!("the platform did not get up ({status}): {}", folder.log());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bail!("the platform is not up after {UP_DEADLINE:?}; `make down` ends what there is of it")
}

/// Ends what `up` has started. Fine if nothing runs.
///
/// # Errors
///
/// The holder does not end.
pub async fn down(state_folder: Option<PathBuf>) -> Result<ExitCode> {
    let folder = StateFolder::find(state_folder)?;
    if folder.lock()?.is_some() {
        folder.clear()?;
        output::write("Nothing is running.");
        return Ok(ExitCode::SUCCESS);
    }
    let state = wait_for(&folder, None).await?;
    output::write("Stopping …");
    stop(&folder, state.holder_pid).await?;
    output::write("Stopped: programs, servers and what they recorded are gone.");
    Ok(ExitCode::SUCCESS)
}

/// Ends the holder and waits until its lock is free.
async fn stop(folder: &StateFolder, holder_pid: u32) -> Result<()> {
    // The lock is held, so the number is the holder's still.
    let pid = Pid::from_raw(holder_pid as i32).context("the state names no process")?;
    kill_process(pid, Signal::TERM).ok();
    let deadline = Instant::now() + DOWN_DEADLINE;
    loop {
        if let Some(_lock) = folder.lock()? {
            return folder.clear();
        }
        ensure!(Instant::now() < deadline, "the holder (process {holder_pid}) does not end");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The holder: keeps the platform until `down` ends it. Its standard input is the locked file.
///
/// # Errors
///
/// Something could not be started; nothing is left running then.
pub async fn keep(state_folder: Option<PathBuf>) -> Result<ExitCode> {
    // Out of the terminal's session: neither Ctrl-C nor its end reaches the holder.
    rustix::process::setsid().context("leave the terminal's session")?;
    let mut stop_signal = StopSignal::listen()?;
    let folder = StateFolder::find(state_folder)?;
    let servers = tokio::select! {
        servers = provide(Needed::Both) => servers?,
        _ = stop_signal.exit_code() => return Ok(ExitCode::SUCCESS),
    };
    let mut cluster = None;
    let outcome = tokio::select! {
        outcome = raise(&servers, &mut cluster, &folder) => outcome,
        _ = stop_signal.exit_code() => Ok(()),
    };
    if outcome.is_ok() && cluster.is_some() {
        stop_signal.exit_code().await;
    }
    if let Some(cluster) = cluster {
        cluster.stop(STOP_DEADLINE).await;
    }
    servers.shutdown().await?;
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Starts everything and says so in the state folder.
async fn raise(
    servers: &Servers,
    cluster: &mut Option<Cluster>,
    folder: &StateFolder,
) -> Result<()> {
    let cluster = cluster.insert(Cluster::build(servers, "up").await?);
    cluster.start(Some(&example("tasks.toml"))).await?;
    let platform = &cluster.platform;
    folder.write(&State {
        holder_pid: std::process::id(),
        database_url: platform.database_url().to_owned(),
        amqp_url: platform.amqp_url().to_owned(),
        namespace: platform.namespace().to_string(),
        servers: servers.description(),
        console: cluster.console().context("the console does not say where it is")?,
        programs: cluster
            .programs()
            .map(|p| (p.name().to_owned(), p.pid(), p.log_file()))
            .collect(),
    })
}

/// How to talk to the platform, to be pasted into a shell.
fn directions(state: &State) -> String {
    let mut text = format!("\nRunning: {}.\n", state.servers);
    for (name, pid, log) in &state.programs {
        let _ = writeln!(text, "  {name:<12} process {pid:<8} log: {}", log.display());
    }
    let folder =
        std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let folder = folder.unwrap_or_default();
    let jobs = example("jobs.toml");
    let jobs = jobs.canonicalize().unwrap_or(jobs);
    let _ = write!(
        text,
        "
To look at it, in a browser on this machine:

  {}

To talk to it, in this shell:

  export DATABASE_URL='{}'
  export AMQP_URL='{}'
  export SEXTON_NAMESPACE='{}'
  export PATH=\"{}:$PATH\"

Then, for instance:

  sexton status
  sexton jobs apply -f {}
  sexton jobs list
  sexton executions list
  sexton failed list

`make down` stops all of it and deletes what it has recorded.",
        state.console,
        state.database_url,
        state.amqp_url,
        state.namespace,
        folder.display(),
        jobs.display(),
    );
    text
}
