//! Goal: what each kind of channel receives satisfies its published schema, within its limits, whatever an incident says.
//!
//! The schemas are written after their sources: Alertmanager's `api/v2/openapi.yaml` (`postableAlerts`), PagerDuty's Events API
//! v2 (`POST /v2/enqueue`), Slack's reference of blocks, and Standard Webhooks 1.0.

use boon::{Compiler, Schemas};
use chrono::DateTime;
use serde_json::{Value, json};
use sexton_model::channel::Email;
use sexton_model::incident::{IncidentState, NotificationKind, Severity, SubjectKind};
use sexton_model::notification::{Digest, Incident, Message};
use uuid::Uuid;

use super::*;

const KINDS: [NotificationKind; 7] = [
    NotificationKind::Opened,
    NotificationKind::Reopened,
    NotificationKind::Reminder,
    NotificationKind::Escalated,
    NotificationKind::Acknowledged,
    NotificationKind::Resolved,
    NotificationKind::Test,
];

/// A message with texts as long and odd as they may be.
fn message(kind: NotificationKind) -> Message {
    let odd = "é<!channel> & \"x\" \u{7}\r\n".repeat(150);
    let incident = Incident {
        id: Uuid::from_u128(7),
        subject_kind: SubjectKind::Job,
        name: odd.chars().take(300).collect(),
        cause: "never_ran".to_owned(),
        severity: Severity::High,
        labels: [("team", "billing"), ("1st team.name", "a"), ("runbook", "https://r.example/1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        detail: odd.clone(),
        job_id: Some(Uuid::nil()),
        execution_id: Some(Uuid::nil()),
        state: if kind == NotificationKind::Resolved {
            IncidentState::Resolved
        } else {
            IncidentState::Open
        },
        occurrences: 3,
        opened_at: DateTime::UNIX_EPOCH,
        acknowledged_by: None,
        resolved_at: (kind == NotificationKind::Resolved).then_some(DateTime::UNIX_EPOCH),
    };
    Message {
        id: Uuid::from_u128(8),
        kind,
        detail: odd,
        created_at: DateTime::UNIX_EPOCH,
        thread: (kind != NotificationKind::Opened).then_some(Uuid::from_u128(9)),
        incident: (kind != NotificationKind::Test).then_some(incident),
    }
}

fn deliveries() -> Vec<Delivery> {
    let messages: Vec<Message> = KINDS.into_iter().map(message).collect();
    let digest = Delivery::Digest(Digest::new(Uuid::from_u128(10), &messages));
    messages.into_iter().map(|one| Delivery::Single(Box::new(one))).chain([digest]).collect()
}

/// The mail, without its encoding.
fn mail_text(delivery: &Delivery) -> String {
    match delivery {
        Delivery::Single(message) => text::plain(message),
        Delivery::Digest(digest) => digest.text(),
        Delivery::Batch(_) => String::new(),
    }
}

fn check(schema: &Value, body: &Value) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.enable_format_assertions();
    compiler.add_resource("mem:schema", schema.clone()).unwrap();
    let index = compiler.compile("mem:schema", &mut schemas).unwrap();
    let valid = schemas.validate(body, index);
    assert!(valid.is_ok(), "{body:#}\n{}", valid.unwrap_err());
}

#[test]
fn each_message_about_an_incident_names_its_section() {
    let section = "docs/operations/incidents.md#never_ran";
    for delivery in deliveries() {
        let Delivery::Single(message) = &delivery else {
            let bodies = [webhook::body(&delivery), slack::body(&delivery)];
            assert!(bodies.iter().all(|body| body.to_string().contains(section)), "{bodies:?}");
            assert!(mail_text(&delivery).contains(section));
            continue;
        };
        let bodies = [
            webhook::body(&delivery),
            slack::body(&delivery),
            alertmanager::body(&[(**message).clone()]),
            pagerduty::body(message, "key"),
        ];
        // What acknowledges or resolves at PagerDuty has no text at all.
        let texts = bodies
            .iter()
            .filter(|body| body.get("event_action").is_none_or(|action| action == "trigger"));
        let has_section = message.incident.is_some();
        for text in texts.map(Value::to_string).chain([mail_text(&delivery)]) {
            assert_eq!(text.contains(section), has_section, "{:?}: {text}", message.kind);
        }
    }
}

#[test]
fn alerts_are_such_as_alertmanager_takes() {
    let labels = json!({
        "type": "object",
        "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
        "additionalProperties": {"type": "string", "minLength": 1},
    });
    let schema = json!({"type": "array", "items": {
        "type": "object", "required": ["labels"], "additionalProperties": false,
        "properties": {
            "labels": {"allOf": [labels, {"required": ["alertname", "severity"]}]},
            "annotations": labels,
            "startsAt": {"type": "string", "format": "date-time"},
            "endsAt": {"type": "string", "format": "date-time"},
            "generatorURL": {"type": "string", "format": "uri"},
        },
    }});
    let all: Vec<Message> = KINDS.into_iter().map(message).collect();
    let body = alertmanager::body(&all);
    check(&schema, &body);
    assert_eq!(body.as_array().unwrap().len(), KINDS.len());
    assert_eq!(body[0]["labels"], body[5]["labels"], "the end is of the same alert");
    assert_eq!(body[5]["endsAt"], "1970-01-01T00:00:00.000Z");
    assert_eq!(body[0]["endsAt"], "1971-01-02T00:00:00.000Z");
}

#[test]
fn events_are_such_as_pagerduty_takes() {
    let text = |max: usize| json!({"type": "string", "minLength": 1, "maxLength": max});
    let schema = json!({
        "type": "object", "required": ["routing_key", "event_action"], "additionalProperties": false,
        "properties": {
            "routing_key": text(32),
            "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
            "dedup_key": text(pagerduty::MAX_KEY_CHARS),
            "client": {"type": "string"},
            "links": {"type": "array", "items": {
                "type": "object", "required": ["href"],
                "properties": {"href": {"type": "string", "format": "uri"}, "text": {"type": "string"}},
            }},
            "payload": {
                "type": "object", "required": ["summary", "source", "severity"], "additionalProperties": false,
                "properties": {
                    "summary": text(1024), "source": text(1000), "component": text(1000), "class": text(1000),
                    "severity": {"enum": ["critical", "error", "warning", "info"]},
                    "timestamp": {"type": "string", "format": "date-time"},
                    "custom_details": {"type": "object"},
                },
            },
        },
        "if": {"properties": {"event_action": {"const": "trigger"}}},
        "then": {"required": ["payload"]},
        "else": {"required": ["dedup_key"]},
    });
    for kind in KINDS {
        let body = pagerduty::body(&message(kind), "key");
        check(&schema, &body);
        let key = if kind == NotificationKind::Test { 8 } else { 7 };
        assert_eq!(body["dedup_key"], Uuid::from_u128(key).to_string(), "{kind:?}");
    }
    let body = pagerduty::body(&message(NotificationKind::Opened), "key");
    assert_eq!(body["payload"]["severity"], "critical");
    assert_eq!(body["links"][0]["href"], "https://r.example/1");
}

#[test]
fn messages_are_such_as_slack_takes_and_nothing_in_them_is_markup() {
    let text = |kind: &str, max: usize| {
        json!({"type": "object", "required": ["type", "text"], "properties": {
            "type": {"const": kind}, "text": {"type": "string", "minLength": 1, "maxLength": max},
        }})
    };
    let schema = json!({
        "type": "object", "required": ["text", "blocks"], "additionalProperties": false,
        "properties": {
            "text": {"type": "string", "maxLength": 4000},
            "blocks": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"oneOf": [
                {"properties": {"type": {"const": "header"}, "text": text("plain_text", 150)}},
                {"properties": {"type": {"const": "section"}, "text": text("mrkdwn", 3000)}},
                {"properties": {"type": {"const": "context"}, "elements":
                    {"type": "array", "minItems": 1, "maxItems": 10, "items": text("mrkdwn", 3000)}}},
            ]}},
        },
    });
    for delivery in deliveries() {
        let body = slack::body(&delivery);
        check(&schema, &body);
        let marked = body["blocks"].as_array().unwrap().iter().skip(1).map(Value::to_string);
        let marked = marked.collect::<String>() + &body["text"].to_string();
        assert!(!marked.contains("<!channel"), "{marked}");
        for part in marked.split('&').skip(1) {
            let is_escape = ["amp;", "lt;", "gt;"].iter().any(|escape| part.starts_with(escape));
            assert!(is_escape, "an escape was cut: {part}");
        }
    }
}

