//! The examples in the documents, tried.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use sexton_console::import::{self, crontab};
use sexton_model::checks_file;
use sexton_model::cron::{DayRule, Dialect, Dst, Expression};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_model::id::AttemptNumber;
use sexton_model::jobs_file;
use sexton_model::lint::Code;
use sexton_model::ticket::{Envelope, IncomingMessage, ParkedDetails, Ticket, read_message};
use sexton_model::zone::Zone;
use sexton_worker::catalogue::Catalogue;

use super::{between, blocks, root, text};

#[test]
fn the_jobs_and_catalogues_of_the_documents_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    for (document, shown) in [
        ("README.md", 2),
        ("docs/reference/jobs.md", 1),
        ("docs/reference/tasks.md", 4),
        ("docs/guides/enqueue-from-java.md", 1),
        ("docs/guides/enqueue-from-python.md", 1),
        ("docs/guides/enqueue-from-typescript.md", 1),
        ("docs/guides/exactly-once.md", 1),
        ("docs/guides/from-celery-beat.md", 1),
        ("docs/guides/from-crontab.md", 2),
        ("docs/guides/from-node-cron.md", 1),
        ("docs/guides/from-sidekiq-cron.md", 1),
        ("docs/guides/from-spring-shedlock.md", 1),
        ("docs/guides/lock-keys.md", 1),
        ("docs/guides/several-teams.md", 1),
        ("docs/guides/timeouts-and-leases.md", 1),
        ("docs/tutorial/first-job.md", 2),
    ] {
        let (jobs, tasks) =
            (blocks(&text(document), "toml jobs"), blocks(&text(document), "toml tasks"));
        assert!(jobs.len() + tasks.len() >= shown, "{document} shows its files");
        for example in jobs {
            let read = jobs_file::parse(document, &example);
            assert!(read.is_ok_and(|jobs| !jobs.is_empty()), "{document}: {example}");
        }
        for example in tasks {
            let file = folder.path().join("tasks.toml");
            std::fs::write(&file, &example).unwrap();
            let read = Catalogue::load(&file);
            assert!(read.is_ok(), "{document}: {read:?}");
        }
    }
}

#[test]
fn the_checks_of_the_documents_are_accepted() {
    for document in ["docs/operations/checks.md", "docs/reference/commands.md"] {
        let examples = blocks(&text(document), "toml checks");
        assert!(!examples.is_empty(), "{document} shows its checks");
        for example in examples {
            let read = checks_file::parse(document, &example);
            assert!(read.is_ok_and(|checks| !checks.is_empty()), "{document}: {example}");
        }
    }
}

#[test]
fn the_crontab_of_the_guide_becomes_the_jobs_and_the_catalogue_beside_it() {
    let document = text("docs/guides/from-crontab.md");
    let [crontab] = &blocks(&document, "text crontab")[..] else { panic!("one crontab") };
    let options = crontab::Options { system: false, zone: Zone::UTC, service: None };
    let imported = crontab::import(crontab, &options, DateTime::UNIX_EPOCH).unwrap();
    assert_eq!(imported.left_out.len(), 2, "MAILTO and @reboot");
    let jobs = import::jobs_file(&imported, "", None);
    let [shown] = &blocks(&document, "toml jobs")[..] else { panic!("one jobs file") };
    assert!(jobs.trim_end().ends_with(shown.trim()), "{jobs}");
    let [shown] = &blocks(&document, "toml tasks")[..] else { panic!("one catalogue") };
    assert!(import::tasks_file(&imported, "").trim_end().ends_with(shown.trim()));
}

#[test]
fn the_table_of_the_findings_is_the_list_of_the_rules() {
    let document = text("docs/reference/cron.md");
    let (_, lint) = document.split_once("\n## Lint\n").unwrap();
    let listed = lint.lines().take_while(|line| !line.starts_with("## "));
    let listed: Vec<&str> =
        listed.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(listed, Code::ALL.map(Code::as_str));
}

#[test]
fn the_handler_of_the_page_is_the_compiled_example() {
    let shown = blocks(&text("docs/guides/handlers.md"), "rust example");
    assert_eq!(shown, [text("worker/examples/charge.rs").trim_end()]);
}

