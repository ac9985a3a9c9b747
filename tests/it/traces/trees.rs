//! What the spans of an execution are to one another.

use lapin::options::{BasicAckOptions, BasicGetOptions, BasicPublishOptions};
use lapin::{Connection, ConnectionProperties};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

use super::*;
use crate::process::{by_hand, count, until};

/// Fails once.
const FLAKY: &str =
    "[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"[ $SEXTON_ATTEMPT -gt 1 ]\"]\n";
/// A caller's place in its own trace.
const CALLER: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");

#[tokio::test]
async fn a_firing_its_message_and_its_attempt_are_one_trace_and_a_retry_links_to_it() {
    let job = "[[job]]\nname = \"a.fires\"\ntask = \"work\"\nevery = \"1s\"\nmax_runs = 1\n\
               params = { card = \"4711-secret\" }\n\
               retry = { delay = \"0s\", jitter = 0.0 }\n";
    let mut traced = Traced::new(FLAKY, job).await;
    let first = traced.attempt("a.fires", 1).await;
    let second = traced.attempt("a.fires", 2).await;
    let sent = traced.at("the publication", &first.trace, &first.parent).await;
    let fired = traced.at("the firing", &first.trace, &sent.parent).await;

    assert_eq!(fired.name, "fire a.fires");
    assert_eq!((fired.parent.as_str(), fired.service.as_str()), ("", "sexton-scheduler"));
    assert_eq!(fired.trace, simple(first.attribute("messaging.message.id")));
    let queue = traced.platform.namespace().to_string();
    assert_eq!(sent.name, format!("publish {queue}"));
    assert_eq!((sent.kind, sent.service.as_str()), (SpanKind::Producer, "sexton-scheduler"));
    assert_eq!(first.name, format!("process {queue}"));
    assert_eq!((first.kind, first.service.as_str()), (SpanKind::Consumer, "sexton-worker"));
    assert!(first.failed && first.attribute("sexton.outcome") == "error", "{first:#?}");
    assert!(first.links.is_empty() && sent.links.is_empty());
    for one in [&sent, &first, &second] {
        assert_eq!(one.attribute("messaging.system"), "rabbitmq");
        assert_eq!(one.attribute("messaging.destination.name"), queue);
        assert!(one.attribute("sexton.execution_key").starts_with("every-"), "{one:#?}");
    }

    // The retry has a trace that begins with its message, which says what came before.
    assert_ne!(second.trace, first.trace);
    assert!(!second.failed && second.attribute("sexton.outcome") == "succeeded");
    let again = traced.at("the second publication", &second.trace, &second.parent).await;
    assert_eq!((again.parent.as_str(), again.service.as_str()), ("", "sexton-worker"));
    assert_eq!(again.links, [sent.place()]);
    let all = format!("{:?}", traced.collector.spans());
    assert!(!all.contains("4711-secret"), "a param is in a span: {all}");
}

#[tokio::test]
async fn a_parked_message_ends_its_trace_and_a_requeue_begins_another_with_a_link() {
    let catalogue = "[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"[ -e done ]\"]\n";
    let job = by_hand("a.parked", "work", "retry = { max_retries = 0 }");
    let mut traced = Traced::new(catalogue, &job).await;
    let answer = traced.platform.sexton_json(&["jobs", "trigger", "a.parked"]).await;
    let id = answer["id"].as_str().unwrap().to_owned();
    let first = traced.attempt("a.parked", 1).await;
    let sent = traced.at("the publication", &first.trace, &first.parent).await;
    // Nothing fired: the trace begins with the message.
    assert_eq!((sent.parent.as_str(), sent.trace.as_str()), ("", simple(&id).as_str()));
    let parked = traced
        .span("the parked message", |one| {
            one.name.starts_with("publish ") && one.name.ends_with("_failed")
        })
        .await;
    assert_eq!((&parked.trace, &parked.parent), (&sent.trace, &sent.span));

    let failed = "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NOT NULL";
    until(&traced.platform, failed, 1).await;
    std::fs::write(traced.platform.folder().join("done"), "").unwrap();
    let done = traced.platform.sexton(&["failed", "requeue", &id, "--yes"]).await;
    assert!(done.status.success(), "{done}");
    let second = traced.attempt("a.parked", 2).await;
    let again = traced.at("the second publication", &second.trace, &second.parent).await;
    assert_ne!(second.trace, first.trace);
    assert_eq!((again.parent.as_str(), again.service.as_str()), ("", "sexton-scheduler"));
    assert_eq!(again.links, [sent.place()]);
}

#[tokio::test]
async fn the_members_of_a_jobs_flow_continue_the_trace_of_its_firing() {
    let catalogue = "[tasks.work]\ncommand = [\"/bin/true\"]\n";
    let jobs = [
        by_hand("a.load", "work", ""),
        "[[job]]\nname = \"a.extract\"\ntask = \"work\"\nevery = \"1s\"\nmax_runs = 1\n"
            .to_owned(),
        "[[flow]]\njob = \"a.extract\"\n\n[[flow.member]]\nname = \"load\"\njob = \"a.load\"\nafter = [\"start\"]\n"
            .to_owned(),
    ];
    let mut traced = Traced::new(catalogue, &jobs.concat()).await;
    let start = traced.attempt("a.extract", 1).await;
    let load = traced.attempt("a.load", 1).await;
    let fired = traced.span("the firing", |one| one.name == "fire a.extract").await;
    for member in [start, load] {
        let sent = traced.at("a publication", &member.trace, &member.parent).await;
        assert_eq!((&sent.trace, &sent.parent), (&fired.trace, &fired.span));
    }
}

