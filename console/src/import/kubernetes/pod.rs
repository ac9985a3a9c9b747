//! The program of a pod, as far as a manifest says it.

use std::collections::BTreeMap;

use sexton_model::quoting::{plain, quoted};

use super::super::Program;
use super::super::yaml::Value;
use super::fields::texts;

/// The longest value of a variable, as a catalogue takes it, with room for its name.
const MAX_VALUE_BYTES: usize = 31 * 1024;
/// What a program that only its image knows is called in the catalogue.
const PLACEHOLDER_PROGRAM: &str = "/path/to/the/program";
/// What every pod has, whatever it runs.
const USUAL_FIELDS: [&str; 4] = ["containers", "restartPolicy", "dnsPolicy", "schedulerName"];

/// The first container's program, and what else there is to see to.
pub(super) fn program(template: Option<&Value>) -> (Program, Vec<String>) {
    let mut remarks = Vec::new();
    let pod = template.and_then(|template| template.get("spec"));
    let containers = pod.and_then(|pod| pod.get("containers")).and_then(Value::list);
    let containers = containers.unwrap_or_default();
    let Some(first) = containers.first() else {
        remarks.push("it has no container: write what it runs".to_owned());
        let stdin = Some(String::new());
        return (
            Program { command: vec![PLACEHOLDER_PROGRAM.to_owned()], stdin, ..Program::default() },
            remarks,
        );
    };
    let image = first.get("image").and_then(Value::text).unwrap_or_default();
    let words = |name: &str| -> Vec<String> {
        let list = first.get(name).and_then(Value::list).unwrap_or_default();
        list.iter().filter_map(Value::text).map(str::to_owned).collect()
    };
    let (command, arguments) = (words("command"), words("args"));
    if command.is_empty() {
        remarks.push(format!(
            "write what the image {} runs in place of {PLACEHOLDER_PROGRAM}",
            quoted(image)
        ));
    } else {
        remarks.push(format!("the image there is {}", quoted(image)));
    }
    let program = if command.is_empty() { vec![PLACEHOLDER_PROGRAM.to_owned()] } else { command };
    let (set, env_remarks) = environment(first);
    remarks.extend(env_remarks);
    if containers.len() > 1 {
        remarks.push(format!("{} more containers run beside it there", containers.len() - 1));
    }
    let container_fields =
        ["name", "image", "imagePullPolicy", "command", "args", "env", "workingDir"];
    let others: Vec<String> =
        [(first, &container_fields[..]), (pod.unwrap_or(first), &USUAL_FIELDS[..])]
            .iter()
            .flat_map(|(part, known)| {
                let fields = part.fields().iter().filter(|(name, _)| {
                    !known.contains(&name.as_str()) && !container_fields.contains(&name.as_str())
                });
                fields.map(|(name, value)| format!("{} (line {})", plain(name), value.line))
            })
            .take(30)
            .collect();
    if !others.is_empty() {
        remarks.push(format!("its pod also has {}", others.join(", ")));
    }
    let directory = first.get("workingDir").and_then(Value::text).map(str::to_owned);
    let command = program.into_iter().chain(arguments).collect();
    // A container has nothing on standard input.
    (Program { command, directory, set, user: None, stdin: Some(String::new()) }, remarks)
}

/// Whether a container that failed is started again in its pod.
pub(super) fn restarts(template: Option<&Value>) -> bool {
    let pod = template.and_then(|template| template.get("spec"));
    pod.and_then(|pod| pod.get("restartPolicy")).and_then(Value::text) == Some("OnFailure")
}

/// Whether a catalogue takes a variable of this name.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The variables that have a value, and the remarks about the others.
fn environment(container: &Value) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut set, mut env_remarks) = (BTreeMap::new(), Vec::new());
    let variables = container.get("env").and_then(Value::list).unwrap_or_default();
    for variable in variables.iter().take(200) {
        let Some(name) = variable.get("name").and_then(Value::text) else { continue };
        match variable.get("valueFrom") {
            None if !is_variable(name) => {
                env_remarks.push(format!("a program cannot have the variable {}", quoted(name)));
            }
            None => {
                let text = variable.get("value").and_then(Value::text).unwrap_or_default();
                if text.len() > MAX_VALUE_BYTES || text.contains('\0') {
                    env_remarks
                        .push(format!("the variable {} is too long for a catalogue", quoted(name)));
                } else {
                    set.insert(name.to_owned(), text.to_owned());
                }
            }
            Some(from) => {
                let source = from.fields().first();
                let kind = source.map_or("elsewhere", |(kind, _)| kind.as_str());
                let whose: Vec<String> = source
                    .map(|(_, source)| texts(source))
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(field, text)| format!("{} {}", plain(&field), quoted(&text)))
                    .collect();
                env_remarks.push(format!(
                    "the variable {} comes from {} ({}): write {{ env = … }} or {{ file = … }}",
                    quoted(name),
                    plain(kind),
                    whose.join(", ")
                ));
            }
        }
    }
    (set, env_remarks)
}
