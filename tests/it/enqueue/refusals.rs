//! What is refused, with a SQLSTATE of its own, the place, and what to do next.

use serde_json::{Value, json};
use sexton_client::{Error, Refusal};
use sexton_tests::factory::NewJob;
use sqlx::postgres::PgDatabaseError;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::{Fixture, JOB, charge};

impl Fixture {
    /// Calls `enqueue_many` with these items, and returns SQLSTATE, message, detail and hint.
    async fn refused(&self, job: &str, items: Value) -> (String, String, String, String) {
        let calling =
            sqlx::query("SELECT * FROM sexton.enqueue_many($1, $2)").bind(job).bind(items);
        let error = calling.execute(self.pool()).await.unwrap_err();
        let error: &PgDatabaseError = error.as_database_error().unwrap().downcast_ref();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        (
            error.code().to_owned(),
            error.message().to_owned(),
            text(error.detail()),
            text(error.hint()),
        )
    }
}

fn refusal(error: &Error) -> Refusal {
    let refusal = error.refusal().unwrap_or_else(|| panic!("{error}")).clone();
    assert!(refusal.hint.as_ref().is_some_and(|hint| hint.ends_with('.')), "{refusal:?}");
    refusal
}

#[tokio::test]
async fn a_job_that_is_unknown_deleted_or_paused_takes_nothing() {
    let f = Fixture::new().await;
    let unknown = f.enqueue(&sexton_client::Enqueue::new("billing.chrage")).await.unwrap_err();
    assert!(matches!(unknown, Error::UnknownJob(_)));
    assert_eq!(refusal(&unknown).message, "there is no job \"billing.chrage\"");
    f.run("UPDATE sexton.jobs SET status = 'paused', paused_at = now(), paused_by = 'a'").await;
    let paused = f.enqueue(&charge()).await.unwrap_err();
    assert!(matches!(paused, Error::PausedJob(_)));
    assert_eq!(refusal(&paused).sqlstate, "SX003");
    f.run("UPDATE sexton.jobs SET deleted_at = now(), deleted_name = name, name = '~' || id").await;
    let deleted = f.enqueue(&charge()).await.unwrap_err();
    assert!(matches!(deleted, Error::DeletedJob(_)));
    assert_eq!(refusal(&deleted).message, "job \"billing.charge\" was deleted");
    NewJob::new(JOB).insert(f.pool()).await.unwrap();
    assert!(f.enqueue(&charge()).await.unwrap().created, "the name is a new job's");
    // Of these the platform alone makes executions.
    for name in ["verify.charge", "foreign.charge"] {
        NewJob::new(name).insert(f.pool()).await.unwrap();
        let reserved = f.enqueue(&sexton_client::Enqueue::new(name)).await.unwrap_err();
        assert!(matches!(reserved, Error::InvalidArgument(_)), "{reserved}");
        refusal(&reserved);
        let mut connection = f.pool().acquire().await.unwrap();
        let client = sexton_client::Client::new();
        let cancelled = client.cancel(&mut connection, name, "k", None).await;
        assert!(matches!(cancelled, Err(Error::InvalidArgument(_))), "{name}");
    }
}

#[tokio::test]
async fn all_problems_of_a_batch_are_named_with_their_places() {
    let f = Fixture::new().await;
    let long = "x".repeat(257);
    let items = json!([
        {"key": "good"}, {"key": " "}, {"key": "a\tb"}, {"key": long}, {"key": 5}, {"params": []},
        {"run_at": "2026-01-01"}, {"run_at": "2026-01-01T00:00:00Z", "delay": "1m"}, {"delay": "401 days"},
        {"key": "k", "unique_for": "1x"}, {"key": "k", "unique_for": "401d"}, {"unique_for": "open"},
        {"key": "k", "if_exists": "drop"}, {"labels": {"a": 1}}, {"labels": ["a"]}, {"kye": "k", "priority": 1}, 7,
        {"delay": "soon"}, {"delay": 5}, {"delay": "1 month"},
    ]);
    let (code, message, detail, hint) = f.refused(JOB, items).await;
    assert_eq!(code, "SX010");
    assert_eq!(message, "job \"billing.charge\": item 2: key is empty");
    assert!(hint.starts_with("Nothing was enqueued."), "{hint}");
    let lines: Vec<&str> = detail.lines().collect();
    assert_eq!(
        lines,
        [
            "item 2: key is empty",
            "item 3: key holds a control character",
            "item 4: key has more than 256 bytes",
            "item 5: key is not a text",
            "item 6: params is not an object",
            "item 7: run_at is no RFC 3339 time with an offset",
            "item 8: run_at and delay exclude each other",
            "item 9: it is to run more than 400 days from now",
            "item 10: unique_for is none of ever, open, and a period such as 1h",
            "item 11: unique_for is longer than 400 days",
            "item 12: unique_for and if_exists need a key",
            "item 13: if_exists is none of keep, replace, postpone",
            "item 14: labels is not an object of texts",
            "item 15: labels is not an object of texts",
            "item 16: unknown fields [\"kye\", \"priority\"]",
            "item 17: it is not an object",
            "item 18: delay is none such as 90s, 10 minutes or 1 day 02:30:00",
            "item 19: delay is none such as 90s, 10 minutes or 1 day 02:30:00",
            "item 20: delay is none such as 90s, 10 minutes or 1 day 02:30:00",
        ]
    );
    assert_eq!(f.count().await, 0);
    let (code, ..) = f.refused(JOB, json!({"key": "k"})).await;
    assert_eq!(code, "SX010");
    let (code, message, ..) = f.refused(JOB, json!([{"run_at": "2026-02-30T00:00:00Z"}])).await;
    assert_eq!(code, "SX010");
    assert!(message.contains("is no time") && message.contains("2026-02-30"), "{message}");
    let (.., detail, _) = f.refused(JOB, Value::Array(vec![json!({"key": ""}); 150])).await;
    assert_eq!(detail.lines().count(), 101);
    assert!(detail.ends_with("and 50 more items"), "{detail}");
    let (code, message, ..) = f.refused(JOB, Value::Array(vec![json!({}); 10_001])).await;
    assert_eq!((&*code, &*message), ("SX020", "10001 items are more than 10,000"));
}

