//! Completion of the command line: what each argument names, and the candidates for it from the database.
//!
//! A shell starts this program with [`VARIABLE`] set whenever a person asks for a completion (see
//! `sexton completions`). Commands and options come from the command line's definition. For the arguments of
//! [`kind_of`], the database has the candidates: at most a hundred, within half a second. If it does not answer, the
//! shell gets no candidates, and nothing is written to the terminal.

use std::ffi::OsStr;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use sexton_operations::completions::{CandidateKind, candidates};
use tokio::time::timeout;

use crate::arguments::Arguments;
use crate::commands::completions::VARIABLE;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// How long a person waits for candidates at most.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);
/// Characters of a candidate's description.
const MAX_ABOUT_CHARS: usize = 80;

/// Answers a shell that asks for candidates and ends the process; returns if none asks.
pub fn answer_shell() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The command line, with the arguments that the database completes.
pub fn command() -> Command {
    with_completers(Arguments::command(), &[])
}

fn with_completers(command: Command, path: &[&str]) -> Command {
    command
        .mut_args(|arg| match kind_of(path, &arg) {
            Some(kind) => arg.add(ArgValueCompleter::new(move |word: &OsStr| complete(kind, word))),
            None => arg,
        })
        .mut_subcommands(|inner| {
            let name = inner.get_name().to_owned();
            with_completers(inner, &[path, &[name.as_str()]].concat())
        })
}

/// What an argument of the command at `path` names; `None`: nothing that the database knows.
pub fn kind_of(path: &[&str], arg: &Arg) -> Option<CandidateKind> {
    match (path.first().copied().unwrap_or_default(), arg.get_id().as_str()) {
        (_, "job") | ("jobs", "name" | "names") => Some(CandidateKind::Job),
        ("executions", "id" | "ids") | ("audit", "execution") => Some(CandidateKind::Execution),
        ("failed", "id" | "ids") if path.last() == Some(&"restore") => {
            Some(CandidateKind::DiscardedExecution)
        }
        ("failed", "id" | "ids") => Some(CandidateKind::FailedExecution),
        (_, "fingerprint" | "group") => Some(CandidateKind::Group),
        ("bulks", "id") | (_, "bulk") => Some(CandidateKind::Bulk),
        ("unknown", "id" | "ids") => Some(CandidateKind::UnknownMessage),
        (_, "pool" | "to_pool") => Some(CandidateKind::Pool),
        (_, "worker") => Some(CandidateKind::Worker),
        ("locks", "row" | "name") => Some(CandidateKind::LockRow),
        _ => None,
    }
}

fn complete(kind: CandidateKind, word: &OsStr) -> Vec<CompletionCandidate> {
    // The parser offers a word that begins like an option to positional arguments as well.
    let prefix = word.to_str().filter(|prefix| !prefix.starts_with('-'));
    prefix.and_then(|prefix| look_up(kind, prefix)).unwrap_or_default()
}

/// The candidates; `None`: the database has not answered in time.
fn look_up(kind: CandidateKind, prefix: &str) -> Option<Vec<CompletionCandidate>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let lookup = async {
        let store = Session::new(false).store().await?;
        Ok::<_, Failure>(candidates(&store, kind, prefix).await?)
    };
    let found = runtime.block_on(async { timeout(LOOKUP_TIMEOUT, lookup).await });
    // A look-up of the server's name may still block a thread.
    runtime.shutdown_background();
    let found = found.ok()?.ok()?;
    Some(
        found
            .into_iter()
            .filter(|it| is_harmless(&it.value))
            .map(|it| {
                let about = it.about.map(|about| line(&about, MAX_ABOUT_CHARS).into());
                CompletionCandidate::new(it.value).help(about)
            })
            .collect(),
    )
}

/// Whether a shell may insert the text as it stands: a name or id as Sexton accepts it. A row that somebody wrote past
/// Sexton could hold a command.
fn is_harmless(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn arguments_by_kind(
        command: &Command,
        path: &[&str],
        found: &mut BTreeMap<CandidateKind, Vec<String>>,
    ) {
        for arg in command.get_arguments() {
            let kind = kind_of(path, arg);
            assert_eq!(kind.is_some(), arg.get::<ArgValueCompleter>().is_some(), "{path:?} {arg}");
            if let Some(kind) = kind {
                assert!(arg.get_action().takes_values(), "{path:?} {arg}");
                found.entry(kind).or_default().push(format!("{} {arg}", path.join(" ")));
            }
        }
        for inner in command.get_subcommands() {
            arguments_by_kind(inner, &[path, &[inner.get_name()]].concat(), found);
        }
    }

    #[test]
    fn a_text_that_a_shell_would_interpret_is_no_candidate() {
        for value in ["x;reboot", "$(reboot)", "`reboot`", "a b", "\u{1b}[31m", "a/b", "ä", "x\ny"]
        {
            assert!(!is_harmless(value), "{value:?}");
        }
        for value in ["shop.charge", "a-b_c", "01a20ddb-d340-7542-92b7-3cf6e02be5f1", "w1"] {
            assert!(is_harmless(value), "{value:?}");
        }
    }

    #[test]
    fn arguments_that_name_something_are_completed_from_the_database() {
        let mut found = BTreeMap::new();
        let mut command = command();
        // Arguments can be shown only then.
        command.build();
        arguments_by_kind(&command, &[], &mut found);
        let names = |kind| found[&kind].join("\n");
        for (kind, some) in [
            (CandidateKind::Job, "jobs trigger <NAME>"),
            (CandidateKind::Job, "executions list --job <NAME>"),
            (CandidateKind::Execution, "executions show <ID>"),
            (CandidateKind::FailedExecution, "failed requeue [ID]..."),
            (CandidateKind::DiscardedExecution, "failed restore [ID]..."),
            (CandidateKind::Group, "groups mute <FINGERPRINT>"),
            (CandidateKind::Group, "failed list --group <"),
            (CandidateKind::Bulk, "bulks show <ID>"),
            (CandidateKind::Bulk, "failed restore --bulk <ID>"),
            (CandidateKind::UnknownMessage, "unknown discard <ID>..."),
            (CandidateKind::Pool, "failed requeue --to-pool <POOL>"),
            (CandidateKind::Pool, "workers list --pool <POOL>"),
            (CandidateKind::Worker, "workers show <WORKER>"),
            (CandidateKind::Worker, "executions list --worker <WORKER>"),
            (CandidateKind::LockRow, "locks --row <NAME>"),
            (CandidateKind::LockRow, "locks break <NAME>"),
        ] {
            assert!(names(kind).contains(some), "{some} is not among\n{}", names(kind));
        }
    }
}
