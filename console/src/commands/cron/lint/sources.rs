//! The jobs of files and of the database, with their places.

use std::path::Path;

use sexton_model::alerts_file::MAX_FILE_BYTES;
use sexton_model::job::{JobSpec, Schedule};
use sexton_operations::alerts;
use sexton_operations::jobs::lint::{Linter, load_timed_jobs};
use sexton_service::clock;

use super::{Policies, Sources};
use crate::failure::Failure;
use crate::import::{self, crontab};
use crate::input_files::{read_text, read_text_up_to};
use crate::session::Session;

/// Looks at the jobs of the files or of the database. What cannot be read in a file is a finding.
///
/// # Errors
///
/// [`Failure::Failed`] for a file that cannot be read at all, and those of the database.
pub(super) async fn examine(
    arguments: &Sources,
    policies: &Policies,
    session: &Session,
) -> Result<Linter, Failure> {
    let needs_store = arguments.database || (policies.policy && policies.alerts.is_none());
    let store = if needs_store { Some(session.store().await?) } else { None };
    let now = match (arguments.from, &store) {
        (Some(from), _) => from,
        (None, Some(store)) if arguments.database => session.now(store).await?,
        (None, _) => clock::now(),
    };
    let mut linter = Linter::new(now);
    if policies.policy {
        if let Some(path) = &policies.alerts {
            read_alerts(&mut linter, path)?;
        } else if let Some(store) = &store {
            linter.judge_policies(alerts::read(store).await?.routes);
        }
    }
    if let Some(store) = store.filter(|_| arguments.database) {
        let jobs = load_timed_jobs(&store).await?;
        if !jobs.complete {
            eprintln!("sexton: only {} jobs were looked at", jobs.count());
        }
        linter.add_timed_jobs(jobs);
        return Ok(linter);
    }
    for path in &arguments.files {
        let name = path.display().to_string();
        let text = read_text(path)
            .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
        if path.extension().is_some_and(|extension| extension == "toml") {
            linter.add_jobs_file(&name, &text);
        } else {
            lint_crontab(&mut linter, path, &text, arguments)?;
        }
    }
    Ok(linter)
}

/// Reads the routes of an alerts file.
fn read_alerts(linter: &mut Linter, path: &Path) -> Result<(), Failure> {
    let name = path.display().to_string();
    // A byte more than a file may have, so that the parser refuses it.
    let text = read_text_up_to(path, MAX_FILE_BYTES as u64 + 1)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    linter.judge_policies_by_file(&name, &text);
    Ok(())
}

fn lint_crontab(
    linter: &mut Linter,
    path: &Path,
    text: &str,
    arguments: &Sources,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let options = crontab::Options { system: arguments.system, zone: arguments.tz, service: None };
    let mut import = crontab::Import::new(&options);
    import
        .add(&name, text)
        .map_err(|refused: import::ImportError| Failure::Failed(format!("{name}: {refused}")))?;
    let read = import.unchecked();
    for entry in read.entries {
        let schedule = Schedule::Cron { expression: entry.schedule };
        let job = JobSpec { timezone: entry.zone, ..JobSpec::new(entry.name, "t", schedule) };
        linter.add_job(job, (Some(name.clone()), Some(entry.line)), None);
    }
    for left in read.left_out.into_iter().filter(|left| left.entry) {
        linter.add_unreadable(&name, left.line, None, left.to_string());
    }
    Ok(())
}
