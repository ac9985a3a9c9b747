//! `sexton jobs import`: reads the entries of another scheduler, prints a jobs file of them and writes the
//! catalogue that it needs. It applies nothing, and needs neither database nor broker.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::jobs_file::MAX_FILE_BYTES;
use sexton_model::zone::Zone;
use sexton_service::clock;

use crate::commands::cron::parse_zone;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::import::{
    ImportError, ImportOutcome, LeftOut, MAX_TASKS_BYTES, crontab, jobs_file, kubernetes,
    tasks_file,
};
use crate::input_files::read_text;
use crate::session::Session;
use crate::show::lines;

/// Convert the entries of another scheduler into a jobs file.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Convert crontabs
    ///
    /// Each job runs as cron runs its line: without timeout, retry or catch-up, and beside an earlier run. Comments in
    /// the file suggest better policies. `sexton jobs import crontab /etc/cron.d/* --tasks tasks.toml > jobs.toml`
    /// writes both files that a platform needs.
    Crontab(Crontab),
    /// Convert the CronJobs in Kubernetes manifests (YAML)
    ///
    /// Each job runs as its CronJob does, with the defaults of Kubernetes. A suspended CronJob becomes a paused job.
    K8s(K8s),
}

/// Crontabs.
#[derive(Debug, Args)]
pub struct Crontab {
    /// Crontabs, at most 1 MiB each; `-` is standard input, as in
    /// `crontab -l | sexton jobs import crontab -`
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The crontabs have a user column; assumed for /etc/crontab and files in cron.d
    #[arg(long)]
    system: bool,
    /// Time zone of the crontab's host, for entries without CRON_TZ
    #[arg(long, visible_alias = "zone", default_value = "UTC", value_parser = parse_zone)]
    tz: Zone,
    /// First part of the jobs' names; default: cron, or the file's name for crontabs with a user column (certbot,
    /// php.sessionclean)
    #[arg(long, value_parser = parse_service)]
    service: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Manifests.
#[derive(Debug, Args)]
pub struct K8s {
    /// Manifests, at most 1 MiB each; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// First part of the jobs' names; default: the namespace, or k8s
    #[arg(long, value_parser = parse_service)]
    service: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Where the catalogue goes.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// New file for the workers' catalogue (WORKER_TASKS); by default the jobs file has it as comments
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// Overwrite an existing catalogue
    #[arg(long, requires = "tasks")]
    force: bool,
}

pub(super) fn run(command: &ImportCommand, session: &Session) -> Result<(), Failure> {
    let now = clock::now();
    match command {
        ImportCommand::Crontab(Crontab { files, system, tz, service, output }) => {
            let options = crontab::Options { system: *system, zone: *tz, service: service.clone() };
            let mut import = crontab::Import::new(&options);
            read(files, |name, text| import.add(name, text))?;
            render(files, "crontab", &import.finish(now), output, session)
        }
        ImportCommand::K8s(K8s { files, service, output }) => {
            let mut import = kubernetes::Import::new(service.as_deref());
            read(files, |name, text| import.add(name, text))?;
            render(files, "k8s", &import.finish(now), output, session)
        }
    }
}

fn read(
    files: &[PathBuf],
    mut add: impl FnMut(&str, &str) -> Result<(), ImportError>,
) -> Result<(), Failure> {
    for file in files {
        let name = file.display().to_string();
        let text = read_text(file)
            .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
        add(&name, &text).map_err(|refused| {
            Failure::Failed(format!("{name}: {refused}; nothing was imported"))
        })?;
    }
    Ok(())
}

fn render(
    files: &[PathBuf],
    form: &str,
    outcome: &ImportOutcome,
    output: &Output,
    session: &Session,
) -> Result<(), Failure> {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let tasks = output.tasks.as_ref().map(|path| path.display().to_string());
    let with = tasks.as_ref().map_or_else(String::new, |tasks| format!(" --tasks {tasks}"));
    let of = match &names[..] {
        [first, _, _, ..] => format!("{first} …{with}` of {} files", names.len()),
        names => format!("{}{with}`", names.join(" ")),
    };
    let made = format!("Made by `sexton jobs import {form} {of}.");
    let jobs = jobs_file(outcome, &made, tasks.as_deref());
    let catalogue = tasks_file(outcome, &made);
    for (what, bytes, most) in
        [("jobs file", jobs.len(), MAX_FILE_BYTES), ("catalogue", catalogue.len(), MAX_TASKS_BYTES)]
    {
        if bytes > most {
            return Err(Failure::Failed(format!(
                "the {what} would have {bytes} bytes; {most} at most: import fewer entries at a time"
            )));
        }
    }
    if let Some(path) = &output.tasks {
        write_tasks(path, &catalogue, output.force)?;
    }
    if session.out.is_json() {
        let left = outcome.left_out.iter().map(|LeftOut { file, line, entry, what, why }| {
            json!({"file": file, "line": line, "entry": entry, "what": what, "why": why})
        });
        session.out.document(&json!({
            "files": names,
            "jobs": outcome.entries.len(),
            "paused": outcome.entries.iter().filter(|entry| entry.paused).count(),
            "jobs_file": jobs,
            "tasks_file": catalogue,
            "left_out": left.collect::<Vec<_>>(),
            "more_left_out": outcome.more_left_out,
        }))?;
    } else {
        session.out.print(jobs.trim_end())?;
    }
    let descriptions = outcome.describe_left_out();
    if descriptions.is_empty() {
        return Ok(());
    }
    let [name, ..] = &names[..] else { return Ok(()) };
    let list: Vec<String> = match names.len() {
        1 => descriptions.iter().map(|left| format!("{name}: {left}")).collect(),
        _ => descriptions,
    };
    let count = outcome.left_out.len() + outcome.more_left_out;
    let message = format!("{}\n{count} left out of the jobs file", lines(&list.join("\n")));
    Err(Failure::Reported { exit: Exit::Partly, message })
}

/// Writes the catalogue, before the jobs file is printed: where it cannot be written, nothing is.
fn write_tasks(path: &Path, catalogue: &str, force: bool) -> Result<(), Failure> {
    let mut open = OpenOptions::new();
    open.write(true);
    if force {
        open.create(true).truncate(true);
    } else {
        open.create_new(true);
    }
    let written = open
        .open(path)
        .and_then(|mut file| file.write_all(catalogue.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let instead = if exists { "; --force writes over it" } else { "" };
        let path = path.display();
        Failure::Failed(format!("{path} cannot be written: {error}{instead}; nothing was imported"))
    })
}

fn parse_service(text: &str) -> Result<String, String> {
    sexton_model::job::check_name(text).map_err(|error| format!("it {error}")).and_then(|()| {
        match text.len() {
            0..=40 => Ok(text.to_owned()),
            _ => Err("it has more than 40 bytes".to_owned()),
        }
    })
}
