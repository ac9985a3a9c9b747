//! What `sexton keys check` finds, on one platform and between several.

use serde_json::json;
use sexton_service::clock;
use sexton_tests::database::TestDatabase;

use super::Fixture;
use crate::cli::sexton_with;

#[tokio::test]
async fn a_platform_in_order_has_no_findings_and_any_other_has_each_with_its_remedy() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing", "--start", "100", "--keys", "2"]).await.expect(0);
    f.apply(&[("billing.a", "lock_key = 100"), ("shop.a", "")]).await.expect(0);
    assert_eq!(f.run(&["keys", "check"]).await.expect(0).text(), "Nothing found.\n");
    assert_eq!(f.json(&["keys", "check"], 0).await, json!({"count": 0, "findings": []}));
    f.apply(&[
        ("billing.b", "lock_key = 101"),
        ("billing.c", ""),
        ("cleanup", ""),
        ("shop.a", "lock_key = 9007199254740993"),
    ])
    .await
    .expect(0);
    let answer = f.json(&["keys", "check"], 8).await;
    let findings = answer["findings"].as_array().unwrap();
    let found: Vec<_> = findings
        .iter()
        .map(|one| {
            format!("{} {}", one["subject"].as_str().unwrap(), one["code"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "billing exhausted",
        "billing.c no_key",
        "cleanup name",
        "shop.a no_range",
        "shop.a rounded",
    ];
    assert_eq!((found, &answer["count"]), (expected.map(str::to_owned).to_vec(), &json!(5)));
    let text = f.run(&["keys", "check"]).await.expect(8).text();
    for part in [
        "billing: exhausted: jobs use all 2 keys; `sexton keys assign billing --keys 4` adds some",
        "billing.c: no_key: has no lock_key; take one of billing (100 to 101)",
        "cleanup: name: is not named <service>.<jobName>",
        "shop.a: no_range: has the key 9007199254740993, and shop has no range; `sexton keys assign shop` gives it one",
        "5 findings",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn platforms_that_must_agree_are_compared_by_url_or_by_variable() {
    let (dev, prod) = (Fixture::new().await, Fixture::new().await);
    for f in [&dev, &prod] {
        f.run(&["keys", "assign", "billing"]).await.expect(0);
        f.apply(&[("billing.run", "lock_key = 1000")]).await.expect(0);
    }
    let same = dev.run(&["keys", "check", "--against", prod.db.url()]).await.expect(0).text();
    assert_eq!(same, "Nothing found.\n");
    dev.run(&["keys", "assign", "shop"]).await.expect(0);
    dev.apply(&[("shop.a", "lock_key = 1050")]).await.expect(0);
    prod.apply(&[("billing.run", "lock_key = 1001"), ("billing.new", "lock_key = 1000")])
        .await
        .expect(0);
    let env = [
        ("DATABASE_URL", dev.db.url()),
        ("PROD_DATABASE_URL", prod.db.url()),
        ("STAGE_DATABASE_URL", dev.db.url()),
    ];
    let check = ["keys", "check", "--against", "STAGE_DATABASE_URL", "PROD_DATABASE_URL"];
    let text = sexton_with(&check, &env).await.expect(8).text();
    assert_eq!(
        text,
        "billing.run: key_differs: 1000 here, 1001 there (PROD_DATABASE_URL)\n\
         shop: range_differs: 1050 to 1099 here, no range there (PROD_DATABASE_URL)\n\
         sexton: 2 findings\n"
    );
    let by_url = dev.json(&["keys", "check", "--against", prod.db.url()], 8).await;
    assert_eq!(by_url["findings"][0]["code"], "key_differs");
    assert!(by_url["findings"][0]["against"].as_str().unwrap().starts_with("postgres"), "{by_url}");
}

#[tokio::test]
async fn a_platform_that_cannot_be_read_is_named_and_no_password_is_shown() {
    let f = Fixture::new().await;
    let empty = TestDatabase::create_empty_on(
        &sexton_servers::shared().await.unwrap().database_url,
        // The hour of its birth, for the sweep.
        &format!("sexton_test_{}_{}", clock::now().timestamp(), uuid::Uuid::new_v4().simple())
            [..40],
    )
    .await
    .unwrap();
    let away = "postgres://ann:s3cret@127.0.0.1:1/sexton";
    for (against, code, part) in [
        ("NO_SUCH_VARIABLE", 2, "no variable \"NO_SUCH_VARIABLE\" is set"),
        ("mysql://ann:s3cret@db/sexton", 2, "it must begin with postgres://"),
        (away, 5, "postgres://ann:***@127.0.0.1:1/sexton: "),
        (empty.url(), 6, "run `sexton migrate`"),
    ] {
        let text = f.run(&["keys", "check", "--against", against]).await.expect(code).text();
        assert!(text.contains(part) && !text.contains("s3cret"), "{part}: {text}");
    }
}
