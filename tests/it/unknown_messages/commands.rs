//! `sexton unknown`: what it shows, writes and refuses.

use lapin::BasicProperties;
use serde_json::{Value, json};

use super::Stage;

#[tokio::test]
async fn a_message_is_shown_as_text_and_in_hexadecimal_digits_and_sends_nothing_to_the_terminal() {
    let stage = Stage::new().await;
    let body = b"\x1b[31mred \xff\x00 {\"type\":";
    let properties = BasicProperties::default().with_message_id("\u{1b}[2J".into());
    stage.put(body, properties).await;
    stage.pass().await;
    let id = stage.id().await;
    let shown = stage.command(&["show", &id[..8]]).await;
    assert!(shown.status.success(), "{shown}");
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout.escape_debug());
    assert!(shown.stdout.contains("\\u{1b}[31mred"), "{shown}");
    assert!(shown.stdout.contains("00000000  1b 5b 33 31 6d 72 65 64"), "{shown}");
    let shown = stage.platform.sexton_json(&["unknown", "show", &id]).await;
    assert_eq!(shown["body_hex"].as_str().unwrap().len(), body.len() * 2);
    assert_eq!(shown["body_text"], Value::Null, "it is no UTF-8");
    assert_eq!(shown["properties"], json!({"message_id": "\u{1b}[2J"}));
}

#[tokio::test]
async fn secrets_of_a_json_body_are_shown_only_on_request() {
    let stage = Stage::new().await;
    let body = br#"{"type":"report","params":{"customer":7,"api_key":"geheim"}}"#;
    stage.put(body, BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let shown = stage.command(&["show", &id]).await;
    assert!(shown.stdout.contains(r#""customer":7"#), "{shown}");
    assert!(shown.stdout.contains(r#""api_key":"***""#), "{shown}");
    // Neither as text, nor at the side of the digits, nor in them.
    let whole = format!("{shown}");
    assert!(!whole.contains("geheim") && !whole.contains("67 65 68"), "{shown}");
    assert!(shown.stdout.contains("--unmasked"), "{shown}");
    let document = stage.platform.sexton_json(&["unknown", "show", &id]).await;
    assert_eq!((&document["masked"], &document["body_hex"]), (&json!(true), &Value::Null));
    assert!(!document.to_string().contains("geheim"), "{document}");
    let shown = stage.command(&["show", &id, "--unmasked"]).await;
    assert!(shown.stdout.contains("geheim") && shown.stdout.contains("00000000  7b"), "{shown}");
    let file = stage.platform.folder().join("raw");
    let to = file.to_str().unwrap();
    assert!(stage.command(&["export", &id, "--to", to]).await.status.success());
    assert_eq!(std::fs::read(&file).unwrap(), body, "an export is exact");
}

#[tokio::test]
async fn an_export_is_byte_for_byte_and_overwrites_nothing() {
    let stage = Stage::new().await;
    let body: Vec<u8> = (0..=255).rev().collect();
    stage.put(&body, BasicProperties::default().with_type("report".into())).await;
    stage.pass().await;
    let id = stage.id().await;
    let file = stage.platform.folder().join("raw");
    let to = file.to_str().unwrap();
    let done = stage.command(&["export", &id, "--to", to]).await;
    assert!(done.status.success(), "{done}");
    assert_eq!(std::fs::read(&file).unwrap(), body);
    let beside = std::fs::read_to_string(file.with_extension("json")).unwrap();
    let beside: Value = serde_json::from_str(&beside).unwrap();
    assert_eq!(beside["properties"], json!({"type": "report"}));
    assert_eq!(beside["body_bytes"], 256);
    let again = stage.command(&["export", &id, "--to", to]).await;
    assert_eq!(again.status.code(), Some(1), "{again}");
    assert!(again.stderr.contains("exists"), "{again}");
    assert_eq!(stage.ready().await, 1, "an export takes nothing");
}

#[tokio::test]
async fn a_refused_command_gives_the_reason_and_a_remedy() {
    let stage = Stage::new().await;
    let none = stage.command(&["list"]).await;
    assert!(none.stdout.contains("No unknown messages"), "{none}");
    for (args, status, message) in [
        (vec!["show", "xyz!"], 2, "64 hexadecimal digits"),
        (vec!["show", "abc"], 2, "at least 4"),
        (vec!["show", "abcdef"], 3, "unknown list --all"),
        (vec!["discard", "abcdef", "--reason", "x", "--yes"], 3, "unknown list --all"),
        (vec!["discard", "abcdef"], 2, "--reason"),
        (vec!["restore", "abcdef"], 3, "unknown list --all"),
    ] {
        let refused = stage.command(&args).await;
        assert_eq!(refused.status.code(), Some(status), "{args:?}: {refused}");
        assert!(refused.stderr.contains(message), "{args:?}: {refused}");
    }
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let unasked = stage.command(&["discard", &id, "--reason", "x"]).await;
    assert_eq!(unasked.status.code(), Some(7), "nobody is there to be asked: {unasked}");
    let early = stage.command(&["restore", &id]).await;
    assert_eq!(early.status.code(), Some(4), "{early}");
    stage.discard(&id).await;
    let twice = stage.command(&["discard", &id, "--reason", "x", "--yes"]).await;
    assert_eq!(twice.status.code(), Some(4), "{twice}");
    assert!(twice.stderr.contains("was discarded before"), "{twice}");
    stage.pass().await;
    let gone = stage.command(&["discard", &id, "--reason", "x", "--yes"]).await;
    assert!(gone.stderr.contains("not in the failed queue any more"), "{gone}");
    assert_eq!(stage.count_actions("discard_raw").await, 1, "only what was done is recorded");
}

#[tokio::test]
async fn one_of_two_operators_discards_the_same_message() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let args = ["discard", &id, "--reason", "x", "--yes"];
    let (one, other) = tokio::join!(stage.command(&args), stage.command(&args));
    let mut codes = [one.status.code(), other.status.code()];
    codes.sort();
    assert_eq!(codes, [Some(0), Some(4)], "{one}\n{other}");
    assert_eq!(stage.count_actions("discard_raw").await, 1);
}

#[tokio::test]
async fn a_list_continues_after_the_previous_page() {
    let stage = Stage::new().await;
    for number in 0..5 {
        stage.put(format!("rubbish {number}").as_bytes(), BasicProperties::default()).await;
    }
    stage.pass().await;
    let all: Vec<Value> = stage.listed(&[]).await;
    assert_eq!(all.len(), 5);
    let mut paged = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = vec!["unknown", "list", "--limit", "2"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let mut page = stage.platform.sexton_json(&args).await;
        paged.extend(page["items"].take().as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = Some(next.to_owned());
    }
    assert_eq!(paged, all);
}
