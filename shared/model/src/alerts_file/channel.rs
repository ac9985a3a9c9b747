//! Parses a `[[channel]]`.

use url::Url;

use crate::channel::{
    Alertmanager, Channel, ChannelSettings, Email, Pagerduty, Slack, Webhook, is_channel_name,
};
use crate::jobs_file::fields::Fields;
use crate::jobs_file::secret::secret_reference;
use crate::quoting::quoted;
use crate::secret_ref::SecretRef;
use crate::target_url::{http_url, smtp_server};

/// Longest URL, address or name, in bytes.
const MAX_TEXT_BYTES: usize = 2_000;
/// Most recipients of a mail.
pub(super) const MAX_RECIPIENTS: usize = 50;

const KINDS: [&str; 5] = ["webhook", "email", "slack", "pagerduty", "alertmanager"];

/// Reads a channel; reports every problem.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<Channel> {
    let mut known = vec!["name"];
    known.extend(KINDS);
    fields.report_unknown_fields(
        &known,
        &[],
        &[("http", "write webhook"), ("mail", "write email")],
    );
    let name = name(fields);
    let given: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    match given[..] {
        [_] => {}
        [] => fields
            .problem("webhook", format!("is missing; a channel has one of {}", KINDS.join(", "))),
        [_, second, ..] => {
            fields.problem(
                second,
                format!("is a second kind beside {}; a channel has one", given[0]),
            );
            return None;
        }
    }
    let settings = match *given.first()? {
        "webhook" => webhook(&mut fields.inside("webhook", "webhook.")?),
        "email" => email(&mut fields.inside("email", "email.")?),
        "slack" => slack(&mut fields.inside("slack", "slack.")?),
        "pagerduty" => pagerduty(&mut fields.inside("pagerduty", "pagerduty.")?),
        _ => alertmanager(&mut fields.inside("alertmanager", "alertmanager.")?),
    };
    Some(Channel { name: name?, settings: settings? })
}

fn name(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    if !fields.has("name") {
        fields.problem("name", "is missing");
    }
    let name = fields.text("name", MAX_TEXT_BYTES)?;
    if !is_channel_name(name) {
        let message = "is no name of a channel; write a lower-case letter, and up to 62 letters, digits and hyphens";
        fields.problem("name", format!("{} {message}", quoted(name)));
        return None;
    }
    Some(name.to_owned())
}

fn webhook(fields: &mut Fields<'_, '_, '_>) -> Option<ChannelSettings> {
    fields.report_unknown_fields(&["url", "secret", "allow_private"], &[], &[]);
    let url = url(fields, true);
    let secret = secret(fields, "secret", false);
    let allow_private = fields.boolean("allow_private").unwrap_or_default();
    Some(ChannelSettings::Webhook(Webhook { url: url?, secret, allow_private }))
}

fn email(fields: &mut Fields<'_, '_, '_>) -> Option<ChannelSettings> {
    fields.report_unknown_fields(&["smtp", "from", "to", "user", "password"], &[], &[]);
    let smtp = required(fields, "smtp");
    if let Some(Err(message)) = smtp.map(smtp_server) {
        fields.problem("smtp", message);
    }
    let from = required(fields, "from");
    if from.is_some_and(|from| !is_address(from)) {
        fields.problem("from", "must be a mail address such as \"Sexton <sexton@example.org>\"");
    }
    let to = recipients(fields);
    let user = fields.text("user", MAX_TEXT_BYTES);
    let password = secret(fields, "password", false);
    for (name, other) in [("user", "password"), ("password", "user")] {
        if fields.has(name) && !fields.has(other) {
            fields.problem(name, format!("is of no use without {other}"));
        }
    }
    Some(ChannelSettings::Email(Email {
        smtp: smtp?.to_owned(),
        from: from?.to_owned(),
        to,
        user: user.map(str::to_owned),
        password,
    }))
}

fn slack(fields: &mut Fields<'_, '_, '_>) -> Option<ChannelSettings> {
    fields.report_unknown_fields(&["url", "allow_private"], &[], &[]);
    let url = secret(fields, "url", true);
    let allow_private = fields.boolean("allow_private").unwrap_or_default();
    Some(ChannelSettings::Slack(Slack { url: url?, allow_private }))
}

