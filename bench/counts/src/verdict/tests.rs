use super::*;
use crate::circumstances::Circumstances;

fn counts(rustc: &str, counts: &[(&str, u64)]) -> Baseline {
    Baseline {
        made: Circumstances {
            rustc: rustc.to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            libc: "glibc 2.36".to_owned(),
            valgrind: "valgrind-3.19.0".to_owned(),
            vectors: "avx2".to_owned(),
        },
        instructions: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    }
}

#[test]
fn growth_begins_beyond_three_percent_and_ten_instructions() {
    let table = [
        (Some(10_000), 10_300, Change::Same),
        (Some(10_000), 10_301, Change::Grew),
        (Some(10_000), 9_700, Change::Same),
        (Some(10_000), 9_699, Change::Shrank),
        // Three percent of a small function are less than one instruction.
        (Some(30), 40, Change::Same),
        (Some(30), 41, Change::Grew),
        (Some(5), 0, Change::Same),
        (None, 1, Change::New),
        (Some(u64::MAX), u64::MAX, Change::Same),
    ];
    for (recorded, now, expected) in table {
        assert_eq!(judge(recorded, now), expected, "{recorded:?} and {now}");
    }
}

#[test]
fn growth_fails_with_a_remedy() {
    let recorded = counts("1", &[("a", 1_000), ("b", 1_000)]);
    let report = compare(&recorded, &counts("1", &[("a", 1_200), ("b", 1_000)]));
    assert!(report.failed);
    assert!(report.text.contains("+20.0 %  GREW"), "{}", report.text);
    assert!(report.text.contains("make counts-record"), "{}", report.text);
    assert!(!compare(&recorded, &recorded).failed);
    let cheaper = compare(&recorded, &counts("1", &[("a", 500), ("b", 1_000)]));
    assert!(!cheaper.failed && cheaper.text.contains("shrank"), "{}", cheaper.text);
}

#[test]
fn a_case_without_a_record_fails_and_so_does_a_record_without_a_case() {
    let recorded = counts("1", &[("a", 1_000)]);
    assert!(compare(&recorded, &counts("1", &[("a", 1_000), ("b", 1)])).failed);
    let gone = compare(&recorded, &counts("1", &[]));
    assert!(gone.failed && gone.text.contains("not counted any more"), "{}", gone.text);
}

#[test]
fn another_compiler_skips_the_comparison_with_a_reason() {
    let report = compare(&counts("1", &[("a", 1_000)]), &counts("2", &[("a", 2_000)]));
    assert!(!report.failed);
    assert!(report.text.contains("GREW") && report.text.contains("rustc: 1 then, 2 here"));
}
