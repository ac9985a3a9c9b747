//! Goal: every value is masked, in whatever pieces it arrives. Method: properties over random texts that hold
//! values, in random pieces; cases that must stay unmasked by name.

use proptest::prelude::*;

use super::*;

fn masked(values: &[&str], pieces: &[&[u8]]) -> String {
    let values: Vec<Vec<u8>> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    let values = Values::new(&values).expect("there is something to mask");
    let (mut held, mut out) = (Vec::new(), Vec::new());
    for piece in pieces {
        values.pass(&mut held, piece, &mut out);
    }
    Values::finish(&mut held, &mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn no_value_gets_through_in_whatever_pieces_it_is_read(
        parts in prop::collection::vec("[ab\n]{0,6}|abba|aabbaa|s3cret\nkey", 0..30),
        cut in 1usize..9,
    ) {
        let text = parts.concat();
        let pieces: Vec<_> = text.as_bytes().chunks(cut).collect();
        let values = ["abba", "aabbaa", "s3cret\nkey"];
        let out = masked(&values, &pieces);
        for value in values {
            prop_assert!(!out.contains(value), "{:?} in {:?}", value, out);
        }
        // Text after the last possible beginning of a value gives the same result in any pieces.
        prop_assert_eq!(out, masked(&values, &[text.as_bytes()]));
    }

    #[test]
    fn what_holds_no_value_is_left_as_it_is(text in "[c-z \n]{0,80}", cut in 1usize..9) {
        let pieces: Vec<_> = text.as_bytes().chunks(cut).collect();
        prop_assert_eq!(masked(&["abba", "1234\n5678"], &pieces), text);
    }
}

#[test]
fn a_value_cut_anywhere_is_masked() {
    let value = "s3cret-token";
    for at in 1..value.len() {
        let (first, second) = value.as_bytes().split_at(at);
        assert_eq!(masked(&[value], &[b"key=", first, second, b"\n"]), "key=***\n", "cut at {at}");
    }
}

#[test]
fn only_what_may_be_the_beginning_of_a_value_is_held_back() {
    let values = Values::new(&[b"s3cret-token".to_vec()]).unwrap();
    let (mut held, mut out) = (Vec::new(), Vec::new());
    values.pass(&mut held, b"working\n", &mut out);
    assert_eq!((out.as_slice(), held.len()), (&b"working\n"[..], 0));
    values.pass(&mut held, b"with s3cr", &mut out);
    assert_eq!((out.as_slice(), held.as_slice()), (&b"working\nwith "[..], &b"s3cr"[..]));
    values.pass(&mut held, b"eam\n", &mut out);
    assert_eq!((out.as_slice(), held.len()), (&b"working\nwith s3cream\n"[..], 0));
}

#[test]
fn a_value_is_known_as_it_stands_as_json_and_by_each_of_its_lines() {
    let value = "-----BEGIN KEY-----\nMIIB\"x\n";
    assert_eq!(masked(&[value], &[value.trim_end().as_bytes()]), "***");
    assert_eq!(masked(&[value], &[b"| -----BEGIN KEY-----\n| MIIB\"x"]), "| ***\n| ***");
    let indented = "key:\n    first line\n    second\n";
    assert_eq!(masked(&[indented], &[b"first line|second"]), "***|***");
    let json = serde_json::to_string(value.trim_end()).unwrap();
    assert_eq!(masked(&[value], &[json.as_bytes()]), "\"***\"");
}

#[test]
fn the_beginning_of_a_value_is_not_told_by_a_task_that_dies_over_it() {
    assert_eq!(masked(&["s3cret-token"], &[b"key=s3cret"]), "key=***");
    assert_eq!(masked(&["s3cret-token"], &[b"in 3 s"]), "in 3 s");
}

#[test]
fn a_value_longer_than_any_line_is_masked_by_its_parts() {
    let value = "0123456789abcdef".repeat(1024);
    let out = masked(&[&value], &[value.as_bytes()]);
    assert!(!out.contains("0123"), "{out}");
}

#[test]
fn what_is_too_short_to_mean_anything_is_not_masked() {
    assert!(Values::new(&[b"a".to_vec(), b"on\n".to_vec(), Vec::new()]).is_none());
}

#[test]
fn a_message_is_masked_by_values_and_by_the_pattern() {
    let values = Values::new(&[b"hunter22".to_vec()]).unwrap();
    let pattern = Regex::new("[0-9]{4}-[0-9]{4}|x*").unwrap();
    let masked_text = message(Some(&values), Some(&pattern), "hunter22 paid with 1234-5678, äh");
    assert_eq!(masked_text, "*** paid with ***, äh");
    assert_eq!(message(None, None, "as it is"), "as it is");
}

#[test]
fn a_long_value_is_looked_for_in_little_memory() {
    // Any byte may follow any other.
    let value: Vec<u8> = (0..MAX_VALUE_BYTES).map(|at| (at * at % 251) as u8 | 1).collect();
    let values = Values::new(&[value]).unwrap();
    let bytes = values.finder.memory_usage();
    assert!(bytes < 64 * MAX_VALUE_BYTES, "{bytes}");
}