#[test]
fn webhooks_are_such_as_standard_webhooks_recommends() {
    let schema = json!({
        "type": "object", "required": ["type", "timestamp", "data"], "additionalProperties": false,
        "properties": {
            "type": {"type": "string", "pattern": "^[a-z_]+(\\.[a-z_]+)+$"},
            "timestamp": {"type": "string", "format": "date-time"},
            "data": {"type": "object"},
        },
    });
    for delivery in deliveries() {
        let body = webhook::body(&delivery);
        check(&schema, &body);
        assert!(body.to_string().len() < 20_000, "Standard Webhooks advises less than 20 kB");
    }
}

#[test]
fn a_signature_is_that_of_the_specification() {
    // The example of the specification's reference implementation.
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = r#"{"test": 2432232314}"#;
    let signed = webhook::signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
    assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert!(webhook::signature("raw secret", "id", 1, body).is_ok());
    assert!(webhook::signature("whsec_%", "id", 1, body).is_err());
}

#[test]
fn mails_of_an_incident_are_one_conversation_and_have_the_same_id_when_repeated() {
    let settings = Email {
        smtp: "smtp://mail.example".to_owned(),
        from: "Sexton <sexton@example.org>".to_owned(),
        to: vec!["ops@example.org".to_owned(), "Zoe <b@example.org>".to_owned()],
        user: None,
        password: None,
    };
    let header = |delivery: &Delivery, name: &str| {
        let mail = email::compose(&settings, delivery, DateTime::UNIX_EPOCH).unwrap();
        let text = String::from_utf8(mail.formatted()).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        value.map(str::to_owned)
    };
    for delivery in deliveries() {
        let id = header(&delivery, "Message-ID").unwrap();
        assert_eq!(header(&delivery, "Message-ID"), Some(id));
        assert_eq!(header(&delivery, "Auto-Submitted").unwrap(), "auto-generated");
        assert!(header(&delivery, "Subject").is_some());
    }
    let first = Message { id: Uuid::from_u128(9), ..message(NotificationKind::Opened) };
    let first = header(&Delivery::Single(Box::new(first)), "Message-ID").unwrap();
    let end = Delivery::Single(Box::new(message(NotificationKind::Resolved)));
    assert_eq!(header(&end, "In-Reply-To").as_ref(), Some(&first));
    assert_eq!(header(&end, "References"), Some(first));
}
