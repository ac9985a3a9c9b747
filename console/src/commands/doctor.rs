//! `sexton doctor`: the platform's problems, each with its evidence and a remedy.

use clap::Args;
use serde_json::json;
use sexton_model::lint::Severity;
use sexton_operations::doctor::fix::{Repair, examine_and_fix};
use sexton_operations::doctor::gather::gather;
use sexton_operations::doctor::{Finding, diagnose, worst};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Repair what is safe to repair, then check again
    #[arg(long)]
    fix: bool,
}

/// Checks the platform, repairs with `--fix`, and prints the findings. The exit status is that of the worst remaining
/// finding; notes do not count.
///
/// # Errors
///
/// [`Failure`]; servers that do not answer are findings.
pub async fn run(arguments: &Doctor, session: &Session) -> Result<(), Failure> {
    let settings = session.settings()?;
    let connector = session.connector(&settings);
    let (findings, fixed) = if arguments.fix {
        examine_and_fix(&connector, Some("sexton doctor --fix")).await?
    } else {
        (diagnose(&gather(&connector).await?), Vec::new())
    };
    render(session, &findings, &fixed)?;
    let message = match findings.len() {
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    match worst(&findings) {
        None | Some(Severity::Note) => Ok(()),
        Some(Severity::Warning) => Err(Failure::Reported { exit: Exit::Warnings, message }),
        Some(Severity::Error) => Err(Failure::Reported { exit: Exit::Findings, message }),
    }
}

fn render(session: &Session, findings: &[Finding], fixed: &[Repair]) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({
            "worst": worst(findings),
            "findings": findings,
            "fixed": fixed,
        }));
    }
    for Repair { code, done, what } in fixed {
        let word = if *done { "fixed" } else { "not fixed" };
        session.out.print(format!("{word} {}: {}", code.as_str(), line(what, 400)))?;
    }
    if findings.is_empty() {
        return session.out.print("Nothing was found.");
    }
    for one in findings {
        let Finding { code, severity, what, evidence, remedy, fix } = one;
        let (severity, code) = (severity.as_str(), code.as_str());
        session.out.print(format!("{severity} {code}: {what}"))?;
        // The evidence was made safe when it was written.
        session.out.print(format!("    {evidence}"))?;
        let by = one.code.entry().fix.filter(|_| *fix);
        let by = by.map_or_else(String::new, |does| format!(" `--fix` {does}."));
        session.out.print(format!("    {remedy}{by}"))?;
    }
    Ok(())
}
