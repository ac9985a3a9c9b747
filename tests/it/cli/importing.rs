//! `sexton jobs import`: `jobs apply` accepts what it prints, and it names what it leaves out.

use serde_json::{Value, json};
use sexton_worker::catalogue::Catalogue;

use super::{Console, keys, run};

mod cron_d;

const CRONTAB: &str = "\
MAILTO=root
CRON_TZ=Europe/Vienna
# Saves the shop.
30 2 * * * /bin/true --all
*/15 9-17 * * MON-FRI cd / && /bin/true
@reboot /bin/true
";

const MANIFEST: &str = "\
kind: CronJob
metadata: { name: invoices, namespace: billing }
spec:
  schedule: '0 1 1 * *'
  timeZone: Europe/Vienna
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 2
      template: { spec: { containers: [ { image: b, command: [/bin/true] } ] } }
";

#[tokio::test]
async fn an_imported_crontab_can_be_applied_and_fires_as_before() {
    let console = Console::new().await;
    let crontab = console.file("crontab", CRONTAB);
    // Needs neither settings nor a database.
    let ended = run(&["jobs", "import", "crontab", &crontab], &[], "").await.expect(9);
    for part in ["line 1: \"MAILTO=root\"", "line 6: \"@reboot", "2 left out"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let jobs = console.file("jobs.toml", &ended.stdout);
    let dry = console.json(&["jobs", "apply", "-f", &jobs, "--dry-run"]).await;
    assert_eq!(dry["created"], json!(["cron.true", "cron.true-15-9-17-MON-FRI"]));
    console.run(&["jobs", "apply", "-f", &jobs]).await.expect(0);
    let from = ["--from", "2027-03-27T12:00:00Z", "--count", "2"];
    let next = console.json(&[&["jobs", "next", "cron.true"], &from[..]].concat()).await;
    assert_eq!(next["next"][0]["at"], "2027-03-28T01:00:00Z");
    assert_eq!(next["next"][1]["at"], "2027-03-29T00:30:00Z");
    let shown = console.json(&["jobs", "show", "cron.true"]).await;
    assert_eq!(shown["description"], "Saves the shop.");
    // From standard input it is the same.
    let piped = run(&["jobs", "import", "crontab", "-"], &[], CRONTAB).await.expect(9);
    assert_eq!(
        piped.stdout.lines().skip(1).collect::<Vec<_>>(),
        ended.stdout.lines().skip(1).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn imported_catalogue_entries_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let crontab = format!(
        "PATH=/bin:/usr/bin\nX=\"a b\"\nHOME=/tmp\n{CRONTAB}0 0 * * * mail -s 'it''s \\%' me%hello%there\n"
    );
    let ended = run(&["--json", "jobs", "import", "crontab", "-"], &[], &crontab).await.expect(9);
    let answer = ended.json();
    assert_eq!(
        keys(&answer),
        ["files", "jobs", "jobs_file", "left_out", "more_left_out", "paused", "tasks_file"]
    );
    assert_eq!((&answer["jobs"], &answer["left_out"][0]["line"]), (&json!(3), &json!(4)));
    assert_eq!(keys(&answer["left_out"][0]), ["entry", "file", "line", "what", "why"]);
    let file = folder.path().join("tasks.toml");
    std::fs::write(&file, answer["tasks_file"].as_str().unwrap()).unwrap();
    let catalogue = Catalogue::load(&file).unwrap();
    let jobs = sexton_model::jobs_file::parse("", answer["jobs_file"].as_str().unwrap()).unwrap();
    for job in jobs {
        assert!(catalogue.get(&job.task_type).is_some(), "{}", job.task_type);
    }
}

#[tokio::test]
async fn an_imported_manifest_can_be_applied() {
    let console = Console::new().await;
    let manifest = console.file("cronjob.yaml", MANIFEST);
    let ended = run(&["jobs", "import", "k8s", &manifest], &[], "").await.expect(0);
    assert_eq!(ended.stderr, "");
    let jobs = console.file("jobs.toml", &ended.stdout);
    let dry = console.json(&["jobs", "apply", "-f", &jobs, "--dry-run"]).await;
    assert_eq!(dry["created"], json!(["billing.invoices"]));
    console.run(&["jobs", "apply", "-f", &jobs]).await.expect(0);
    let shown = console.json(&["jobs", "show", "billing.invoices"]).await;
    let fields =
        ["timezone", "overlap", "max_retries", "max_timeouts", "max_crashes", "timeout_ms"];
    let fields = Value::from(fields.map(|field| shown[field].clone()).to_vec());
    let month_ms = 30 * 86_400_000_i64;
    assert_eq!(fields, json!(["Europe/Vienna", "skip", 2, 1, 3, month_ms]));
    let fields = ["misfire_policy", "misfire_window_ms", "retry_delay_ms", "retry_max_delay_ms"];
    let fields = Value::from(fields.map(|field| shown[field].clone()).to_vec());
    assert_eq!(fields, json!(["fire_once", 366 * 86_400_000_i64, 10_000, 360_000]));
    let named = ["jobs", "import", "k8s", &manifest, "--service", "shop"];
    let ended = run(&named, &[], "").await.expect(0);
    assert!(ended.stdout.contains("name = \"shop.invoices\""), "{}", ended.stdout);
}

#[tokio::test]
async fn a_cron_job_that_is_suspended_is_applied_as_a_paused_job() {
    let console = Console::new().await;
    let asleep = MANIFEST.replace("spec:\n  schedule", "spec:\n  suspend: true\n  schedule");
    let manifest = console.file("cronjob.yaml", &asleep);
    let ended = run(&["jobs", "import", "k8s", &manifest], &[], "").await.expect(0);
    let jobs = console.file("jobs.toml", &ended.stdout);
    let applied = console.json(&["jobs", "apply", "-f", &jobs]).await;
    assert_eq!(applied["still_paused"], json!(["billing.invoices"]));
    let shown = console.json(&["jobs", "show", "billing.invoices"]).await;
    assert_eq!(shown["status"], "paused");
}

#[tokio::test]
async fn the_catalogue_is_written_to_a_new_file_or_nothing_is() {
    let console = Console::new().await;
    let crontab = console.file("crontab", "0 1 * * * /bin/true\n");
    let path = console.file("tasks.toml", "# mine\n");
    let import = ["jobs", "import", "crontab", &crontab, "--tasks", &path];
    let ended = run(&import, &[], "").await.expect(1);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("--force") && ended.stderr.contains("nothing was imported"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\n");
    let ended = run(&[&import[..], &["--force"]].concat(), &[], "").await.expect(0);
    assert!(ended.stdout.contains(&path) && !ended.stdout.contains("# [tasks"), "{}", ended.stdout);
    assert!(Catalogue::load(path.as_ref()).unwrap().get("cron.true").is_some());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_as_a_whole_prints_nothing() {
    let broken = MANIFEST.replace("Forbid", "[");
    let large = "# much\n".repeat(200_000);
    for (form, text, part) in [
        ("k8s", broken.as_str(), "line "),
        ("crontab", &large, "at most"),
        ("k8s", &large, "at most"),
    ] {
        let ended = run(&["jobs", "import", form, "-"], &[], text).await.expect(1);
        assert_eq!(ended.stdout, "");
        let is_refused =
            ended.stderr.contains(part) && ended.stderr.contains("nothing was imported");
        assert!(is_refused, "{}", ended.stderr);
    }
    let wrong = ["jobs", "import", "crontab", "-", "--tz", "Europe/Viena"];
    let ended = run(&wrong, &[], "").await.expect(2);
    assert!(ended.stderr.contains("did you mean Europe/Vienna?"), "{}", ended.stderr);
    run(&["jobs", "import", "crontab", "-", "--service", "a b"], &[], "").await.expect(2);
}
