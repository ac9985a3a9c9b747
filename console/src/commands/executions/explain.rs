//! `sexton executions explain`: what an execution waits for, or what became of it.

use sexton_operations::ledger::execution::explain_execution;

use super::Reference;
use crate::commands::timeline::timeline_table;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Facts, Tone, ago, precise};

pub(super) async fn run(reference: &Reference, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let explained = explain_execution(&store, reference.id(), now).await?;
    if session.out.is_json() {
        return session.out.document(&explained);
    }
    let execution = &explained.execution;
    let mut facts = Facts::default();
    facts.add("execution", execution.id.to_string());
    facts.add("job", &explained.job_name);
    facts.cell("state", Cell::state(&execution.state));
    let is_held_up = explained.flow.as_ref().is_some_and(|place| place.member.parked.is_some());
    let tone = if is_held_up { Tone::Bad } else { Tone::Plain };
    facts.cell("why", Cell::toned(&explained.why, tone));
    facts.add("key", &explained.execution_key);
    facts.add_optional("flow", explained.flow.as_ref().map(|place| place.flow_id.to_string()));
    let next = execution.next_attempt_at;
    facts
        .add_optional("next attempt", next.map(|at| format!("{} ({})", precise(at), ago(at, now))));
    session.out.facts(facts)?;
    session.out.print("")?;
    session.out.table(timeline_table(&explained.timeline))
}
