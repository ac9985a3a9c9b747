//! A task catalogue.

use std::path::Path;

use sexton_model::{duration, size};
use sexton_outbound::secret::{SecretRef, Value};
use sexton_worker::catalogue::{
    Catalogue, EMAIL_TEXT_MAX_BYTES, GRACE_MAX, HEADERS_MAX, LOCK_TIMEOUT_MAX, MAX_PROBLEMS,
    Problem, RESPONSE_MAX, SQL_MAX_BYTES, STATEMENT_TIMEOUT_MAX, TIMEOUT_MAX, TaskKind,
};
use sexton_worker::executor::command::CommandTask;
use sexton_worker::executor::email::EmailTask;
use sexton_worker::executor::sql::SqlTask;

use crate::{error_text, toml_text};

/// Two texts of the input at their longest, escaped, and the words around them.
const MAX_ERROR_BYTES: usize = 2_800;
/// An entry with three things wrong, under a name that no input of a sane length has.
const WRONG: &str = "\n[tasks.\"added by the test\"]\ncommand = \"no list\"\ngrace = 5\n";

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match parse(&text) {
        Ok(catalogue) => {
            check_limits(&catalogue);
            written_and_read_again(&catalogue);
        }
        Err(problems) => check_problems(&problems, &text),
    }
    all_at_once(&text);
}

fn parse(text: &str) -> Result<Catalogue, Vec<Problem>> {
    // Programs that every system has.
    Catalogue::parse(text, Path::new("/bin"), Some("/bin:relative".into()))
}

fn check_limits(catalogue: &Catalogue) {
    for name in catalogue.types() {
        assert!(sexton_model::ticket::is_task_type(name));
        let entry = catalogue.get(name).expect("a listed type");
        assert!(entry.timeout.is_none_or(|timeout| timeout <= TIMEOUT_MAX));
        match &entry.kind {
            TaskKind::Command(command) => {
                assert!(command.line.program.is_absolute());
                assert!(command.line.arguments.iter().all(|word| !word.contains('\0')));
                assert!(command.grace <= GRACE_MAX);
            }
            TaskKind::Email(mail) => {
                assert!(!mail.server.host.is_empty() && mail.server.port > 0);
                assert!(mail.body.len() <= EMAIL_TEXT_MAX_BYTES);
            }
            TaskKind::Http(request) => {
                assert!(["http", "https"].contains(&request.url.scheme()));
                assert!(request.url.host().is_some() && request.url.password().is_none());
                assert!(request.headers.len() <= HEADERS_MAX);
                assert!(request.max_response as u64 <= RESPONSE_MAX);
            }
            TaskKind::Sql(task) => {
                assert!(!task.statement.contains('\0') && task.statement.len() <= SQL_MAX_BYTES);
                assert!(!task.lock_timeout.is_zero() && task.lock_timeout <= LOCK_TIMEOUT_MAX);
                let limit = task.statement_timeout;
                assert!(
                    limit.is_none_or(|limit| !limit.is_zero() && limit <= STATEMENT_TIMEOUT_MAX)
                );
            }
            TaskKind::Noop => {}
        }
    }
    assert!(catalogue.types().len() > 0);
}

fn written_and_read_again(catalogue: &Catalogue) {
    let entry = |name| {
        let entry = catalogue.get(name).expect("a listed type");
        let head = format!("[tasks.{}]\n", toml_text::quoted(name));
        let timeout = entry.timeout.map(duration::format);
        let timeout = timeout.map_or(String::new(), |timeout| format!("timeout = \"{timeout}\"\n"));
        let retry = format!("retry = {}\n", toml_text::retry(&entry.retry));
        head + &timeout + &retry + &runs(&entry.kind)
    };
    let text: String = catalogue.types().map(entry).collect();
    assert_eq!(parse(&text).as_ref(), Ok(catalogue), "written as\n{text}");
}

fn runs(runs: &TaskKind) -> String {
    match runs {
        TaskKind::Command(command) => {
            let program = command.line.program.to_str().expect("it came out of text").to_owned();
            let words = [program].into_iter().chain(command.line.arguments.iter().cloned());
            let words: Vec<_> = words.map(|word| toml_text::quoted(&word)).collect();
            let grace = duration::format(command.grace);
            let head = format!("command = [{}]\ngrace = \"{grace}\"\n", words.join(", "));
            head + &surroundings(command)
        }
        TaskKind::Email(mail) => email(mail),
        TaskKind::Noop => "noop = true\n".to_owned(),
        TaskKind::Http(request) => {
            let headers: Vec<_> = request
                .headers
                .iter()
                .map(|(name, value)| {
                    format!("{} = {}", toml_text::quoted(name.as_str()), written(value))
                })
                .collect();
            let host = request.url.host_str().unwrap_or_default();
            let allow = if request.allowed { toml_text::quoted(host) } else { String::new() };
            format!(
                "http = {{ url = {}, method = \"{}\", headers = {{ {} }}, timeout = \"{}\", \
                 max_response = \"{}\", allow = [{allow}] }}\n",
                toml_text::quoted(request.url.as_str()),
                request.method,
                headers.join(", "),
                duration::format(request.timeout),
                size::format(request.max_response as u64),
            )
        }
        TaskKind::Sql(task) => sql_text(task),
    }
}

