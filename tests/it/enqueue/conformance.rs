//! The cases of `client/conformance.json`, which every client passes, by the client for Rust; `client/README.md` has the
//! form of the file.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use sexton_client::{Client, Enqueue, Enqueued, Error, Execution, IfExists, MAX_BATCH, WaitError};
use sexton_operations::enqueue::parse_unique_for;
use sexton_service::clock;
use sexton_tests::database::TestDatabase;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use uuid::Uuid;

const FILE: &str = include_str!("../../../client/conformance.json");

/// The connection of a case, and the answers that it remembers.
struct Case {
    connection: PgConnection,
    remembered: HashMap<String, Value>,
    stored: String,
}

/// An answer, or why there is none.
enum Answer {
    Found(Value),
    Refused(Error),
    TimedOut,
}

impl From<Result<Value, Error>> for Answer {
    fn from(result: Result<Value, Error>) -> Self {
        result.map_or_else(Self::Refused, Self::Found)
    }
}

impl Case {
    /// A value of the file, with its references and generators replaced.
    fn value(&self, given: &Value) -> Value {
        match given {
            Value::String(text) if text.starts_with('$') => {
                let mut path = text[1..].split('.');
                let first = self.remembered[path.next().unwrap()].clone();
                path.fold(first, |found, step| match step.parse::<usize>() {
                    Ok(place) => found[place - 1].clone(),
                    Err(_) => found[step].clone(),
                })
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                if let Some(text) = fields.get("$integer") {
                    // JSON of serde has no longer integers.
                    return text.as_str().unwrap().parse().unwrap_or(i64::MIN).into();
                }
                let number =
                    |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0) as usize;
                if let Some(text) = fields.get("$repeat") {
                    return text.as_str().unwrap().repeat(number("times")).into();
                }
                if fields.contains_key("$nest") {
                    return (1..number("$nest")).fold(json!({}), |inner, _| json!({"n": inner}));
                }
                if fields.contains_key("$items") {
                    let key = |n| format!("{}{n}", fields["key"].as_str().unwrap());
                    return (1..=number("$items")).map(|n| json!({"key": key(n)})).collect();
                }
                fields.iter().map(|(name, item)| (name.clone(), self.value(item))).collect()
            }
            other => other.clone(),
        }
    }

    /// Fails unless what was found is as expected.
    fn check(&self, expected: &Value, found: &Value, place: &str) {
        match expected {
            Value::Object(fields) if fields.contains_key("$present") => {
                assert!(!found.is_null(), "{place} is missing");
            }
            Value::Object(fields) if fields.contains_key("$differs") => {
                assert_ne!(*found, self.value(&fields["$differs"]), "{place}");
            }
            Value::Object(fields) if fields.contains_key("$in_seconds") => {
                let found: DateTime<Utc> = found.as_str().unwrap().parse().unwrap();
                let bound =
                    |place: usize| in_seconds(fields["$in_seconds"][place].as_f64().unwrap());
                assert!(bound(0) <= found && found <= bound(1), "{place} is {found}");
            }
            Value::Object(fields) if fields.contains_key("$plus") => {
                let sum = self.value(&fields["$plus"][0]).as_i64().unwrap()
                    + fields["$plus"][1].as_i64().unwrap();
                assert_eq!(found.as_i64(), Some(sum), "{place}");
            }
            Value::Object(fields) => {
                for (name, item) in fields {
                    self.check(item, &found[name], &format!("{place}.{name}"));
                }
            }
            Value::Array(items) => {
                assert_eq!(found.as_array().unwrap().len(), items.len(), "{place}");
                for (index, item) in items.iter().enumerate() {
                    self.check(item, &found[index], &format!("{place}[{}]", index + 1));
                }
            }
            Value::Number(number) if found.is_f64() => {
                assert_eq!(found.as_f64(), number.as_f64(), "{place}");
            }
            other => assert_eq!(*found, self.value(other), "{place}"),
        }
    }

    async fn step(&mut self, step: &Value, place: &str) {
        let arguments = self.value(&without_expectation(step));
        let given = |name: &str| arguments[name].clone();
        let text = |name: &str| given(name).as_str().map(str::to_owned);
        let name = step["name"].as_str().unwrap_or_default();
        let control = match step["do"].as_str().unwrap() {
            "begin" => Some("BEGIN".to_owned()),
            "commit" => Some("COMMIT".to_owned()),
            "rollback" => Some("ROLLBACK".to_owned()),
            "savepoint" => Some(format!("SAVEPOINT {name}")),
            "rollback_to" => Some(format!("ROLLBACK TO {name}")),
            _ => None,
        };
        if let Some(control) = control {
            sqlx::raw_sql(AssertSqlSafe(control)).execute(&mut self.connection).await.unwrap();
            return;
        }
        let client = Client::new();
        let id = || text("execution_id").unwrap().parse::<Uuid>().unwrap();
        let (job, key) = (text("job").unwrap_or_default(), text("key"));
        let answer: Answer = match step["do"].as_str().unwrap() {
            "stored" => {
                let (reading, id) = (self.stored.clone(), text("execution_id"));
                let reading = sqlx::query_scalar::<_, String>(AssertSqlSafe(reading)).bind(id);
                let stored = reading.fetch_one(&mut self.connection).await.unwrap();
                let stored: Value = serde_json::from_str(&stored).unwrap();
                assert_eq!(stored, self.value(&step["expect"]), "{place}");
                return;
            }
            "enqueue" => {
                let request = self.request(&job, step);
                client
                    .enqueue(&mut self.connection, &request)
                    .await
                    .map(|one| enqueued(&one, 1))
                    .into()
            }
            "enqueue_many" => {
                let items = given("items");
                let items = items.as_array().unwrap().iter();
                let all: Vec<Enqueue> = items.map(|item| self.request(&job, item)).collect();
                let size = given("batch_size").as_u64().map_or(MAX_BATCH, |size| size as usize);
                if size > MAX_BATCH {
                    // The client would make several calls of it.
                    let items = given("items").as_array().unwrap().clone();
                    let refused = client.enqueue_items(&mut self.connection, &job, items).await;
                    return self.judge(step, refused.map(|all| json!(all.len())).into(), place);
                }
                let mut answers = Vec::new();
                let mut refused = None;
                for batch in all.chunks(size) {
                    match client.enqueue_many(&mut self.connection, batch).await {
                        Ok(some) => answers.extend(some),
                        Err(error) => {
                            refused = Some(error);
                            break;
                        }
                    }
                }
                let numbered =
                    answers.iter().enumerate().map(|(index, one)| enqueued(one, index + 1));
                refused.map_or_else(|| Answer::Found(numbered.collect()), Answer::Refused)
            }
            "cancel" => {
                let reason = text("reason");
                let cancelling = client
                    .cancel(&mut self.connection, &job, key.as_deref().unwrap(), reason.as_deref())
                    .await;
                cancelling
                    .map(|one| {
                        json!({
                            "key": key, "execution_id": one.execution_id, "cancelled": one.cancelled, "state": one.state
                        })
                    })
                    .into()
            }
            "execution" => match &key {
                Some(key) => client.execution_by_key(&mut self.connection, &job, key).await,
                None => client.execution(&mut self.connection, id()).await,
            }
            .map(|found| found.map_or(Value::Null, |found| execution(&found)))
            .into(),
            "demand" => client
                .demand(&mut self.connection, text("pool").unwrap())
                .await
                .map(|demand| {
                    json!({
                        "pool": text("pool"), "waiting": demand.waiting, "running": demand.running,
                        "oldest_wait": demand.oldest_wait.as_secs_f64(),
                    })
                })
                .into(),
            "wait_for" => {
                let timeout = Duration::from_secs_f64(given("timeout_seconds").as_f64().unwrap());
                match client.wait_for(&mut self.connection, id(), timeout).await {
                    Ok(ended) => Answer::Found(execution(&ended)),
                    Err(WaitError::TimedOut(_)) => Answer::TimedOut,
                    Err(error) => panic!("{place}: {error}"),
                }
            }
            other => panic!("{place}: {other} is no operation"),
        };
        self.judge(step, answer, place);
    }

    fn judge(&mut self, step: &Value, answer: Answer, place: &str) {
        let found = match answer {
            Answer::Refused(error) => {
                let refusal = error.refusal().unwrap_or_else(|| panic!("{place}: {error}"));
                let expected = &step["expect_error"];
                assert_eq!(
                    refusal.sqlstate,
                    expected["sqlstate"].as_str().unwrap_or_default(),
                    "{place}: {error}"
                );
                assert_eq!(refusal.hint.is_some(), expected["hint"].as_bool().unwrap(), "{place}");
                assert!(refusal.detail.is_some() || expected["detail"].is_null(), "{place}");
                return;
            }
            Answer::TimedOut => {
                assert!(!step["expect_timeout"].is_null(), "{place}: no timeout was expected");
                return;
            }
            Answer::Found(found) => found,
        };
        assert!(
            step["expect_error"].is_null() && step["expect_timeout"].is_null(),
            "{place}: {found}"
        );
        if let Some(count) = step["expect_count"].as_u64() {
            let ordinals: Vec<Option<u64>> =
                found.as_array().unwrap().iter().map(|one| one["ordinal"].as_u64()).collect();
            assert_eq!(ordinals, (1..=count).map(Some).collect::<Vec<_>>(), "{place}");
        }
        if let Some(expected) = step.get("expect") {
            if expected.is_null() {
                assert!(found.is_null(), "{place}: {found}");
            } else {
                self.check(expected, &found, place);
            }
        }
        if let Some(name) = step["as"].as_str() {
            self.remembered.insert(name.to_owned(), found);
        }
    }

    fn request(&self, job: &str, item: &Value) -> Enqueue {
        let mut request = Enqueue::new(job.to_owned());
        // What the types rule out is refused as well, for another reason.
        if !item["run_at_seconds"].is_null() && !item["delay_seconds"].is_null() {
            return request.key("x".repeat(300));
        }
        let empty = Map::new();
        for (name, given) in item.as_object().unwrap_or(&empty) {
            let value = self.value(given);
            let text = || value.as_str().unwrap();
            request = match name.as_str() {
                "params" => request.params(&value).unwrap(),
                "key" if value.is_string() => request.key(text()),
                "run_at_seconds" => request.run_at(in_seconds(value.as_f64().unwrap())),
                "delay_seconds" => request.delay(Duration::from_secs_f64(value.as_f64().unwrap())),
                "unique_for" => match parse_unique_for(text()) {
                    Ok(unique_for) => request.unique_for(unique_for),
                    Err(_) => return request.key("x".repeat(300)),
                },
                "if_exists" => match text() {
                    "keep" => request.if_exists(IfExists::Keep),
                    "replace" => request.if_exists(IfExists::Replace),
                    "postpone" => request.if_exists(IfExists::Postpone),
                    _ => return request.key("x".repeat(300)),
                },
                "labels" => {
                    value.as_object().unwrap().iter().fold(request, |request, (name, text)| {
                        request.label(name, text.as_str().unwrap_or(&"x".repeat(20_000)))
                    })
                }
                _ => request,
            };
        }
        request
    }
}

