//! `sexton jobs delete`: say what it has, ask, delete.

use serde_json::json;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, DeleteError, Deleted, UnderWay};
use sexton_store::operator::AuditContext;

use super::{Delete, missing};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;

pub(super) async fn run(arguments: &Delete, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let by = AuditContext { actor: &session.actor, reason: Some(&arguments.reason) };
    let request = jobs::Delete { name: &arguments.name, cancel: arguments.cancel, dry_run: true };
    let preview = call(&store, request, by).await?;
    if arguments.dry_run {
        return render(&preview, arguments, session);
    }
    confirm(&question(&preview.under_way, arguments), arguments.yes)?;
    let done = call(&store, jobs::Delete { dry_run: false, ..request }, by).await?;
    fault::point("console.deleted");
    render(&done, arguments, session)
}

async fn call(
    store: &Store,
    request: jobs::Delete<'_>,
    by: AuditContext<'_>,
) -> Result<Deleted, Failure> {
    match jobs::delete(store, request, by, None).await {
        Ok(deleted) => Ok(deleted),
        Err(DeleteError::Missing(name)) => Err(missing(store, &name).await),
        Err(DeleteError::Store(error)) => Err(error.into()),
        Err(error @ DeleteError::UnderWay { .. }) => Err(Failure::NothingDone(format!(
            "{error}; wait for them (`sexton jobs pause` lets no others begin), or add --cancel"
        ))),
        Err(error @ DeleteError::Reserved(_)) => Err(Failure::Usage(error.to_string())),
        Err(error @ DeleteError::Locked(_)) => Err(Failure::Failed(error.to_string())),
    }
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
        "{0} is deleted, and its name is free. What it ran stays: `sexton jobs explain {0} --from …`, \
         `sexton executions list --job {0}`.",
        arguments.name
    ))
}