fn email(mail: &EmailTask) -> String {
    let server = &mail.server;
    let scheme = if server.smtps { "smtps" } else { "smtp" };
    let host =
        if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
    let mut keys = vec![format!("smtp = \"{scheme}://{host}:{}\"", server.port)];
    let from = mail.from.to_string();
    let texts =
        [("from", &from), ("to", &mail.to), ("subject", &mail.subject), ("body", &mail.body)];
    for (key, text) in texts {
        keys.push(format!("{key} = {}", toml_text::quoted(text)));
    }
    if let Some((user, password)) = &mail.credentials {
        keys.push(format!("user = {}", toml_text::quoted(user)));
        keys.push(format!("password = {}", written(&Value::Secret(password.clone()))));
    }
    keys.push(format!("timeout = \"{}\"", duration::format(mail.timeout)));
    format!("email = {{ {} }}\n", keys.join(", "))
}

fn surroundings(command: &CommandTask) -> String {
    let mut lines = Vec::new();
    if let Some(user) = &command.user {
        lines.push(format!("user = {}", user.uid));
    }
    if let Some(directory) = &command.directory {
        let path = directory.to_str().expect("it came out of text");
        lines.push(format!("directory = {}", toml_text::quoted(path)));
    }
    let inherit = command.environment.inherit.iter().map(|name| toml_text::quoted(name));
    let inherit: Vec<_> = inherit.collect();
    lines.push(format!("environment.inherit = [{}]", inherit.join(", ")));
    for (name, value) in &command.environment.set {
        lines.push(format!("environment.set.{name} = {}", written(value)));
    }
    if let Some(bytes) = command.limits.memory {
        lines.push(format!("limits.memory = \"{}\"", size::format(bytes)));
    }
    if let Some(time) = command.limits.cpu_time {
        lines.push(format!("limits.cpu_time = \"{}\"", duration::format(time)));
    }
    if let Some(number) = command.limits.open_files {
        lines.push(format!("limits.open_files = {number}"));
    }
    if let Some(text) = &command.stdin {
        lines.push(format!("stdin = {}", toml_text::quoted(text)));
    }
    lines.join("\n") + "\n"
}

fn sql_text(task: &SqlTask) -> String {
    let statement = toml_text::quoted(&task.statement);
    let lock = duration::format(task.lock_timeout);
    let limit = task.statement_timeout.map(duration::format);
    let limit = limit.map_or(String::new(), |limit| format!("statement_timeout = \"{limit}\"\n"));
    format!("sql = {statement}\nlock_timeout = \"{lock}\"\n{limit}")
}

fn written(value: &Value) -> String {
    match value {
        Value::Plain(text) => toml_text::quoted(text),
        Value::Secret(SecretRef::Env(name)) => format!("{{ env = {} }}", toml_text::quoted(name)),
        Value::Secret(SecretRef::File(path)) => {
            let path = path.to_str().expect("it came out of text");
            format!("{{ file = {} }}", toml_text::quoted(path))
        }
    }
}

fn check_problems(problems: &[Problem], text: &str) {
    assert!((1..=MAX_PROBLEMS + 1).contains(&problems.len()));
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        error_text::check(&problem.to_string(), MAX_ERROR_BYTES);
        assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem}");
    }
}

/// A wrong entry at the end is reported, and hides no problem of the other entries.
fn all_at_once(text: &str) {
    let before = parse(text).err().unwrap_or_default();
    let Err(after) = parse(&format!("{text}{WRONG}")) else { panic!("a wrong entry was accepted") };
    // Without a syntax the rest has no meaning, and a full list has no room.
    let of_an_entry = |problem: &&Problem| problem.task.is_some();
    let all_placed = before.iter().chain(&after).all(|problem| of_an_entry(&problem));
    if !all_placed || before.len() + 3 > MAX_PROBLEMS {
        return;
    }
    for problem in &before {
        assert!(after.contains(problem), "no longer reported: {problem}");
    }
    let found = after.iter().filter(|problem| problem.task.as_deref() == Some("added by the test"));
    assert!(found.count() >= 3, "not every problem of the last entry is reported: {after:#?}");
}
