use proptest::prelude::*;

use super::*;

#[test]
fn what_changes_from_run_to_run_becomes_a_placeholder() {
    for (message, expected) in [
        ("exit code 1: card 4891 declined", "exit code <n>: card <n> declined"),
        ("took 12.5s, limit 10s", "took <n>s, limit <n>s"),
        ("took 1,250 ms at -3 °C", "took <n> ms at <n> °C"),
        ("order 018f2c6e-7b1a-7c3d-9e4f-0123456789ab is gone", "order <n> is gone"),
        ("commit 3f2a77c1 and 30000000", "commit <n> and <n>"),
        ("worker3 lost x86_64 sha1", "worker<n> lost x<n>_<n> sha<n>"),
        ("key a1b2c3xyz9 is unknown", "key <n> is unknown"),
        ("connection to 10.0.0.7:5432 refused", "connection to <addr> refused"),
        ("connection to db-3.internal:5432 refused", "connection to <addr> refused"),
        ("no route to fe80::1 or [2001:db8::7]:80", "no route to <addr> or [<addr>]:<n>"),
        ("mail to ann.b+c@example.org bounced", "mail to <email> bounced"),
        ("GET https://shop.example/a?b=1, status 502.", "GET <url>, status <n>."),
        ("cannot open /var/lib/x-7/a.csv: no such file", "cannot open <path>: no such file"),
        ("cannot open C:\\data\\x.csv (code=5)", "cannot open <path> (code=<n>)"),
        ("KeyError: 'customer' in \"a b\"", "KeyError: <quoted> in <quoted>"),
        ("don't: can't 'say so'", "don't: can't <quoted>"),
        ("read/write and and/or stay", "read/write and and/or stay"),
        ("main.py:42 said std::io::Error", "main.py:<n> said std::io::Error"),
        ("at 2026-01-01T12:30:45.123Z", "at <n>-<n>-<n>T<n>:<n>:<n>Z"),
        ("\n  \n first\tline \u{1b}[31m\nsecond", "first line [<n>m"),
        ("", ""),
    ] {
        assert_eq!(pattern(message), expected, "{message:?}");
    }
}

#[test]
fn fingerprints_are_the_same_in_every_release() {
    for (class, message, expected) in [
        ("exit_1", "exit code 1: card 4891 declined", "6694795ad7726a48"),
        ("lost", "the worker was not heard of again before the lease ran out", "9083a86187914060"),
        ("", "", "4f2db50f124040cd"),
    ] {
        assert_eq!(fingerprint(class, message).to_string(), expected, "{class} {message}");
    }
}

#[test]
fn a_fingerprint_is_read_as_it_is_written() {
    let one = fingerprint("a", "b");
    assert_eq!(one.to_string().parse(), Ok(one));
    assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{one}\""));
    for text in ["", "abc", "+123456789abcdef", "00000000000000000", "g000000000000000"] {
        assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
    }
}

#[test]
fn a_long_message_is_read_in_part_and_its_pattern_is_bounded() {
    let line = "a 'b ".repeat(100_000);
    assert!(pattern(&line).chars().count() <= MAX_PATTERN_CHARS);
    let quoted = format!("cannot read '{}' here", "x".repeat(2_000));
    assert_eq!(pattern(&quoted), "cannot read <quoted> here");
    let same = fingerprint("a", &line);
    assert_eq!(fingerprint("a", &format!("{line}more")), same);
}

/// Two values of a changing part of a message.
fn changing() -> impl Strategy<Value = (String, String)> {
    let of = |pattern: &'static str| (pattern, pattern).prop_map(|pair: (String, String)| pair);
    prop_oneof![
        of("[0-9]{1,18}"),
        of("[0-9]{1,6}\\.[0-9]{1,6}"),
        of("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        of("[a-f]{3}[0-9]{2}[a-f]{5,20}"),
        of("/[a-z]{1,8}(/[a-z0-9._-]{1,8}[a-z]){0,4}"),
        of("[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(:[0-9]{1,5})?"),
        of("[a-z]{1,9}[0-9]?\\.example:[0-9]{2,5}"),
        of("[a-z][a-z0-9.]{0,9}@[a-z]{1,9}\\.org"),
        of("https?://[a-z]{1,9}(/[a-z0-9?=&%-]{0,9}[a-z0-9]){0,3}"),
        of("'[a-z0-9 /.]{0,20}'"),
        of("\"[^\"\\n\\r]{0,20}\""),
    ]
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[A-Za-z]{1,9}", 1..6)
}

proptest! {
    #[test]
    fn numbers_ids_paths_addresses_and_quoted_parts_never_change_it(
        words in words(), parts in prop::collection::vec(changing(), 1..5),
        before in "(|: |, |\\(|=|; )", class in "[a-z_]{1,10}",
    ) {
        let joined = |variant: fn(&(String, String)) -> &String| {
            let parts: Vec<&str> = parts.iter().map(|part| variant(part).as_str()).collect();
            let mut text = words.join(" ");
            for part in parts {
                text.push_str(if before.is_empty() { " " } else { &before });
                text.push_str(part);
            }
            text + " again"
        };
        let (one, other) = (joined(|pair| &pair.0), joined(|pair| &pair.1));
        prop_assert_eq!(pattern(&one), pattern(&other));
        prop_assert_eq!(fingerprint(&class, &one), fingerprint(&class, &other));
    }

    #[test]
    fn a_patterns_pattern_is_itself(text in "\\PC{0,300}") {
        let once = pattern(&text);
        prop_assert!(once.chars().count() <= MAX_PATTERN_CHARS);
        prop_assert_eq!(pattern(&once), once);
    }

    #[test]
    fn a_patterns_pattern_is_itself_for_what_looks_like_something(
        text in "[a-c0-2'\"`:/.@<>n \\-_,(\\[]{0,60}",
    ) {
        let once = pattern(&text);
        prop_assert_eq!(pattern(&once), once);
    }

    #[test]
    fn other_words_and_other_classes_give_other_fingerprints(
        one in words(), other in words(), class in "[a-z_]{1,10}", another in "[a-z_]{1,10}",
    ) {
        let (a, b) = (one.join(" "), other.join(" "));
        prop_assert_eq!(a == b, fingerprint(&class, &a) == fingerprint(&class, &b));
        let same = fingerprint(&class, &a) == fingerprint(&another, &a);
        prop_assert_eq!(class == another, same);
    }

    #[test]
    fn any_bytes_have_a_fingerprint(bytes in prop::collection::vec(any::<u8>(), 0..1_000)) {
        let text = String::from_utf8_lossy(&bytes);
        let once = pattern(&text);
        prop_assert!(!once.chars().any(char::is_control));
        fingerprint(&text, &text);
    }
}
