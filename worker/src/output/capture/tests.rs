//! Goal: every byte of output is accounted for, and no output breaks a bound or the store. Method: properties
//! over random output in random pieces, and corner cases by name.

use proptest::prelude::*;

use super::*;

const SMALL: OutputLimits = OutputLimits { part_bytes: 64, part_lines: 5, line_bytes: 16 };

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn capture(limits: OutputLimits, pieces: &[&[u8]]) -> Output {
    let mut capture = Capture::new(limits);
    for (second, piece) in pieces.iter().enumerate() {
        capture.push(Stream::Stdout, at(second as i64), piece);
    }
    capture.finish()
}

fn texts(output: &Output) -> Vec<&str> {
    output.lines.iter().map(|line| line.text.as_str()).collect()
}

proptest! {
    // Lines no longer than the limit, all of them ended: a kept line accounts for its text and one more byte.
    #[test]
    fn head_tail_and_dropped_are_all_bytes(
        lines in prop::collection::vec("[a-zäß€]{0,5}", 0..60),
        cut in 1usize..50,
    ) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let pieces: Vec<_> = text.as_bytes().chunks(cut).collect();
        let output = capture(SMALL, &pieces);
        let kept_bytes: usize = output.lines.iter().map(|line| line.text.len() + 1).sum();
        prop_assert_eq!(kept_bytes as u64 + output.dropped_bytes, text.len() as u64);
        prop_assert_eq!(output.lines.len() as u64 + output.dropped_lines, lines.len() as u64);
        let tail_lines = output.lines.len() - output.head_lines;
        prop_assert_eq!(&texts(&output)[..output.head_lines], &lines[..output.head_lines]);
        prop_assert_eq!(&texts(&output)[output.head_lines..], &lines[lines.len() - tail_lines..]);
    }

    #[test]
    fn any_bytes_stay_within_the_bounds_and_are_storable(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 0..30),
    ) {
        let mut capture = Capture::new(SMALL);
        for (error, bytes) in &pieces {
            let stream = if *error { Stream::Stderr } else { Stream::Stdout };
            capture.push(stream, at(0), bytes);
        }
        let output = capture.finish();
        prop_assert!(output.lines.len() <= 2 * SMALL.part_lines);
        let kept_bytes: usize = output.lines.iter().map(|line| line.text.len()).sum();
        prop_assert!(kept_bytes <= 2 * SMALL.part_bytes);
        prop_assert!(output.lines.iter().all(|line| !line.text.contains(['\0', '\n'])));
        let written: usize = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        prop_assert!(output.dropped_bytes <= written as u64);
        let json = serde_json::to_string(&output).unwrap();
        prop_assert_eq!(serde_json::from_str::<Output>(&json).unwrap(), output);
    }

    #[test]
    fn the_pieces_in_which_output_is_read_change_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 1usize..40,
    ) {
        let pieces: Vec<_> = bytes.chunks(cut).collect();
        let mut whole = Capture::new(SMALL);
        whole.push(Stream::Stdout, at(0), &bytes);
        let (whole, cut) = (whole.finish(), capture(SMALL, &pieces));
        prop_assert_eq!(texts(&whole), texts(&cut));
        prop_assert_eq!(whole.dropped_bytes, cut.dropped_bytes);
    }
}

#[test]
fn a_long_line_is_split_between_characters() {
    let output = capture(SMALL, &["aaaaaaaaaaaaaaa€bb\n".as_bytes()]);
    assert_eq!(texts(&output), ["aaaaaaaaaaaaaaa", "€bb"]);
    assert_eq!(output.dropped_bytes, 0);
}

#[test]
fn a_line_of_exactly_the_limit_is_one_line() {
    let output = capture(SMALL, &[b"0123456789abcdef", b"\nnext\n"]);
    assert_eq!(texts(&output), ["0123456789abcdef", "next"]);
}

#[test]
fn what_jsonb_cannot_hold_is_replaced() {
    let output = capture(SMALL, &[b"a\0b\xff\r\n"]);
    assert_eq!(texts(&output), ["a\u{FFFD}b\u{FFFD}"]);
}

#[test]
fn a_line_bears_its_stream_and_the_time_of_its_first_byte() {
    let mut capture = Capture::new(SMALL);
    capture.push(Stream::Stdout, at(1), b"slow ");
    capture.push(Stream::Stderr, at(2), b"error\n");
    capture.push(Stream::Stdout, at(3), b"line\n");
    capture.push(Stream::Stdout, at(4), b"no end");
    let lines = capture.finish().lines;
    let seen: Vec<_> =
        lines.iter().map(|line| (line.at.timestamp(), line.stream, line.text.as_str())).collect();
    assert_eq!(
        seen,
        [
            (2, Stream::Stderr, "error"),
            (1, Stream::Stdout, "slow line"),
            (4, Stream::Stdout, "no end")
        ]
    );
}