#[test]
fn the_service_of_the_guide_to_distributed_cron_is_the_compiled_example() {
    let guide = text("docs/guides/distributed-cron.md");
    let shown = blocks(&guide, "rust example");
    assert_eq!(shown, [text("guard/examples/distributed_cron.rs").trim_end()]);
}

#[test]
fn the_services_of_the_guides_are_those_that_the_tests_run() {
    for (language, source) in [
        ("python", "examples/python/app.py"),
        ("typescript", "examples/typescript/app.ts"),
        ("java", "examples/java/src/main/java/shop/Orders.java"),
    ] {
        let guide = text(format!("docs/guides/enqueue-from-{language}.md"));
        let [shown] = &blocks(&guide, language)[..] else { panic!("one block in {language}") };
        // Without the sentence above the code.
        assert!(text(source).trim_end().ends_with(shown), "{source} is not what the guide shows");
        assert!(shown.lines().count() > 20, "{language}: the guide shows the whole service");
        assert_eq!(blocks(&guide, "sql"), [text("examples/orders/orders.sql").trim_end()]);
        let [job] = &blocks(&guide, "toml jobs")[..] else { panic!("one job") };
        assert!(text("examples/orders/jobs.toml").trim_end().ends_with(job), "{job}");
    }
    let [shown] = &blocks(&text("docs/guides/enqueue-from-typescript.md"), "json")[..] else {
        panic!("one package.json")
    };
    let shown: Value = serde_json::from_str(shown).unwrap();
    let package: Value = serde_json::from_str(&text("examples/typescript/package.json")).unwrap();
    for (section, name) in [("scripts", "build"), ("dependencies", "sexton-client")] {
        assert_eq!(shown[section][name], package[section][name], "{section}.{name}");
        assert!(shown[section][name].is_string(), "{section}.{name}");
    }
}

#[test]
fn the_service_of_the_guide_from_node_cron_is_the_one_that_the_tests_run() {
    let shown = blocks(&text("docs/guides/from-node-cron.md"), "js");
    let [before, service] = &shown[..] else { panic!("the usual code and the service") };
    let source = text("examples/locks/node/service.mjs");
    assert!(source.trim_end().ends_with(service), "the guide shows another service");
    assert!(service.lines().count() > 20, "the guide shows the whole service");
    assert!(before.contains("pg_try_advisory_lock"), "{before}");
}

#[test]
fn the_code_of_the_guide_to_enqueue_from_rust_is_compiled_and_tested() {
    let sources = ["tests/src/charge.rs", "tests/it/enqueue/typed.rs"].map(text);
    let shown = blocks(&text("docs/guides/enqueue-from-rust.md"), "rust example");
    assert!(shown.len() >= 4, "only {} blocks", shown.len());
    for block in shown {
        assert!(sources.iter().any(|source| source.contains(&block)), "in no source:\n{block}");
    }
}

#[test]
fn the_examples_to_begin_with_are_accepted_and_fit_together() {
    for folder in ["examples", "examples/demo", "examples/orders"] {
        let catalogue = Catalogue::load(&root().join(folder).join("tasks.toml")).unwrap();
        let jobs = text(format!("{folder}/jobs.toml"));
        let jobs = jobs_file::parse(folder, &jobs).unwrap();
        for job in &jobs {
            let offered = catalogue.get(&job.task_type).is_some();
            assert!(offered, "{folder}: nothing runs {} of {}", job.task_type, job.name);
        }
        for task_type in catalogue.types() {
            let used = jobs.iter().any(|job| job.task_type == task_type);
            assert!(used, "{folder}: no job uses {task_type}");
        }
    }
}

#[test]
fn the_expressions_of_the_cron_page_are_accepted_and_refused_as_it_says() {
    let document = text("docs/reference/cron.md");
    let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    for (expression, first) in rows(between(&document, "accepted")) {
        let read = Expression::parse(&expression, Dialect::Any, "billing.run").unwrap();
        let next = read
            .next_after(from, Zone::UTC, Dst::default())
            .unwrap()
            .to_rfc3339_opts(SecondsFormat::Secs, true);
        assert_eq!(next, first, "{expression}");
    }
    for (expression, why) in rows(between(&document, "refused")) {
        assert!(Expression::parse(&expression, Dialect::Any, "").is_err(), "{expression}: {why}");
    }
}

