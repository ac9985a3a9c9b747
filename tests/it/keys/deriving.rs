//! Keys of other systems, computed here and by the server.

use serde_json::{Value, json};
use sexton_model::lock_key::KeyFormula;
use sexton_operations::lock_keys::derive_on;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::Fixture;
use crate::cli::sexton_with;
use crate::docs;

/// The server's own functions have no promise to stay as they are: a server on which this fails locks other keys than the one
/// that made the file.
#[tokio::test]
async fn the_server_hashes_names_as_the_server_that_made_the_vectors() {
    let f = Fixture::new().await;
    let file = docs::text("shared/model/src/lock_key/formula/vectors.json");
    let file: Value = serde_json::from_str(&file).unwrap();
    let mut compared = 0;
    for vector in file["vectors"].as_array().unwrap() {
        let formula = KeyFormula::parse(vector["formula"].as_str().unwrap()).unwrap();
        if !matches!(formula, KeyFormula::Hashtext | KeyFormula::HashtextExtended) {
            continue;
        }
        let (name, namespace) = (vector["name"].as_str().unwrap(), vector["namespace"].as_str());
        let key = derive_on(f.db.store(), formula, name, namespace).await.unwrap();
        assert_eq!(key.to_string(), vector["key"].as_str().unwrap(), "{vector}");
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} keys were compared");
}

#[tokio::test]
async fn a_derived_key_is_where_the_server_lists_the_lock_of_the_other_system() {
    let f = Fixture::new().await;
    let mut session = PgConnection::connect(f.db.url()).await.unwrap();
    for (like, name, kind) in [
        ("django-pglock", "nightly", "bigint"),
        ("hashtext", "nightly", "bigint"),
        ("article", "nightly", "bigint"),
        ("advisory-lock", "nightly", "pair"),
    ] {
        let answer = f.json(&["keys", "derive", name, "--like", like], 0).await;
        assert_eq!(
            (&answer["kind"], &answer["namespace"]),
            (&json!(kind), &Value::Null),
            "{answer}"
        );
        let lock = format!("SELECT pg_advisory_lock({})", answer["key"].as_str().unwrap());
        sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut session).await.unwrap();
        let place = &answer["pg_locks"];
        let listed = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
             AND classid = {} AND objid = {} AND objsubid = {}",
            place["classid"], place["objid"], place["objsubid"]
        );
        let count: i64 =
            sqlx::query_scalar(AssertSqlSafe(listed)).fetch_one(&mut session).await.unwrap();
        assert_eq!(count, 1, "{answer}");
    }
}

#[tokio::test]
async fn a_formula_that_needs_no_server_is_computed_without_one() {
    let derive = async |args: &[&str]| {
        sexton_with(&[&["keys", "derive"], args].concat(), &[("USER", "tester")]).await
    };
    let text = derive(&["db:migrate", "--like", "pg-advisory-lock"]).await.expect(0).text();
    for part in ["3385325551285341936", "pg_advisory_lock(3385325551285341936)", "objsubid = 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let row = derive(&["nightly", "--like", "spring-integration"]).await.expect(0).text();
    assert!(row.contains("INT_LOCK ") && row.contains("no advisory lock"), "{row}");
    let number = derive(&["-5101", "--like", "integer"]).await.expect(0).text();
    assert!(number.contains("pg_advisory_lock(-5101)"), "{number}");
    for (args, part) in [
        (&["9007199254740993", "--like", "integer"][..], "Node.js reads it as 9007199254740992"),
        (&["five", "--like", "integer"], "is no whole number"),
        (&["a", "--like", "sexton"], "sexton needs a namespace; add --namespace"),
        (&["a", "--like", "java-hashcode", "--namespace", "b"], "java-hashcode has no namespace"),
        (&["a", "--like", "quartz"], "possible values: integer, sexton, hashtext"),
        (&["a", "--like", "hashtext"], "DATABASE_URL"),
    ] {
        let text = derive(args).await.expect(2).text();
        assert!(text.contains(part), "{part}: {text}");
    }
}
