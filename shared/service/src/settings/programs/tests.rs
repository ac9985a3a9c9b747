//! Whole environments, as in a deployment.

use super::*;

const SECRET: &str = "hunter2";

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with_servers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = variables(&[
        ("DATABASE_URL", "postgres://ann:hunter2@db/sexton"),
        ("AMQP_URL", "amqp://ann:hunter2@mq"),
        ("PATH", "/bin"),
    ]);
    all.extend(variables(pairs));
    all
}

fn problems(result: Result<impl Sized, SettingsErrors>) -> Vec<String> {
    let errors = result.err().expect("these settings are wrong");
    assert!(!errors.to_string().contains(SECRET), "{errors}");
    errors.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn two_urls_are_enough_and_the_rest_is_as_documented() {
    let worker = WorkerSettings::from_env(with_servers(&[])).unwrap();
    let common = &worker.service;
    assert_eq!(common.namespace, "cron_scheduler");
    assert_eq!(common.retry.max_retries, 3);
    assert_eq!(common.retry.delay, Duration::from_secs(30));
    assert!((common.retry.multiplier - 2.0).abs() < f64::EPSILON);
    assert_eq!(common.shutdown_grace, Duration::from_secs(30));
    assert!(common.health_addr.ip().is_loopback());
    assert!(!common.instance.is_empty());
    assert_eq!(worker.pools, ["default"]);
    assert_eq!((worker.slots, worker.prefetch), (8, 1));
    assert_eq!(worker.pool_slots, [8]);
    assert_eq!(worker.lease, Duration::from_secs(20));
    assert_eq!(worker.tasks, None);

    let scheduler = SchedulerSettings::from_env(with_servers(&[])).unwrap();
    assert_eq!(scheduler.retention_days, 30);
    assert_eq!(scheduler.job_prefix, None);
    assert_eq!(scheduler.cron_jobs, None);
}

#[test]
fn given_values_are_taken() {
    let worker = WorkerSettings::from_env(with_servers(&[
        ("WORKER_POOLS", "reports, eu-west,reports"),
        ("WORKER_SLOTS", "32"),
        ("WORKER_TASKS", "/etc/sexton/tasks.toml"),
        ("SEXTON_INSTANCE", "w1"),
        ("SEXTON_STATE_DIR", "/run/w1"),
        ("LEASE_MS", "5000"),
        ("HEALTH_ADDR", "0.0.0.0:8080"),
        ("CRON_RETRY_DELAY_MULTIPLIER", "1.5"),
        ("CRON_JOBS", "another program's, and not JSON"),
        ("RETENTION_DAYS", "neither read nor judged here"),
    ]))
    .unwrap();
    assert_eq!(worker.pools, ["reports", "eu-west"]);
    assert_eq!((worker.slots, &worker.pool_slots[..]), (32, &[16, 16][..]));
    assert_eq!(worker.tasks, Some(PathBuf::from("/etc/sexton/tasks.toml")));
    assert_eq!(worker.service.instance, "w1");
    assert_eq!(worker.state_dir, PathBuf::from("/run/w1"));
    assert_eq!(worker.lease, Duration::from_secs(5));
    assert_eq!(worker.service.health_addr.port(), 8080);
}

#[test]
fn all_problems_are_reported_at_once_in_the_documented_order_and_without_secrets() {
    let found = problems(WorkerSettings::from_env(variables(&[
        ("WORKER_SLOT", SECRET),
        ("LEASE_MS", "20s"),
        ("DATABASE_URL", "mysql://ann:hunter2@db"),
        ("WORKER_SLOTS", "0"),
        ("CRON_RETRY_DELAY_MULTIPLIER", "0.5"),
        ("HEALTH_ADDR", "localhost:8080"),
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "inof"),
        ("SEXTON_INSTANCE", "caf\u{FFFD}"),
    ])));
    let names: Vec<_> = found.iter().map(|line| line.split([' ', ':']).next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "DATABASE_URL",
            "AMQP_URL",
            "SEXTON_INSTANCE",
            "CRON_RETRY_DELAY_MULTIPLIER",
            "WORKER_SLOTS",
            "LEASE_MS",
            "HEALTH_ADDR",
            "LOG_FORMAT",
            "RUST_LOG",
            "WORKER_SLOT",
        ]
    );
    assert_eq!(
        found[5],
        "LEASE_MS = \"20s\": not a whole number (digits only, no unit); allowed: a whole number \
         from 1000 to 3600000 (milliseconds)"
    );
    assert_eq!(found[9], "WORKER_SLOT: no such setting; did you mean WORKER_SLOTS?");
    assert!(found[1].starts_with("AMQP_URL: not set; allowed: amqp://"), "{}", found[1]);
    assert!(found[2].contains("not UTF-8"), "{}", found[2]);
}