#[test]
fn the_day_fields_select_the_days_that_the_cron_page_says() {
    let document = text("docs/reference/cron.md");
    let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    for (expression, row) in rows(between(&document, "days")) {
        let expected: Vec<&str> = row.split('|').map(str::trim).collect();
        let firings = [Some(DayRule::Both), Some(DayRule::Either), None].map(|days| {
            Expression::parse_with_days(&expression, Dialect::Any, "", days)
                .unwrap()
                .next_after(from, Zone::UTC, Dst::default())
                .map_or("never".to_owned(), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
        });
        assert_eq!(firings[..], expected, "{expression}");
    }
}

#[test]
fn on_days_on_which_clocks_change_expressions_fire_as_the_cron_page_says() {
    for (expression, row) in rows(between(&text("docs/reference/cron.md"), "seams")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [zone, dst, from, expected, _what] = cells[..] else { panic!("{row}") };
        let zone = Zone::parse(zone).unwrap();
        let dst = Dst::parse(dst.trim_matches('`')).unwrap();
        let expected: Vec<&str> = expected.split(", ").collect();
        let read = Expression::parse(&expression, Dialect::Any, "").unwrap();
        let firings: Vec<String> = read
            .iter_after(from.parse().unwrap(), zone, dst)
            .take(expected.len())
            .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
            .collect();
        assert_eq!(firings, expected, "{expression} in {zone}");
    }
}

#[test]
fn the_messages_of_the_wire_format_are_what_is_sent() {
    let document = text("docs/reference/messages.md");
    let [plain] = &blocks(&document, "json ticket")[..] else { panic!("one ticket") };
    let [parked] = &blocks(&document, "json parked")[..] else { panic!("one parked ticket") };
    for example in [plain, parked] {
        let example: Value = serde_json::from_str(example).unwrap();
        let text_of = |field: &str| example[field].as_str().unwrap().to_owned();
        let ticket = Ticket {
            execution_id: text_of("execution_id").parse().unwrap(),
            attempt: AttemptNumber::new(example["attempt"].as_i64().unwrap() as i32).unwrap(),
            job_id: text_of("scheduler_id").parse().unwrap(),
            job: text_of("job"),
            task_type: text_of("type"),
            target: Some(example["id"].to_string()),
            params: example["params_scheduler"].clone(),
            execution_key: text_of("execution_key"),
            scheduled_for: text_of("scheduled_for").parse().unwrap(),
            idempotency_key: text_of("idempotency_key"),
        };
        let parked = example.get("failed_at").map(|at| ParkedDetails {
            failed_at: at.as_str().unwrap().parse().unwrap(),
            failed_reason: text_of("failed_reason"),
            retry_count: example["retry_count"].as_u64().unwrap() as u32,
        });
        let sent: Value = serde_json::from_slice(&ticket.body(parked.as_ref())).unwrap();
        assert_eq!(sent, example);
    }
}

#[test]
fn the_documented_foreign_tasks_are_read() {
    let examples = blocks(&text("docs/reference/messages.md"), "json foreign");
    assert_eq!(examples.len(), 2, "the long form and the short one");
    for example in examples {
        let envelope = Envelope {
            message_id: None,
            attempt: None,
            schema: None,
            flaw: None,
            body: example.as_bytes(),
        };
        assert!(matches!(read_message(envelope), IncomingMessage::Foreign(_)), "{example}");
    }
}

#[test]
fn the_delay_queues_of_the_wire_format_are_those_in_use() {
    let delays = DELAY_QUEUES_MS.map(|delay_ms| delay_ms.to_string()).join(", ");
    assert!(
        text("docs/reference/messages.md").contains(&delays),
        "docs/reference/messages.md does not list {delays}"
    );
}

/// The rows of a table: the text of its first column, which is code, and of its second.
fn rows(table: &str) -> Vec<(String, String)> {
    let rows: Vec<_> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("| `")?.strip_suffix('|')?.split_once("` |"))
        .map(|(code, rest)| (code.to_owned(), rest.trim().to_owned()))
        .collect();
    assert!(rows.len() >= 8, "only {} rows were found", rows.len());
    rows
}
