//! A file of lock key ranges, in CSV or JSON.

use std::fmt::Write as _;

use sexton_model::lock_key::assignment::RangeRequest;
use sexton_model::lock_key::range::{KeyRange, MAX_RANGES};
use sexton_model::lock_key::ranges_file::{MAX_PROBLEMS, parse};

use crate::error_text;

const FILE: &str = "ranges";
/// Two texts of the input at their longest, escaped, and the words around them.
const MAX_ERROR_BYTES: usize = 2_800;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match parse(FILE, &text) {
        Ok(file) => {
            assert!(file.requests.len() <= MAX_RANGES);
            assert_eq!(file.requests.len(), file.places.len());
            assert!(file.places.is_sorted(), "the ranges are not in the order of the file");
            file.requests.iter().for_each(|request| drop(range(request)));
            written_and_read_again(&file.requests);
        }
        Err(problems) => {
            assert!((1..=MAX_PROBLEMS + 1).contains(&problems.len()));
            let lines = text.matches('\n').count() + 1;
            for problem in &problems {
                error_text::check(&problem.to_string(), MAX_ERROR_BYTES);
                assert_eq!(problem.file, FILE);
                assert!((1..=lines).contains(&problem.line) && problem.column >= 1, "{problem}");
            }
            let in_order = problems.is_sorted_by_key(|problem| (problem.line, problem.column));
            assert!(in_order, "the problems are not in the order of the file");
        }
    }
}

/// What was accepted is a range.
fn range(request: &RangeRequest) -> KeyRange {
    let (first, keys) = (request.first.expect("a start"), request.keys.expect("a number of keys"));
    KeyRange::new(&request.service, first, keys).expect("a range within the limits")
}

/// Both forms give the same ranges again.
fn written_and_read_again(requests: &[RangeRequest]) {
    let ranges: Vec<KeyRange> = requests.iter().map(range).collect();
    let json = serde_json::json!({"ranges": ranges}).to_string();
    let mut csv = "service,start,keys,end\n".to_owned();
    for range in &ranges {
        let (service, keys) = (range.service(), range.keys());
        writeln!(csv, "{service},{},{keys},{}", range.first(), range.last()).expect("a String");
    }
    for text in [json, csv] {
        let again = parse(FILE, &text).expect("as written");
        assert_eq!(again.requests, requests);
    }
}