#[test]
fn numbers_out_of_any_machine_range_are_out_of_range_too() {
    for text in ["-1", "4294967296", "99999999999999999999999", "1001"] {
        let found = problems(WorkerSettings::from_env(with_servers(&[("CRON_MAX_RETRIES", text)])));
        assert!(found[0].contains("outside the range"), "{found:?}");
    }
    for text in ["NaN", "inf", "-2", "1e9"] {
        let pair = [("CRON_RETRY_DELAY_MULTIPLIER", text)];
        let found = problems(WorkerSettings::from_env(with_servers(&pair)));
        assert!(found[0].contains("outside the range"), "{found:?}");
    }
}

#[test]
fn pools_may_have_slots_of_their_own_and_then_there_is_no_other_number() {
    let given = [("WORKER_POOLS", "default:4, reports:2")];
    let worker = WorkerSettings::from_env(with_servers(&given)).unwrap();
    assert_eq!(worker.pools, ["default", "reports"]);
    assert_eq!((worker.slots, &worker.pool_slots[..]), (6, &[4, 2][..]));
    let more = [("WORKER_POOLS", "a,b,c"), ("WORKER_SLOTS", "2"), ("LEASE_MS", "no")];
    let found = problems(WorkerSettings::from_env(with_servers(&more)));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("WORKER_SLOTS = \"2\": WORKER_POOLS names more"), "{found:?}");
    let both = [("WORKER_POOLS", "default:4"), ("WORKER_SLOTS", "8")];
    let found = problems(WorkerSettings::from_env(with_servers(&both)));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("WORKER_SLOTS = \"8\": WORKER_POOLS says how many"), "{found:?}");
}

#[test]
fn an_empty_value_is_no_value() {
    let worker = WorkerSettings::from_env(with_servers(&[("WORKER_SLOTS", "")])).unwrap();
    assert_eq!(worker.slots, 8);
    let found = problems(WorkerSettings::from_env(variables(&[
        ("DATABASE_URL", ""),
        ("AMQP_URL", "amqp://mq"),
    ])));
    assert!(found[0].starts_with("DATABASE_URL: not set"), "{found:?}");
}

#[test]
fn the_console_starts_without_servers_and_asks_for_one_only_when_it_is_needed() {
    let console = ConsoleSettings::from_env(variables(&[("AMQP_URL", "amqp://mq")])).unwrap();
    assert_eq!(console.amqp_url().unwrap().expose(), "amqp://mq");
    let found = problems(console.database_url());
    assert!(found[0].starts_with("DATABASE_URL: not set, and this command needs it"), "{found:?}");
}

#[test]
fn a_task_may_call_sexton() {
    let given = with_servers(&[("SEXTON_EXECUTION_ID", "1"), ("SEXTON_RESULT_FILE", "/tmp/r")]);
    ConsoleSettings::from_env(given).unwrap();
}

#[test]
fn the_state_folder_is_the_users_own() {
    let folder = |pairs| WorkerSettings::from_env(with_servers(pairs)).unwrap().state_dir;
    assert_eq!(folder(&[("XDG_RUNTIME_DIR", "/run/user/7")]), PathBuf::from("/run/user/7/sexton"));
    let user = rustix::process::getuid().as_raw();
    assert_eq!(folder(&[("TMPDIR", "/var/tmp")]), PathBuf::from(format!("/var/tmp/sexton-{user}")));
    assert_eq!(folder(&[]), PathBuf::from(format!("/tmp/sexton-{user}")));
}

