//! `sexton jobs policy`: what holds for a job, in words, and what is missing.

use sexton_operations::jobs::policy;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::lines;

pub(super) async fn run(name: &str, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let sheet = policy::read(&store, name).await?;
    if session.out.is_json() {
        return session.out.document(&sheet);
    }
    for (number, section) in sheet.sections.iter().enumerate() {
        if number > 0 {
            session.out.print("")?;
        }
        session.out.print(section.title)?;
        for statement in &section.statements {
            session.out.print(lines(&format!("  {statement}")))?;
        }
        for gap in &section.missing {
            session.out.print(lines(&format!("  MISSING  {gap}")))?;
        }
    }
    Ok(())
}
