//! `sexton audit head` and `verify`: the chain of the audit.

use clap::Args;
use sexton_operations::audit::chain::{self, AuditVerification, MAX_COUNTED};
use sexton_store::retention::MIN_AUDIT_DAYS;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Which earlier head must still be in the chain.
#[derive(Debug, Args)]
pub struct Verify {
    /// Also check that this earlier head, as `sexton audit head` printed it, is still in the chain
    #[arg(long, value_name = "POSITION:HASH")]
    head: Option<String>,
}

/// Prints the head of the chain.
pub(super) async fn head(session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let head = chain::head(&store).await?;
    if session.out.is_json() {
        return session.out.document(&head);
    }
    session.out.print(&head.head)?;
    if head.unsealed > 0 {
        session.out.note(&format!("{} not sealed yet", count(head.unsealed)));
    }
    Ok(())
}

/// Verifies the chain; findings are the exit status 8.
pub(super) async fn verify(arguments: &Verify, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let verification = chain::verify(&store, arguments.head.as_deref()).await?;
    if session.out.is_json() {
        session.out.document(&verification)?;
    } else {
        render(&verification, session)?;
    }
    match &verification.problem {
        None => Ok(()),
        Some(problem) => Err(Failure::Reported {
            exit: Exit::Findings,
            message: format!("the audit is not intact: {}", problem.message),
        }),
    }
}

fn render(verification: &AuditVerification, session: &Session) -> Result<(), Failure> {
    let AuditVerification { is_intact, verified, anchor, since, head, unsealed, .. } = verification;
    let noun = if *verified == 1 { "action is" } else { "actions are" };
    let place = if *is_intact { "" } else { " before the first problem" };
    let since = since
        .as_deref()
        .map_or_else(String::new, |at| format!(", recorded from {} on", line(at, 40)));
    session.out.print(format!("{verified} {noun} intact{place}{since}"))?;
    if anchor.position > 0 {
        let text = format!(
            "actions up to position {} were removed, and the hash there is taken for granted. Retention keeps {MIN_AUDIT_DAYS} days at \
             least: if a head that you noted there is younger, somebody else removed them",
            anchor.position
        );
        session.out.print(text)?;
    }
    session.out.print(format!("head {head}"))?;
    if *unsealed > 0 {
        session.out.print(format!("{} not sealed yet", count(*unsealed)))?;
    }
    Ok(())
}

/// As many are counted as the head's document says.
fn count(unsealed: i64) -> String {
    if unsealed >= MAX_COUNTED { "10,000 or more".to_owned() } else { unsealed.to_string() }
}
