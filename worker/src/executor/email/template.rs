//! Renders the templates of one attempt's mail.

use std::io::{self, Write};

use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use sexton_outbound::mail::{
    BODY_MAX_BYTES, InvalidMail, MailText, SUBJECT_MAX_BYTES, TO_MAX_BYTES,
};

use super::EmailTask;
use crate::executor::TaskRun;

/// The most steps of rendering a template.
const TEMPLATE_FUEL: u64 = 1_000_000;

/// Why a template cannot be rendered.
pub(super) enum TemplateError {
    /// It uses an undefined name or too many steps; the message is for people.
    Render(String),
    /// Its result is not valid in a mail.
    Invalid(InvalidMail),
}

/// Checks the syntax of a template.
///
/// # Errors
///
/// The syntax error, for people.
pub(crate) fn check_template(text: &str) -> Result<(), String> {
    match environment().template_from_str(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("is no template: {}", describe(&error))),
    }
}

/// Renders the templates of `spec` for `task`.
pub(super) fn render(spec: &EmailTask, task: &TaskRun) -> Result<MailText, TemplateError> {
    Ok(MailText {
        to: render_part("to", &spec.to, TO_MAX_BYTES, task)?,
        subject: render_part("subject", &spec.subject, SUBJECT_MAX_BYTES, task)?,
        body: render_part("body", &spec.body, BODY_MAX_BYTES, task)?,
    })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
}

fn render_part(
    part: &str,
    template: &str,
    max_bytes: usize,
    task: &TaskRun,
) -> Result<String, TemplateError> {
    let environment = environment();
    let values = context! {
        params => Serde(&task.params),
        job => task.job.as_str(),
        target => task.target.as_deref(),
        execution_key => task.execution_key.as_str(),
        scheduled_for => task.scheduled_for.to_rfc3339(),
        idempotency_key => task.idempotency_key.as_str(),
    };
    let mut out = BoundedBuffer { bytes: Vec::new(), max_bytes };
    let result = environment
        .template_from_str(template)
        .and_then(|template| template.render_captured_to(values, &mut out).map(drop));
    match result {
        Ok(()) => Ok(String::from_utf8_lossy(&out.bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::WriteFailure => {
            Err(TemplateError::Invalid(InvalidMail::too_long(part, max_bytes)))
        }
        Err(error) => {
            let message = format!("`{part}` cannot be filled in: {}", describe(&error));
            Err(TemplateError::Render(message))
        }
    }
}

fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{detail} (line {line})"),
        None => detail,
    }
}

/// Accepts `max_bytes` bytes and no more, so that a template does not fill the memory.
struct BoundedBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