#[tokio::test]
async fn params_have_the_limits_of_every_other_way() {
    let f = Fixture::new().await;
    let nested = |levels: usize| {
        let inner = (1..levels).fold(json!([]), |inside, _| json!([inside]));
        charge().params(&json!({"a": inner})).unwrap()
    };
    f.enqueue(&nested(63)).await.unwrap();
    let deep = refusal(&f.enqueue(&nested(64)).await.unwrap_err());
    assert_eq!(
        deep.message,
        "job \"billing.charge\": the params are nested more than 64 levels deep"
    );
    let rest = r#"{"a": "", "currency": "EUR"}"#.len();
    let long = |bytes: usize| charge().params(&json!({"a": "x".repeat(bytes)})).unwrap();
    f.enqueue(&long(262_144 - rest)).await.unwrap();
    let large = f.enqueue(&long(262_145 - rest)).await.unwrap_err();
    assert!(matches!(large, Error::InvalidParams(_)));
    assert_eq!(refusal(&large).sqlstate, "SX011");
}

#[tokio::test]
async fn integers_that_programs_would_round_are_refused() {
    let f = Fixture::new().await;
    let enqueue = async |params: &str| {
        let calling = sqlx::query("SELECT sexton.enqueue($1, CAST($2 AS jsonb))");
        calling.bind(JOB).bind(params.to_owned()).execute(f.pool()).await
    };
    for rounded in [
        r#"{"a": [{"b": 18446744073709551616}]}"#,
        r#"{"a": -9223372036854775809}"#,
        r#"{"a": 1e400}"#,
    ] {
        let error = enqueue(rounded).await.unwrap_err();
        let error = error.as_database_error().unwrap();
        assert_eq!(error.code().as_deref(), Some("SX011"), "{rounded}");
        assert!(error.message().contains("would be rounded"), "{error}");
    }
    let exact = r#"{"a": 18446744073709551615, "b": -9223372036854775808, "c": 6.02214076e23, "d": "18446744073709551616"}"#;
    enqueue(exact).await.unwrap();
    // As programs write a float, however the session shows one.
    let mut session = f.connect().await;
    session.execute("SET extra_float_digits = 0").await.unwrap();
    let float = format!("SELECT sexton.enqueue('{JOB}', '{{\"a\": 1.2345678901234568e22}}')");
    session.execute(AssertSqlSafe(float)).await.unwrap();
    assert_eq!(f.count().await, 2);
}

#[tokio::test]
async fn a_name_by_which_no_program_could_read_the_params_again_is_refused() {
    let f = Fixture::new().await;
    for params in [
        json!({"$serde_json::private::RawValue": 1}),
        json!({"a": [{"$serde_json::private::RawValue": "{}"}]}),
    ] {
        let error = f.enqueue(&charge().params(&params).unwrap()).await.unwrap_err();
        let error = refusal(&error);
        assert_eq!(error.sqlstate, "SX011", "{params}");
        assert!(error.message.contains("choose another"), "{}", error.message);
    }
    assert_eq!(f.count().await, 0);
}

