//! Manifests of Kubernetes.

use chrono::{DateTime, Utc};
use sexton_model::cron::DayRule;
use sexton_model::job::{JobSpec, Overlap, Schedule};
use sexton_model::jobs_file::parse;
use sexton_model::plan::Timetable;

use crate::import::kubernetes::import;
use crate::import::{ImportError, ImportOutcome, jobs_file, tasks_file};

fn now() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn read(text: &str) -> ImportOutcome {
    import(text, None, now()).unwrap_or_else(|refused| panic!("{refused}"))
}

fn jobs(outcome: &ImportOutcome) -> Vec<JobSpec> {
    let text = jobs_file(outcome, "made by a test", None);
    parse("jobs.toml", &text).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"))
}

const MANIFEST: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata:
  name: monthly-invoices
  namespace: billing
  labels: { app: billing, app.kubernetes.io/part-of: "shop" }
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Vienna
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  successfulJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 4
      activeDeadlineSeconds: 2700
      template:
        spec:
          restartPolicy: OnFailure
          serviceAccountName: billing
          containers:
            - name: invoices
              image: registry.example.com/billing:1.2
              command: ["/app/invoices"]
              args: ["--month", "last"]
              workingDir: /app
              resources: { limits: { memory: 1Gi } }
              env:
                - { name: MODE, value: full }
                - name: TOKEN
                  valueFrom: { secretKeyRef: { name: billing, key: token } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
---
apiVersion: v1
kind: List
items:
  - kind: CronJob
    metadata: { name: poll }
    spec:
      schedule: "CRON_TZ=Asia/Kathmandu */5 * * * *"
      jobTemplate: { spec: { parallelism: 3, template: { spec: { containers: [ { image: poll } ] } } } }
  - kind: CronJob
    metadata: { name: asleep }
    spec:
      schedule: "@daily"
      suspend: true
      jobTemplate: { spec: {} }
  - kind: CronJob
    metadata: { name: wrong }
    spec:
      schedule: "@daily"
      timeZone: Europe/Viena
      concurrencyPolicy: Never
      suspend: perhaps
      jobTemplate: { spec: { backoffLimit: many } }
"#;

#[test]
fn cron_jobs_become_jobs_with_their_policies() {
    let outcome = read(MANIFEST);
    let found = jobs(&outcome);
    let names: Vec<&str> = found.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["billing.monthly-invoices", "k8s.poll", "k8s.asleep"]);
    let first = &found[0];
    assert_eq!(first.schedule, Schedule::Cron { expression: "30 2 * * *".to_owned() });
    assert_eq!((first.timezone.name(), first.overlap), ("Europe/Vienna", Overlap::Skip));
    assert_eq!((first.misfire.window.as_secs(), first.timeout.as_secs()), (200, 2_700));
    assert_eq!(first.retry.max_retries, Some(4));
    assert_eq!(first.labels["app.kubernetes.io/part-of"], "shop");
    assert_eq!(found[1].timezone.name(), "Asia/Kathmandu");
    assert_eq!((found[1].retry.max_retries, found[1].overlap), (Some(6), Overlap::Allow));
    assert_eq!(found.iter().map(|job| job.paused).collect::<Vec<_>>(), [false, false, true]);
    let tasks = tasks_file(&outcome, "made by a test");
    for part in [
        r#"command = ["/app/invoices", "--month", "last"]"#,
        r#"directory = "/app""#,
        r#"environment = { set = { MODE = "full" } }"#,
    ] {
        assert!(tasks.contains(part), "{part}\n{tasks}");
    }
    let file = jobs_file(&outcome, "made by a test", None);
    for part in [
        "the image there is",
        "\"TOKEN\" comes from secretKeyRef",
        "serviceAccountName (line",
        "resources (line",
        "\"Deployment\" is no CronJob",
        "/path/to/the/program",
    ] {
        assert!(file.contains(part), "{part}\n{file}");
    }
}

