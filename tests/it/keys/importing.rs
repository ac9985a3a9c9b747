//! Files of ranges: all of them or none.

use serde_json::json;

use super::{ASSIGNMENTS, Fixture};
use crate::docs;

#[tokio::test]
async fn what_one_platform_lists_another_one_imports() {
    let (one, other) = (Fixture::new().await, Fixture::new().await);
    one.run(&["keys", "assign", "billing"]).await.expect(0);
    one.run(&["keys", "assign", "shop", "--start", "-70", "--keys", "7"]).await.expect(0);
    for format in ["csv", "json"] {
        let list = one.run(&["keys", "list", "--format", format]).await.expect(0).text();
        let file = other.file("keys", &list);
        let dry = other.json(&["keys", "import", &file, "--dry-run"], 0).await;
        let text =
            other.run(&["keys", "import", &file, "--reason", "as in dev"]).await.expect(0).text();
        if format == "csv" {
            assert_eq!(dry["changes"].as_array().unwrap().len(), 2, "{dry}");
            assert_eq!(
                text,
                "+ shop (-70 to -64)\n+ billing (1000 to 1049)\n2 new, 0 changed, 0 unchanged.\n"
            );
        } else {
            assert_eq!(dry, json!({"dry_run": true, "changes": [], "unchanged": 2}));
            assert_eq!(text, "0 new, 0 changed, 2 unchanged.\n");
        }
        assert_eq!(other.ranges().await, one.ranges().await);
    }
    assert_eq!(other.count(ASSIGNMENTS).await, 2, "nothing is recorded where nothing changes");
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let f = Fixture::new().await;
    let file = f.file("keys.csv", "service,start\nbilling,1300\n");
    let text = f.run(&["keys", "import", &file, "--dry-run"]).await.expect(0).text();
    assert!(
        text.ends_with("Nothing was written; it would be: 1 new, 0 changed, 0 unchanged.\n"),
        "{text}"
    );
    assert_eq!((f.ranges().await.len(), f.count(ASSIGNMENTS).await), (0, 0));
}

#[tokio::test]
async fn two_services_exchange_their_ranges_in_one_file() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "a", "--start", "100"]).await.expect(0);
    f.run(&["keys", "assign", "b", "--start", "200"]).await.expect(0);
    let file = f.file("keys.csv", "service,start\na,200\nb,100\n");
    let text = f.run(&["keys", "import", &file]).await.expect(0).text();
    assert!(text.contains("~ a (200 to 249), before 100 to 149"), "{text}");
    assert_eq!(f.ranges().await, ["b 100 50", "a 200 50"]);
}

#[tokio::test]
async fn a_file_with_any_problem_imports_nothing_and_every_problem_has_its_place() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing", "--start", "1300"]).await.expect(0);
    f.run(&["keys", "assign", "web", "--start", "2000"]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 1349")]).await.expect(0);
    // First the form of all rows, then the ranges among one another and with those that are there.
    let malformed = "service,start,keys\nshop,1,\na b,x,0\nshop,70,\n";
    let across =
        "service,start,keys\nshop,1990,\nmail,100,50\nfine,5000,\nbilling,1300,49\nbox,149,2\n";
    let unclosed = "[{\"service\": \"shop\", \"start\": 1}, {\"service\": \"mail, \"start\": 2}]";
    for (name, text, expected) in [
        (
            "malformed.csv",
            malformed,
            &[
                "malformed.csv:3:1: service: \"a b\" is no service",
                ":3:5: start: \"x\" is no whole number",
                ":4:1: service: shop has a range in line 2 already",
                "3 problems; nothing was imported",
            ][..],
        ),
        (
            "across.csv",
            across,
            &[
                "across.csv:2:1: shop (1990 to 2039) overlaps web (2000 to 2049)",
                ":5:1: billing.run uses 1349, which billing would lose",
                ":6:1: box (149 to 150) overlaps mail (100 to 149)",
                "3 problems; nothing was imported",
            ],
        ),
        ("unclosed.json", unclosed, &["unclosed.json:1:", "nothing was imported"]),
        ("empty.csv", "", &["empty.csv:1:1: the file is empty"]),
    ] {
        let file = f.file(name, text);
        let text = f.run(&["keys", "import", &file]).await.expect(1).text();
        for part in expected {
            assert!(text.contains(part), "{part}: {text}");
        }
        let answer = f.json(&["keys", "import", &file], 1).await;
        let first = &answer["problems"][0];
        assert!(first["line"].is_number() && first["column"].is_number(), "{answer}");
    }
    let missing = f.run(&["keys", "import", "/there/is/no.csv"]).await.expect(1).text();
    assert!(missing.contains("/there/is/no.csv cannot be read"), "{missing}");
    assert_eq!(f.ranges().await, ["billing 1300 50", "web 2000 50"]);
    assert_eq!(f.count(ASSIGNMENTS).await, 2);
}

#[tokio::test]
async fn the_forty_services_of_the_guide_are_imported_and_in_order() {
    let f = Fixture::new().await;
    let guide = docs::text("docs/guides/lock-keys.md");
    let [csv] = &docs::blocks(&guide, "csv ranges")[..] else { panic!("one table") };
    let file = f.file("ranges.csv", csv);
    let text = f.run(&["keys", "import", &file]).await.expect(0).text();
    assert!(text.ends_with("40 new, 0 changed, 0 unchanged.\n"), "{text}");
    let [jobs] = &docs::blocks(&guide, "toml jobs")[..] else { panic!("one jobs file") };
    let file = f.file("jobs.toml", jobs);
    f.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    f.run(&["keys", "check"]).await.expect(0);
}
