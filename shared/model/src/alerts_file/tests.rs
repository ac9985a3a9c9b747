//! Goal: a file is read whole or refused with every problem and its place, and no secret ever stands in it.

use std::time::Duration;

use super::*;
use crate::channel::ChannelKind;
use crate::incident::Severity;

const WHOLE: &str = r#"
[[channel]]
name = "ops"
webhook = { url = "https://hooks.example/ops", secret = { env = "OPS_HOOK_SECRET" }, allow_private = true }

[[channel]]
name = "mail"
email = { smtp = "smtps://mail.example:465", from = "Sexton <sexton@example.org>", to = ["ops@example.org", "b@c.d"], user = "u", password = { file = "/run/secrets/mail" } }

[[channel]]
name = "chat"
slack = { url = { env = "SLACK_URL" } }

[[channel]]
name = "pager"
pagerduty = { routing_key = { env = "PD_KEY" } }

[[channel]]
name = "am"
alertmanager = { url = "http://alertmanager:9093", allow_private = true, authorization = { env = "AM_AUTH" } }

[[route]]
channels = ["chat"]

[[route]]
labels = { team = "billing \"one\"", "user.id" = "7" }
severity = ["high", "low"]
channels = ["ops", "mail"]
escalate = { after = "15m", channels = ["pager", "am"] }
"#;

fn problems(text: &str) -> String {
    let problems = parse("alerts.toml", text).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_whole_file_is_read_in_its_order_and_written_again() {
    let file = parse("alerts.toml", WHOLE).unwrap();
    let kinds: Vec<ChannelKind> = file.channels.iter().map(|one| one.settings.kind()).collect();
    assert_eq!(
        kinds,
        [
            ChannelKind::Webhook,
            ChannelKind::Email,
            ChannelKind::Slack,
            ChannelKind::Pagerduty,
            ChannelKind::Alertmanager
        ]
    );
    assert_eq!(file.routes[0], Route { channels: vec!["chat".into()], ..Route::default() });
    let second = &file.routes[1];
    assert_eq!(second.severities, [Severity::High, Severity::Low]);
    assert_eq!(second.escalation.as_ref().unwrap().after, Duration::from_mins(15));
    assert_eq!(parse("again", &file.to_toml()).unwrap(), file);
}

#[test]
fn stored_settings_are_read_as_they_were_and_hold_references_alone() {
    for channel in parse("alerts.toml", WHOLE).unwrap().channels {
        let config = channel.settings.config();
        let read = crate::channel::ChannelSettings::read(channel.settings.kind(), config.clone());
        assert_eq!(read.unwrap(), channel.settings);
        assert!(config.get("kind").is_none(), "{config}");
    }
}

#[test]
fn all_problems_are_reported_at_once_with_their_places() {
    let text = r#"
[[channel]]
name = "Ops"
webhook = { url = "ftp://x", secret = "hunter2", retries = 3 }
[[channel]]
name = "two"
slack = { url = "https://hooks.slack.example/hunter2" }
pagerduty = { routing_key = { env = "K" } }
[[channel]]
name = "chat"
slack = { url = "https://hooks.slack.example/hunter2" }
[[channel]]
name = "chat"
emial = {}
[[channel]]
name = "mail"
email = { smtp = "http://x", from = "nobody", to = ["a@b, c@d"], user = "u" }
[[channel]]
name = "file"
alertmanager = { url = "http://a", authorization = { file = "relative" } }
[[route]]
channels = ["chta"]
severity = ["urgent"]
[[route]]
labels = { team = 7, "$serde_json::private::RawValue" = "x" }
escalate = { after = "5w", channels = [] }
[[routes]]
"#;
    let text = problems(text);
    assert!(!text.contains("hunter2"), "{text}");
    for expected in [
        "alerts.toml:3: channel \"Ops\": name: \"Ops\" is no name of a channel",
        "alerts.toml:4: channel \"Ops\": webhook.url: must begin with http:// or https://",
        "alerts.toml:4: channel \"Ops\": webhook.secret: is a secret, which must not stand in the file",
        "alerts.toml:4: channel \"Ops\": webhook.retries: is not a field",
        "channel \"two\": pagerduty: is a second kind beside slack",
        "alerts.toml:11: channel \"chat\": slack.url: is a secret, which must not stand",
        "alerts.toml:13: channel \"chat\": name: this name is already used by the channel in line 10",
        "emial: is not a field; did you mean \"email\"?",
        "email.smtp: must be smtp://host:587",
        "email.from: must be a mail address",
        "email.to: \"a@b, c@d\" is no mail address",
        "email.user: is of no use without password",
        "alertmanager.authorization: holds no absolute path",
        "route 1: channels: \"chta\" is no channel of this file; did you mean \"chat\"?",
        "route 1: severity: \"urgent\" is not known",
        "route 2: labels.team: must be text in quotes, not a whole number",
        "no program could read this name again",
        "route 2: channels: is missing",
        "route 2: escalate.after: unit \"w\" is not known",
        "route 2: escalate.channels: has 0 entries",
        "routes: is not a field; write [[route]]",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
}

#[test]
fn more_than_the_limits_is_refused_and_a_file_without_anything_is_not() {
    assert_eq!(parse("alerts.toml", "").unwrap(), AlertsFile::default());
    let channel =
        |n: usize| format!("[[channel]]\nname = \"c{n}\"\nslack = {{ url = {{ env = \"S\" }} }}\n");
    let many: String = (0..=MAX_CHANNELS).map(channel).collect();
    assert!(problems(&many).contains("the file has 101 channels; 100 at most"));
    let routes = "[[route]]\nchannels = [\"c1\"]\n".repeat(MAX_ROUTES + 1);
    assert!(problems(&(channel(1) + &routes)).contains("the file has 201 routes; 200 at most"));
    assert!(problems(&" ".repeat(MAX_FILE_BYTES + 1)).contains("bytes; 1048576 at most"));
    assert!(problems("[[channel]\n").contains("alerts.toml:1: column"));
    assert!(
        problems("channel = 7\nroute = [7]").contains("route: is a whole number; write [[route]]")
    );
}