#[test]
fn what_a_job_cannot_say_is_left_out_with_its_line() {
    let outcome = read(MANIFEST);
    let descriptions = outcome.describe_left_out();
    let line = |part: &str| MANIFEST.lines().position(|line| line.contains(part)).unwrap() + 1;
    assert_eq!(descriptions.len(), 2, "{descriptions:#?}");
    for (index, at, part) in [
        (0, line("parallelism"), "spec.jobTemplate.spec.parallelism"),
        (1, line("name: wrong") - 1, "CronJob wrong"),
    ] {
        assert!(
            descriptions[index].starts_with(&format!("line {at}: ")),
            "{}",
            descriptions[index]
        );
        assert!(descriptions[index].contains(part), "{}", descriptions[index]);
    }
}

#[test]
fn all_that_is_wrong_with_a_cron_job_is_told_at_once() {
    let spec = "{ schedule: '@daily', suspend: perhaps, startingDeadlineSeconds: [1], concurrencyPolicy: Never, jobTemplate: { spec: { backoffLimit: many } } }";
    let outcome = read(&format!("kind: CronJob\nmetadata: {{ name: wrong }}\nspec: {spec}\n"));
    let descriptions = outcome.describe_left_out().join("");
    for part in ["Never", "suspend", "startingDeadline", "line 3"] {
        assert!(descriptions.contains(part), "{part}: {descriptions}");
    }
    let zone =
        "kind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', timeZone: Europe/Viena}\n";
    assert!(read(zone).describe_left_out()[0].contains("did you mean Europe/Vienna?"));
    let none = "kind: CronJob\nmetadata: {name: a}\n";
    assert!(read(none).describe_left_out()[0].contains("spec.schedule is missing"));
    // Limits of a job are the checker's.
    let long = "kind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', startingDeadlineSeconds: 0}\n";
    assert!(
        read(long).describe_left_out()[0].contains("window"),
        "{:?}",
        read(long).describe_left_out()
    );
}

#[test]
fn replace_is_carried_over_where_there_is_such_a_policy() {
    let text = "kind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', concurrencyPolicy: Replace}\n";
    let outcome = read(text);
    match Overlap::parse("replace") {
        Some(replace) => assert_eq!(jobs(&outcome)[0].overlap, replace),
        None => assert!(
            outcome.describe_left_out()[0].contains("overlap"),
            "{:?}",
            outcome.describe_left_out()
        ),
    }
}

/// As Kubernetes' own parser has it: a star with a step is no star there.
#[test]
fn a_cron_job_keeps_the_days_on_which_it_runs() {
    use DayRule::{Both, Either};
    for (schedule, days, first) in [
        ("0 0 13 * FRI", Some(Either), "2026-01-02T00:00:00Z"),
        ("0 0 */2 * MON", Some(Either), "2026-01-03T00:00:00Z"),
        ("0 0 */1 * MON", Some(Both), "2026-01-05T00:00:00Z"),
        ("0 0 * * MON", None, "2026-01-05T00:00:00Z"),
    ] {
        let text =
            format!("kind: CronJob\nmetadata: {{name: a}}\nspec: {{schedule: '{schedule}'}}\n");
        let job = jobs(&read(&text)).remove(0);
        assert_eq!(job.days, days, "{schedule}");
        let next = Timetable::of(&job).unwrap().next_after(now()).unwrap();
        assert_eq!(next, first.parse::<DateTime<Utc>>().unwrap(), "{schedule}");
    }
}

#[test]
fn a_mistake_in_the_form_refuses_the_file_with_its_place() {
    let Err(ImportError::Malformed { line, .. }) = import("kind: CronJob\nspec: {\n", None, now())
    else {
        panic!("it was read")
    };
    assert!(line >= 2, "{line}");
    assert_eq!(read("").entries, []);
    assert_eq!(
        import("a: &b 1\nc: *b\n", None, now()).unwrap_err().to_string(),
        "line 2, column 4: aliases are not followed; write what it stands for"
    );
}