fn pagerduty(fields: &mut Fields<'_, '_, '_>) -> Option<ChannelSettings> {
    fields.report_unknown_fields(
        &["routing_key", "url", "allow_private"],
        &[],
        &[("key", "write routing_key")],
    );
    let routing_key = secret(fields, "routing_key", true);
    let url = url(fields, false);
    let allow_private = fields.boolean("allow_private").unwrap_or_default();
    Some(ChannelSettings::Pagerduty(Pagerduty { routing_key: routing_key?, url, allow_private }))
}

fn alertmanager(fields: &mut Fields<'_, '_, '_>) -> Option<ChannelSettings> {
    fields.report_unknown_fields(&["url", "authorization", "allow_private"], &[], &[]);
    let url = url(fields, true);
    let authorization = secret(fields, "authorization", false);
    let allow_private = fields.boolean("allow_private").unwrap_or_default();
    Some(ChannelSettings::Alertmanager(Alertmanager { url: url?, authorization, allow_private }))
}

fn required<'a>(fields: &mut Fields<'a, '_, '_>, name: &str) -> Option<&'a str> {
    if !fields.has(name) {
        fields.problem(name, "is missing");
    }
    fields.text(name, MAX_TEXT_BYTES)
}

fn url(fields: &mut Fields<'_, '_, '_>, is_required: bool) -> Option<String> {
    let text =
        if is_required { required(fields, "url") } else { fields.text("url", MAX_TEXT_BYTES) }?;
    match http_url(text).map(|url: Url| url.to_string()) {
        Ok(_) => Some(text.to_owned()),
        Err(message) => {
            fields.problem("url", message);
            None
        }
    }
}

/// Reads a reference to a secret. The messages do not repeat a text, which may be the secret.
fn secret(fields: &mut Fields<'_, '_, '_>, name: &str, is_required: bool) -> Option<SecretRef> {
    let Some(value) = fields.raw(name) else {
        if is_required {
            fields.problem(name, "is missing; write { env = \"NAME\" } or { file = \"/path\" }");
        }
        return None;
    };
    match secret_reference(value.get_ref()) {
        Ok(reference) => Some(reference),
        Err(message) => {
            fields.problem(name, message);
            None
        }
    }
}

fn recipients(fields: &mut Fields<'_, '_, '_>) -> Vec<String> {
    let shape = "must be a list of mail addresses, such as [\"ops@example.org\"]";
    let Some(value) = fields.raw("to") else {
        fields.problem("to", format!("is missing; it {shape}"));
        return Vec::new();
    };
    let texts: Option<Vec<&str>> = value
        .get_ref()
        .as_array()
        .and_then(|array| array.iter().map(|one| one.get_ref().as_str()).collect());
    match texts {
        Some(texts) if texts.is_empty() => fields.problem("to", shape),
        Some(texts) if texts.len() > MAX_RECIPIENTS => {
            fields
                .problem("to", format!("has {} addresses; {MAX_RECIPIENTS} at most", texts.len()));
        }
        Some(texts) => {
            if let Some(wrong) = texts.iter().find(|text| !is_address(text)) {
                fields.problem("to", format!("{} is no mail address", quoted(wrong)));
            }
            return texts.into_iter().map(str::to_owned).collect();
        }
        None => fields.problem("to", shape),
    }
    Vec::new()
}

/// Returns whether a text is `local@domain` or `Name <local@domain>`.
fn is_address(text: &str) -> bool {
    let bare = match text.split_once('<') {
        Some((_, rest)) => rest.strip_suffix('>'),
        None => Some(text),
    };
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_graphic() && !"<>()[],;:\\\"@".contains(c);
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && part.chars().all(is_plain)
    };
    text.len() <= 500
        && !text.chars().any(|c| c.is_control() || c == ',')
        && bare
            .and_then(|bare| bare.split_once('@'))
            .is_some_and(|(local, domain)| is_part(local) && is_part(domain))
}
