//! Placeholders in a job's params and idempotency key, filled for what is enqueued.

use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sexton_client::{Client, Error};
use sexton_model::zone::Zone;

use super::{Fixture, charge};

/// A job whose key names a param, and a month in Vienna.
async fn fixture() -> Fixture {
    let f = Fixture::new().await;
    f.run(
        r#"UPDATE sexton.jobs SET timezone = 'Europe/Vienna',
           params = '{"month": "{{ scheduled_for | date(\"%Y-%m\") }}", "copy": "{{ params.subscription }}"}',
           idempotency_template = 'billing:{{ params.subscription }}:{{ scheduled_for | date("%Y-%m") }}'"#,
    )
    .await;
    f
}

#[tokio::test]
async fn one_and_many_fill_the_templates_in_the_job_s_zone() {
    let f = fixture().await;
    // In Vienna it is February already.
    let at: DateTime<Utc> = "2027-01-31T23:30:00Z".parse().unwrap();
    let asks = |key: &str| {
        charge()
            .key(key)
            .run_at(at)
            .params(&json!({"subscription": 4, "note": "{{ job }}"}))
            .unwrap()
    };
    let one = f.enqueue(&asks("one")).await.unwrap().execution_id;
    let mut connection = f.connect().await;
    let many = Client::new().enqueue_many(&mut connection, &[asks("many")]).await.unwrap();
    for id in [one, many[0].execution_id] {
        let row = f.row(id).await;
        let params = json!({"month": "2027-02", "copy": 4, "subscription": 4, "note": "{{ job }}"});
        assert_eq!(
            (&row["params"], &row["idempotency_key"]),
            (&params, &json!("billing:4:2027-02"))
        );
    }
}

#[tokio::test]
async fn a_missing_param_is_an_answer_of_its_class_and_nothing_is_enqueued() {
    let f = fixture().await;
    let refused = f.enqueue(&charge()).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("job \"billing.charge\": params.subscription is missing."), "{text}");
    assert!(matches!(&refused, Error::InvalidParams(_)), "{refused:?}");
    let good = charge().params(&json!({"subscription": 1})).unwrap();
    let mut connection = f.connect().await;
    let list = charge().params(&json!({"subscription": [1]})).unwrap();
    let refused =
        Client::new().enqueue_many(&mut connection, &[good, charge(), list]).await.unwrap_err();
    let text = format!("{refused:?}");
    assert!(text.contains("item 2: params.subscription is missing"), "{text}");
    assert!(text.contains("item 3: params.subscription is an object or a list"), "{text}");
    f.run(r#"UPDATE sexton.jobs SET params = '{"since": "{{ previous_scheduled_for }}"}'"#).await;
    let refused =
        f.enqueue(&charge().params(&json!({"subscription": 1})).unwrap()).await.unwrap_err();
    assert!(
        refused.to_string().contains("previous_scheduled_for is known of a job with a schedule"),
        "{refused}"
    );
    assert_eq!(f.count().await, 0);
}

#[tokio::test]
async fn the_schema_of_a_worker_applies_to_what_the_templates_become() {
    let f = fixture().await;
    f.run(
        r#"WITH w AS (INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at, pools)
                      VALUES (gen_random_uuid(), 'worker', 'w', 1, '0', now(), now(), '{default}') RETURNING id)
           INSERT INTO sexton.offers (instance_id, task_type, params_schema)
           SELECT id, 'work', '{"properties": {"copy": {"type": "integer"}, "month": {"minLength": 7}}}' FROM w"#,
    )
    .await;
    f.enqueue(&charge().params(&json!({"subscription": 4})).unwrap()).await.unwrap();
    let refused =
        f.enqueue(&charge().params(&json!({"subscription": "four"})).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("/copy: must be integer"), "{refused}");
}

/// Against another implementation of strftime: years, weeks and offsets of many instants in many zones.
#[tokio::test]
async fn each_letter_of_a_format_means_what_strftime_means() {
    let f = Fixture::new().await;
    let format = "%Y %m %d %H %M %S %y %j %G %V %u %F %T %s";
    let (mut instants, mut zones, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let mut at: DateTime<Utc> = "1999-12-25T00:00:00Z".parse().unwrap();
    for (number, zone) in
        ["UTC", "Europe/Vienna", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
            .iter()
            .cycle()
            .take(2_000)
            .enumerate()
    {
        at += TimeDelta::seconds(700_001 + (number as i64 % 13) * 3_599);
        let mut text = String::new();
        write!(text, "{}", Zone::parse(zone).unwrap().at(at).format(format)).unwrap();
        instants.push(at);
        zones.push((*zone).to_owned());
        expected.push(text);
    }
    let asking = "SELECT array_agg(sexton.format_instant(at, $1, zone) ORDER BY n)
                  FROM unnest($2::timestamptz[], $3::text[]) WITH ORDINALITY AS t (at, zone, n)";
    let asking =
        sqlx::query_scalar::<_, Vec<String>>(asking).bind(format).bind(&instants).bind(&zones);
    assert_eq!(asking.fetch_one(f.pool()).await.unwrap(), expected);
}

/// What the file's check accepts is what the database fills, and what it refuses stays as it is written.
#[tokio::test]
async fn the_database_fills_what_the_check_of_a_file_accepts() {
    let f = Fixture::new().await;
    let known = json!({
        "job": "J", "execution_key": "K", "zone": "UTC", "scheduled_for": "2027-01-31T23:30:00Z",
        "previous_scheduled_for": null, "params": {"a": {"b-1": "P"}, "n": null, "t": true},
    });
    for (text, filled) in [
        ("{{job}}{{ execution_key }}", Some("JK")),
        ("{{ scheduled_for }}/{{scheduled_for|date(\"%Y\")}}", Some("2027-01-31T23:30:00Z/2027")),
        ("[{{ previous_scheduled_for }}]", Some("[]")),
        ("{{ params.a.b-1 }} {{ params.t }}{{ params.n }}", Some("P true")),
        ("{{ \"{{\" }} job }}", Some("{{ job }}")),
        ("{{ now }}", None),
        ("{{ params }}", None),
        ("{{ params.a. }}", None),
        ("{{ scheduled_for | upper }}", None),
        ("{{ scheduled_for", None),
    ] {
        let filling = sqlx::query_scalar::<_, Value>("SELECT to_jsonb(sexton.filled_text($1, $2))");
        let got = filling.bind(text).bind(&known).fetch_one(f.pool()).await.unwrap();
        assert_eq!(got, json!(filled.unwrap_or(text)), "{text}");
        let accepted = sexton_model::template::placeholders(text).is_ok();
        assert_eq!(accepted, filled.is_some(), "{text}");
    }
}