#[tokio::test]
async fn params_that_the_workers_schema_refuses_are_refused_with_the_places_and_without_values() {
    let f = Fixture::new().await;
    let schema = json!({
        "type": "object", "required": ["customer"],
        "properties": {
            "customer": {"type": "integer", "minimum": 1},
            "iban": {"type": "string", "minLength": 4, "maxLength": 6},
            "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
            "currency": {"enum": ["EUR", "CHF"]},
        },
        "additionalProperties": false,
        "$defs": {"line": {"type": "object", "required": ["cents"], "properties": {"cents": {"type": "integer"}}}},
    });
    sqlx::query(
        "WITH i AS (INSERT INTO sexton.instances (id, kind, name, pid, version, pools, started_at, heartbeat_at)
             VALUES (gen_random_uuid(), 'worker', 'w', 1, '1', '{default}', now(), now()) RETURNING id)
         INSERT INTO sexton.offers (instance_id, task_type, params_schema) SELECT id, 'work', $1 FROM i",
    )
    .bind(schema)
    .execute(f.pool())
    .await
    .unwrap();
    let good = json!({"customer": 7, "iban": "AT12", "lines": [{"cents": 1.0}]});
    f.enqueue(&charge().params(&good).unwrap()).await.unwrap();
    let bad =
        json!({"customer": 0, "iban": "secret-1", "lines": [{}, 5], "~/x": 1, "currency": "USD"});
    let (code, _, detail, _) = f.refused(JOB, json!([{"params": good}, {"params": bad}, {}])).await;
    assert_eq!(code, "SX012");
    let lines: Vec<&str> = detail.lines().collect();
    assert_eq!(
        lines,
        [
            "item 2: /currency: must be one of 2 values; /customer: must be at least 1; /iban: must have at most 6 \
             characters; /lines/0/cents: is missing; /lines/1: must be object; /~0~1x: is not allowed",
            "item 3: /customer: is missing",
        ]
    );
    let one = refusal(&f.enqueue(&charge()).await.unwrap_err());
    assert_eq!(
        (&*one.sqlstate, &*one.message),
        ("SX012", "job \"billing.charge\": /customer: is missing")
    );
    // Of workers that are gone nothing is demanded.
    f.run("UPDATE sexton.instances SET stopped_at = now()").await;
    f.enqueue(&charge()).await.unwrap();
}

/// Keywords that the database does not read are left to the worker; none makes it refuse what the worker would accept.
#[tokio::test]
async fn the_database_refuses_nothing_that_the_validator_of_workers_accepts() {
    let f = Fixture::new().await;
    let schemas = [
        json!(true),
        json!({"oneOf": [{"type": "string"}, {"pattern": "^a"}]}),
        json!({"not": {"format": "email", "pattern": "^b"}}),
        json!({"if": {"type": "integer"}, "then": {"minimum": 5}, "else": {"maxLength": 2}}),
        json!({"type": ["integer", "null"]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^a"}]}),
        json!({"allOf": [{"minimum": 0}, {"maximum": 10}]}),
        json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
        json!({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}),
        json!({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"const": 1}}}),
        json!({"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["v"]}}, "$ref": "#/$defs/n"}),
        json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3, "multipleOf": 2}),
        json!({"uniqueItems": true, "contains": {"const": 1}, "maxItems": 3}),
        json!({"dependentRequired": {"a": ["b"]}, "propertyNames": {"maxLength": 1}}),
    ];
    let values = [
        json!(1),
        json!(2),
        json!(1.5),
        json!(-3),
        json!(11),
        json!(null),
        json!("a"),
        json!("b"),
        json!("aaaa"),
        json!("a@b.at"),
        json!([]),
        json!([1]),
        json!([1, "a"]),
        json!(["a", 1]),
        json!([1, 1]),
        json!({}),
        json!({"a": 1}),
        json!({"a": 2}),
        json!({"x1": 1}),
        json!({"x1": "a"}),
        json!({"y": 1}),
        json!({"v": 1}),
        json!({"v": 1, "next": {"v": 2}}),
        json!({"v": 1, "next": {}}),
        json!(true),
    ];
    let mut connection = f.connect().await;
    let mut agreed = 0;
    for schema in &schemas {
        let validator = sexton_model::params_schema::SchemaValidator::new(schema).unwrap();
        for value in &values {
            let calling =
                sqlx::query_scalar("SELECT v FROM sexton.params_violations($1, $2, '', $1, 0) v");
            let refused: Vec<String> =
                calling.bind(schema).bind(value).fetch_all(&mut connection).await.unwrap();
            let accepted = validator.violations(value).is_empty();
            assert!(refused.is_empty() || !accepted, "{schema} and {value}: {refused:?}");
            agreed += usize::from(!refused.is_empty());
        }
    }
    assert_eq!(agreed, 50, "what the database reads of a schema has changed");
    connection.close().await.unwrap();
}