#[test]
fn debug_output_of_settings_holds_no_secret() {
    let worker = WorkerSettings::from_env(with_servers(&[])).unwrap();
    assert!(!format!("{worker:?}").contains(SECRET));
}

/// A value that no setting takes, so a program that reads it has a problem with it.
const UNREADABLE: &str = "\u{FFFD}";

fn is_read(program: Program, name: &str) -> bool {
    let mut all = with_servers(&[("DEADMAN_URL", "https://hc.example/5f8a")]);
    all.retain(|(known, _)| known != name);
    all.push((name.to_owned(), UNREADABLE.to_owned()));
    let errors = match program {
        Program::Scheduler => SchedulerSettings::from_env(all).err(),
        Program::Worker => WorkerSettings::from_env(all).err(),
        Program::Console => ConsoleSettings::from_env(all).err(),
        Program::Server => ServerSettings::from_env(all).err(),
    };
    errors.is_some_and(|errors| errors.problems().iter().any(|one| one.name() == name))
}

#[test]
fn a_program_reads_the_settings_that_its_help_lists_and_no_others() {
    // The scheduler's monitors of the platform are configured as the command `sexton`, whose `status` alone uses this one.
    let of_its_doctor = [(Program::Scheduler, "FAILED_WARN_PER_HOUR")];
    for setting in table::settings() {
        let about = setting.about();
        for program in [Program::Scheduler, Program::Worker, Program::Console, Program::Server] {
            // `sexton serve` answers for status and doctor with the settings of the command `sexton`, whose help lists them.
            let of_the_command = about.programs.contains(&Program::Console);
            let is_of_a_doctor = program == Program::Server && of_the_command;
            if is_of_a_doctor || of_its_doctor.contains(&(program, about.name)) {
                continue;
            }
            let is_listed = about.programs.contains(&program);
            assert_eq!(is_read(program, about.name), is_listed, "{program:?} {}", about.name);
        }
    }
}

#[test]
fn a_log_in_by_a_provider_needs_all_of_it_and_says_so_at_once() {
    let serve = |pairs: &[(&str, &str)]| ServerSettings::from_env(with_servers(pairs));
    let whole = [
        ("SERVE_OIDC_ISSUER", "https://id.example.com/realms/ops"),
        ("SERVE_OIDC_CLIENT_ID", "sexton"),
        ("SERVE_OIDC_CLIENT_SECRET", SECRET),
        ("SERVE_OIDC_ROLES", "groups:ops=operator, groups:admins=admin"),
        ("SERVE_PUBLIC_URL", "https://sexton.example.com"),
    ];
    let settings = serve(&whole).unwrap();
    assert!(!format!("{settings:?}").contains(SECRET));
    let provider = settings.provider.unwrap();
    assert_eq!((&*provider.scopes, &*provider.name_claim), ("openid profile email", "email"));
    assert_eq!(provider.client_secret.unwrap().expose(), SECRET);
    assert!(serve(&[]).unwrap().provider.is_none());
    let found = problems(serve(&whole[..1]));
    let names: Vec<_> = found.iter().map(|line| line.split([' ', ':']).next().unwrap()).collect();
    assert_eq!(names, ["SERVE_OIDC_CLIENT_ID", "SERVE_OIDC_ROLES", "SERVE_PUBLIC_URL"]);
    assert!(found[1].contains("SERVE_OIDC_ISSUER needs it; allowed: 1 to"), "{}", found[1]);
    let found = problems(serve(&whole[1..]));
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.iter().all(|line| line.contains("set SERVE_OIDC_ISSUER, too")), "{found:?}");
    let found = problems(serve(&[
        ("SERVE_OIDC_ISSUER", "http://id.example.com"),
        ("SERVE_OIDC_CLIENT_ID", "sexton"),
        ("SERVE_OIDC_ROLES", "ops=operator"),
        ("SERVE_OIDC_SCOPES", "profile"),
        ("SERVE_PUBLIC_URL", "https://sexton.example.com/console"),
    ]));
    assert_eq!(found.len(), 4, "{found:?}");
}
