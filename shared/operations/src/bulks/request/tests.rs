//! What a preview shows of a change since another one.

use super::*;

#[test]
fn a_selection_that_is_counted_to_no_end_has_grown_if_its_operator_has_seen_one() {
    let preview = |count, more| {
        let counts = Preview { count, more, ..Preview::default() };
        BulkPreview { counts, targets: Targets::Ids(Vec::new()) }
    };
    assert!(preview(3, false).has_grown(2, false));
    assert!(!preview(2, false).has_grown(2, false) && !preview(1, false).has_grown(2, false));
    assert!(preview(100_000, true).has_grown(100_000, false));
    assert!(!preview(100_000, true).has_grown(100_000, true), "nobody can see it");
    assert!(!preview(99_999, false).has_grown(100_000, true));
}
