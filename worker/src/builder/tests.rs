use super::*;
use crate::handler::{Ctx, HandlerError};

async fn nothing(_: Ctx, _: Value) -> Result<(), HandlerError> {
    Ok(())
}

fn named(names: &[&str]) -> WorkerBuilder {
    let urls = Worker::builder()
        .setting("DATABASE_URL", "postgres://u@h/d")
        .setting("AMQP_URL", "amqp://h");
    names.iter().fold(urls, |builder, name| builder.handler(*name, nothing))
}

#[test]
fn settings_in_code_take_the_place_of_the_environment_s() {
    let builder = named(&["a"]).pool("billing", 3).pool("mail", 2);
    let settings = builder.setting("SEXTON_INSTANCE", "here").checked().unwrap();
    assert_eq!(settings.pools, ["billing", "mail"]);
    assert_eq!(settings.pool_slots, [3, 2]);
    assert_eq!(settings.service.instance, "here");
}

#[test]
fn all_problems_are_reported_at_once() {
    let builder = named(&["a", "b c", "a", ""]).pool("Billing", 3).setting("LEASE_MS", "soon");
    let builder = builder.setting("LEASE", "1").setting("WORKER_POOL", "a");
    let problems = builder.checked().unwrap_err();
    for part in [
        "3 problems in the environment",
        "WORKER_POOLS = \"Billing:3\"",
        "LEASE_MS = \"soon\"",
        "WORKER_POOL: no such setting; did you mean WORKER_POOLS?",
        "4 problems in the program",
        "the setting `LEASE`: no such setting",
    ] {
        assert!(problems.contains(part), "no {part} in {problems}");
    }
    assert!(
        problems.contains("`b c`: a task type's name") && problems.contains("`a` is given twice")
    );
}

#[test]
fn a_schema_that_is_none_is_refused_with_its_place() {
    let good = serde_json::json!({"type": "object"});
    assert!(named(&["a"]).params_schema("a", good.clone()).checked().is_ok());
    let builder = named(&["a", "b", "c"])
        .params_schema("a", r#"{"properties": {"x": {"minimum": "1"}}}"#)
        .params_schema("b", "{")
        .params_schema("c", good.clone())
        .params_schema("c", good.clone())
        .params_schema("d", good);
    let problems = builder.checked().unwrap_err();
    for part in [
        "4 problems in the program",
        "the schema of `a` is no JSON Schema: at \"/properties/x/minimum\"",
        "the schema of `b` is no JSON: EOF",
        "the schema of `c` is given twice",
        "the schema of `d` is of no handler of this program",
    ] {
        assert!(problems.contains(part), "no {part} in {problems}");
    }
}

/// A typed job with a task of another name and a schema.
#[derive(serde::Serialize, serde::Deserialize)]
struct Charge {
    cents: u32,
}

impl Job for Charge {
    const NAME: &'static str = "billing.charge";
    const TASK: &'static str = "charge";
    const PARAMS_SCHEMA: Option<&'static str> = Some(r#"{"required": ["cents"]}"#);
}

/// One that has only a name.
#[derive(serde::Serialize, serde::Deserialize)]
struct Remind {}

impl Job for Remind {
    const NAME: &'static str = "mail.remind";
}

#[tokio::test]
async fn a_typed_job_has_a_handler_of_its_task_with_its_schema() {
    let builder = named(&[])
        .job(async |_: Ctx, charge: Charge| Ok::<_, HandlerError>(charge.cents))
        .job(async |_: Ctx, _: Remind| Ok::<_, HandlerError>(()));
    let clock = Arc::new(sexton_service::clock::now);
    let runtime = tokio::runtime::Handle::current();
    let host = Arc::new(HandlerHost { runtime, database: None, clock });
    let offered: Vec<_> =
        builder.handlers.into_tasks(&host).map(|(name, task)| (name, task.params_schema)).collect();
    let schema = serde_json::json!({"required": ["cents"]});
    assert_eq!(offered, [("charge".to_owned(), Some(schema)), ("mail.remind".to_owned(), None)]);
}

#[test]
fn a_typed_job_is_checked_like_a_handler() {
    struct Anything;
    impl Handler<Charge> for Anything {
        type Output = ();
        type Error = HandlerError;

        async fn call(&self, _: Ctx, _: Charge) -> Result<(), HandlerError> {
            Ok(())
        }
    }
    let twice = named(&["charge"]).job(Anything).params_schema("charge", "{}");
    let problems = twice.checked().unwrap_err();
    for part in ["the handler `charge` is given twice", "the schema of `charge` is given twice"] {
        assert!(problems.contains(part), "no {part} in {problems}");
    }
}

#[tokio::test]
async fn a_worker_within_another_runtime_is_refused_in_words() {
    let problems = named(&["a"]).checked().unwrap_err();
    assert!(problems.contains("#[tokio::main]"), "{problems}");
}
