//! `sexton jobs import`: a jobs file of what another scheduler is told. Reads a file, prints another;
//! nothing is applied, and neither database nor broker is asked.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::zone::Zone;
use sexton_service::clock;

use super::text_and_lines::text;
use crate::commands::cron::parse_zone;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::import::{Imported, LeftOut, Refused, crontab, jobs_file, kubernetes, tasks_file};
use crate::session::Session;
use crate::show::lines;

/// Of what.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Of a crontab: of a user, or with --system of the system
    Crontab(Crontab),
    /// Of the CronJobs in a manifest of Kubernetes (YAML)
    K8s(K8s),
}

/// A crontab.
#[derive(Debug, Args)]
pub struct Crontab {
    /// The crontab, at most 1 MiB; `-` is standard input, as in `crontab -l | sexton jobs import crontab -`
    file: PathBuf,
    /// It has a column for the user, as /etc/crontab and the files of /etc/cron.d
    #[arg(long)]
    system: bool,
    /// The zone of the crontab's host, for entries above any CRON_TZ
    #[arg(long, visible_alias = "zone", default_value = "UTC", value_parser = parse_zone)]
    tz: Zone,
    /// The first part of the jobs' names
    #[arg(long, default_value = "cron", value_parser = parse_service)]
    service: String,
}

/// A manifest.
#[derive(Debug, Args)]
pub struct K8s {
    /// The manifest, at most 1 MiB; `-` is standard input
    file: PathBuf,
    /// The first part of the jobs' names; default: the namespace, or k8s
    #[arg(long, value_parser = parse_service)]
    service: Option<String>,
}

pub(super) fn run(command: &ImportCommand, session: &Session) -> Result<(), Failure> {
    let now = clock::now();
    match command {
        ImportCommand::Crontab(Crontab { file, system, tz, service }) => {
            let options = crontab::Options { system: *system, zone: *tz, service: service.clone() };
            tell(file, "crontab", crontab::import(&read(file)?, &options, now), session)
        }
        ImportCommand::K8s(K8s { file, service }) => {
            let imported = kubernetes::import(&read(file)?, service.as_deref(), now);
            tell(file, "k8s", imported, session)
        }
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    text(file).map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))
}

fn tell(
    file: &Path,
    form: &str,
    imported: Result<Imported, Refused>,
    session: &Session,
) -> Result<(), Failure> {
    let name = file.display().to_string();
    let imported = imported
        .map_err(|refused| Failure::Failed(format!("{name}: {refused}; nothing was imported")))?;
    let made = format!("Made by `sexton jobs import {form} {name}`.");
    let text = jobs_file(&imported, &made);
    if session.out.is_json() {
        let left = imported.left_out.iter().map(|LeftOut { line, entry, what, why }| {
            json!({"line": line, "entry": entry, "what": what, "why": why})
        });
        session.out.document(&json!({
            "file": name,
            "jobs": imported.entries.iter().filter(|entry| !entry.suspended).count(),
            "jobs_file": text,
            "tasks_file": tasks_file(&imported),
            "left_out": left.collect::<Vec<_>>(),
            "more_left_out": imported.more_left_out,
        }))?;
    } else {
        session.out.say(text.trim_end())?;
    }
    let told = imported.told();
    if told.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = told.iter().map(|left| format!("{name}: {left}")).collect();
    let count = imported.left_out.len() + imported.more_left_out;
    let message = format!("{}\n{count} left out of the jobs file", lines(&list.join("\n")));
    Err(Failure::Told { exit: Exit::Partly, message })
}

fn parse_service(text: &str) -> Result<String, String> {
    sexton_model::job::check_name(text).map_err(|error| format!("it {error}")).and_then(|()| {
        match text.len() {
            0..=60 => Ok(text.to_owned()),
            _ => Err("it has more than 60 bytes".to_owned()),
        }
    })
}
