//! `sexton jobs delete`: say what it has, ask, delete.

use serde_json::json;
use sexton_operations::jobs::delete::delete;
use sexton_store::jobs::{Delete as DeleteRequest, Deleted, UnderWay};

use super::Delete;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;

pub(super) async fn run(arguments: &Delete, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let (name, cancel) = (&arguments.name, arguments.cancel);
    let delete = async |dry_run| {
        let request = DeleteRequest { name, cancel, dry_run, revision: None };
        delete(&store, request, &session.actor, &arguments.reason).await
    };
    let preview = delete(true).await?;
    if arguments.dry_run {
        return render(&preview, arguments, session);
    }
    confirm(&question(&preview.under_way, arguments), arguments.yes)?;
    render(&delete(false).await?, arguments, session)
}

fn question(under_way: &UnderWay, arguments: &Delete) -> String {
    let UnderWay { waiting, running, failed } = under_way;
    let parts = [
        Some(format!("{} will never fire again", arguments.name)),
        (waiting + running > 0).then(|| {
            format!(
                "{waiting} waiting executions will be cancelled, {running} running ones stopped"
            )
        }),
        (*failed > 0).then(|| format!("{failed} failed ones stay parked")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn render(deleted: &Deleted, arguments: &Delete, session: &Session) -> Result<(), Failure> {
    let under_way = &deleted.under_way;
    if session.out.is_json() {
        return session.out.document(&json!({
            "id": deleted.id,
            "name": arguments.name,
            "dry_run": arguments.dry_run,
            "waiting": under_way.waiting,
            "running": under_way.running,
            "failed": under_way.failed,
            "passed": deleted.passed,
        }));
    }
    if arguments.dry_run {
        let what = question(under_way, arguments);
        return session.out.print(format!("Nothing was written; {what}."));
    }
    session.out.print(format!(
        "{0} is deleted, and its name is free. What it ran stays: `sexton jobs explain {0} --since …`, \
         `sexton executions list --job {0}`.",
        arguments.name
    ))
}