/// The fields of a step that are no expectation, whose values may have another form.
fn without_expectation(step: &Value) -> Value {
    let fields = step.as_object().unwrap().iter();
    fields
        .filter(|(name, _)| !name.starts_with("expect"))
        .map(|(name, item)| (name.clone(), item.clone()))
        .collect()
}

fn in_seconds(seconds: f64) -> DateTime<Utc> {
    clock::now() + TimeDelta::microseconds((seconds * 1e6) as i64)
}

fn enqueued(one: &Enqueued, ordinal: usize) -> Value {
    json!({
        "ordinal": ordinal, "execution_id": one.execution_id, "key": one.key, "created": one.created, "state": one.state
    })
}

fn execution(one: &Execution) -> Value {
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    json!({
        "execution_id": one.execution_id, "job": one.job, "key": one.key, "state": one.state_name,
        "attempt": one.attempt, "scheduled_for": time(one.scheduled_for), "started_at": one.started_at.map(time),
        "finished_at": one.finished_at.map(time), "outcome": one.outcome, "result": one.result,
        "error_class": one.error_class, "error_message": one.error_message,
    })
}

#[tokio::test]
async fn the_client_for_rust_answers_as_the_conformance_file_says() {
    let db = TestDatabase::create().await.unwrap();
    let file: Value = serde_json::from_str(&FILE.replace("{run}", "conformance")).unwrap();
    let statement = |name: &str| file["sql"][name].as_str().unwrap().replace(":value", "$1");
    for job in file["jobs"].as_array().unwrap() {
        let creating = sqlx::query(AssertSqlSafe(statement("create_job"))).bind(job.to_string());
        creating.execute(db.pool()).await.unwrap();
    }
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 36, "only {} cases were found", cases.len());
    for case in cases {
        let connection = PgConnection::connect(db.url()).await.unwrap();
        let mut running =
            Case { connection, remembered: HashMap::new(), stored: statement("stored") };
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{}, step {}", case["name"].as_str().unwrap(), index + 1);
            running.step(step, &place).await;
        }
        running.connection.close().await.unwrap();
    }
}