#[tokio::test]
async fn an_enqueue_continues_the_callers_trace_and_its_task_does_as_well() {
    let catalogue =
        "[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"echo $TRACEPARENT $TRACESTATE > seen\"]\n";
    let mut traced = Traced::new(catalogue, &by_hand("a.called", "work", "")).await;
    let (trace, span) = CALLER;
    let mut transaction = traced.platform.store().pool().begin().await.unwrap();
    let setting = format!(
        "SET LOCAL sexton.traceparent = '00-{trace}-{span}-01'; SET LOCAL sexton.tracestate = 'shop=7'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(setting)).execute(&mut *transaction).await.unwrap();
    sqlx::query("SELECT sexton.enqueue('a.called')").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    let attempt = traced.attempt("a.called", 1).await;
    let sent = traced.at("the publication", trace, &attempt.parent).await;
    assert_eq!((sent.trace.as_str(), sent.parent.as_str()), CALLER);
    assert_eq!((attempt.trace.as_str(), attempt.state.as_str()), (trace, "shop=7"));
    let seen = std::fs::read_to_string(traced.platform.folder().join("seen")).unwrap();
    assert_eq!(seen.trim(), format!("00-{trace}-{}-01 shop=7", attempt.span));
}

#[tokio::test]
async fn a_caller_that_does_not_record_its_trace_is_followed_and_nonsense_is_left_out() {
    let catalogue = "[tasks.work]\ncommand = [\"/bin/true\"]\n";
    let mut traced = Traced::new(catalogue, &by_hand("a.called", "work", "")).await;
    let (trace, span) = CALLER;
    for (key, parent) in [("quiet", format!("00-{trace}-{span}-00")), ("bad", "'; --".to_owned())] {
        let mut transaction = traced.platform.store().pool().begin().await.unwrap();
        let setting = sqlx::query("SELECT set_config('sexton.traceparent', $1, true)");
        setting.bind(parent).execute(&mut *transaction).await.unwrap();
        let enqueue = sqlx::query("SELECT sexton.enqueue('a.called', key => $1)");
        enqueue.bind(key).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
        until(&traced.platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
        if key == "quiet" {
            let delete = "DELETE FROM sexton.executions";
            sqlx::raw_sql(delete).execute(traced.platform.store().pool()).await.unwrap();
        }
    }
    // The later one is sent after the earlier would have been.
    let attempt = traced.attempt("a.called", 1).await;
    assert_eq!(attempt.attribute("sexton.execution_key"), "bad");
    assert_ne!(attempt.trace, trace);
    assert_eq!(count(&traced.platform, "sexton.executions WHERE traceparent IS NULL").await, 1);
}

#[tokio::test]
async fn an_attempt_long_after_its_message_begins_a_trace_with_a_link() {
    let catalogue = "[tasks.work]\ncommand = [\"/bin/true\"]\n";
    let mut traced = Traced::new(catalogue, &by_hand("a.late", "work", "")).await;
    traced.worker.terminate();
    traced.worker.exit(crate::process::FINAL_TIMEOUT).await;
    traced.platform.sexton_json(&["jobs", "trigger", "a.late"]).await;
    let published = "sexton.executions WHERE ticket_published_at IS NOT NULL";
    until(&traced.platform, published, 1).await;
    let sent = traced.span("the publication", |one| one.name.starts_with("publish ")).await;
    // The message says that it was published long ago, as after an outage of all workers.
    age_message(&traced.platform).await;
    let url = traced.collector.url();
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_SERVICE_NAME", "night-shift")];
    let mut worker = traced.platform.start_worker("w2", &env).unwrap();
    worker.ready().await;
    let attempt = traced.attempt("a.late", 1).await;
    assert_eq!((attempt.parent.as_str(), attempt.service.as_str()), ("", "night-shift"));
    assert_ne!(attempt.trace, sent.trace);
    assert_eq!(attempt.links, [sent.place()]);
}

/// Puts the only message of the main queue back, as if it had been published an hour before.
async fn age_message(platform: &Platform) {
    let connection =
        Connection::connect(platform.amqp_url(), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = platform.namespace().to_string();
    let options = BasicGetOptions::default();
    let got = channel.basic_get(queue.as_str().into(), options).await.unwrap().unwrap();
    let published_s = got.properties.timestamp().unwrap();
    let properties = got.properties.clone().with_timestamp(published_s - 3_600);
    let options = BasicPublishOptions::default();
    channel
        .basic_publish("".into(), queue.as_str().into(), options, &got.data, properties)
        .await
        .unwrap()
        .await
        .unwrap();
    got.ack(BasicAckOptions::default()).await.unwrap();
    connection.close(200, "".into()).await.unwrap();
}
