//! Goal: no message is misread. Method: every message survives a round trip through its text; damaged lines are
//! refused; lines arrive whole however the socket splits them.

use proptest::prelude::*;

use super::*;

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        any::<u64>().prop_map(|ns| Order::Deadline(HostInstant::from_nanos(ns))),
        Just(Order::Term),
        Just(Order::Kill),
    ]
}

fn reports() -> impl Strategy<Value = Report> {
    let stopped = prop_oneof![
        Just(StoppedBy::Nobody),
        Just(StoppedBy::Worker),
        Just(StoppedBy::Lease),
        Just(StoppedBy::Memory),
        Just(StoppedBy::Kernel),
    ];
    let status = prop_oneof![
        any::<i32>().prop_map(Status::Exited),
        any::<i32>().prop_map(Status::Signalled)
    ];
    let why = prop_oneof![
        Just(StartRefusal::Lease),
        Just(StartRefusal::Retry),
        Just(StartRefusal::Permanent)
    ];
    prop_oneof![
        (2..i32::MAX).prop_map(|pid| Report::Started { pid }),
        (status, stopped, any::<bool>(), any::<bool>()).prop_map(
            |(status, stopped, untouched, retires)| Report::Ended {
                status,
                stopped,
                untouched,
                retires
            }
        ),
        (why, "[a-z /:ü]{0,80}").prop_map(|(why, text)| Report::Refused { why, text }),
    ]
}

proptest! {
    #[test]
    fn every_message_comes_back_from_its_text(order in orders(), report in reports()) {
        prop_assert_eq!(Order::parse(&order.to_string()), Some(order));
        prop_assert_eq!(Report::parse(&report.to_string()), Some(report));
    }

    #[test]
    fn lines_survive_any_cut(lines in prop::collection::vec("[a-z 0-9]{0,30}", 0..20), cut in 1usize..40) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let (mut buffer, mut got) = (LineBuffer::default(), Vec::new());
        for piece in text.as_bytes().chunks(cut) {
            prop_assert!(buffer.push(piece));
            while let Some(line) = buffer.next_line() {
                got.push(line);
            }
        }
        prop_assert_eq!(got, lines);
    }

    #[test]
    fn no_line_makes_the_readers_panic(line in ".{0,60}") {
        let _ = (Start::parse(&line), Order::parse(&line), Report::parse(&line));
    }
}

#[test]
fn a_start_comes_back_and_its_params_are_bounded() {
    let deadline = HostInstant::from_nanos(77);
    let (limits, grace) = (TaskLimits::default(), Duration::from_secs(5));
    let start = Start { setup_bytes: 9, stdin_bytes: 12, deadline, grace, limits, user: None };
    assert_eq!(start.to_string(), "start 9 12 77 5000");
    let limits = TaskLimits {
        memory: Some(1024),
        cpu_time: Some(Duration::from_millis(1500)),
        open_files: Some(64),
    };
    let full = Start { limits, user: Some((900, 901)), ..start.clone() };
    let line = "start 9 12 77 5000 memory=1024 cpu_ms=1500 files=64 user=900:901";
    assert_eq!(full.to_string(), line);
    assert_eq!(Start::parse(line), Some(full));
    for wrong in ["memory", "memory=x", "user=1", "speed=1"] {
        assert_eq!(Start::parse(&format!("start 9 12 77 5000 {wrong}")), None, "{wrong}");
    }
    assert_eq!(Start::parse(&start.to_string()), Some(start.clone()));
    let greedy = Start { stdin_bytes: STDIN_MAX_BYTES + 1, ..start };
    assert_eq!(Start::parse(&greedy.to_string()), None);
    let greedy = Start { setup_bytes: SETUP_MAX_BYTES + 1, stdin_bytes: 0, ..greedy };
    assert_eq!(Start::parse(&greedy.to_string()), None);
}

#[test]
fn damaged_lines_are_refused() {
    for line in ["", "start", "start 1 2 3", "start 1 2 3 4 5", "start 1 -1 2 3"] {
        assert_eq!(Start::parse(line), None, "{line:?}");
    }
    for line in ["", "TERM", "deadline", "deadline x", "term now"] {
        assert_eq!(Order::parse(line), None, "{line:?}");
    }
    // A pid of 1 or less would turn a kill of the group into a kill of everything.
    for line in [
        "started 1",
        "started 0",
        "started -5",
        "exited 0",
        "exited 0 maybe",
        "exited 0 no later",
        "left 0 no",
    ] {
        assert_eq!(Report::parse(line), None, "{line:?}");
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let mut buffer = LineBuffer::default();
    assert!(buffer.push(&[b'x'; LINE_MAX_BYTES]));
    assert!(!buffer.push(b"x"));
}

#[test]
fn a_refusal_stays_one_line() {
    let report = Report::Refused { why: StartRefusal::Retry, text: "no\nroom".to_owned() };
    assert_eq!(report.to_string(), "refused retry noroom");
}
