//! `heartbeat`.

use super::{one, problems};
use crate::heartbeat::{HeartbeatEvent, HeartbeatUrl};

#[test]
fn a_heartbeat_reports_everything_unless_the_file_says_otherwise() {
    let heartbeat = one("heartbeat = { url = \"https://hc.example/ping/abc\" }").heartbeat.unwrap();
    assert_eq!(heartbeat.url, HeartbeatUrl::Plain("https://hc.example/ping/abc".to_owned()));
    assert_eq!(heartbeat.on, HeartbeatEvent::ALL);
    assert!(!heartbeat.allow_private);
    let private = "heartbeat = { url = \"http://hc/a\", on = [\"failure\"], allow_private = true }";
    let heartbeat = one(private).heartbeat.unwrap();
    assert_eq!((heartbeat.on, heartbeat.allow_private), (vec![HeartbeatEvent::Failure], true));
}

#[test]
fn a_heartbeat_that_cannot_be_sent_is_refused() {
    for (value, wanted) in [
        ("{}", "heartbeat.url: is missing"),
        ("{ url = \"ftp://hc.example\" }", "must begin with http:// or https://"),
        ("{ url = \"https://u:p@hc.example\" }", "holds a user or a password"),
        ("{ url = { env = \"https://hc.example\" } }", "holds no name of a variable"),
        ("{ url = { envv = \"A\" } }", "must be { env = \"NAME\" }"),
        ("{ url = \"https://a/b\", on = [] }", "must be a list of"),
        ("{ url = \"https://a/b\", on = [\"end\"] }", "\"end\" is none"),
        ("{ url = \"https://a/b\", on = [\"start\", \"start\"] }", "names \"start\" twice"),
        ("{ url = \"https://a/b\", method = \"GET\" }", "it is always a POST"),
        ("\"https://a/b\"", "must be a table"),
    ] {
        let text = format!("[[job]]\nname = \"a.b\"\ntask = \"t\"\nheartbeat = {value}\n");
        let found = problems(&text);
        assert!(found.len() == 1 && found[0].contains(wanted), "{value}: {found:?}");
    }
}
