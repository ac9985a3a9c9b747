//! Requests for ranges, and what is granted.

use proptest::prelude::*;

use super::*;

fn range(service: &str, first: i64, keys: u32) -> KeyRange {
    KeyRange::new(service, first, keys).unwrap()
}

fn registry(ranges: &[KeyRange], jobs: &[(&str, i64)]) -> Registry {
    let jobs = jobs.iter().map(|(job, key)| ((*job).to_owned(), Some(*key))).collect();
    Registry { ranges: ranges.to_vec(), jobs }
}

fn request(service: &str, first: Option<i64>, keys: Option<u32>) -> RangeRequest {
    RangeRequest { service: service.to_owned(), first, keys }
}

fn granted(registry: &Registry, requests: &[RangeRequest]) -> Vec<String> {
    let changes = plan(registry, requests).unwrap();
    changes.iter().map(|change| change.after.to_string()).collect()
}

fn refused(registry: &Registry, requests: &[RangeRequest]) -> Vec<(usize, String)> {
    let refusals = plan(registry, requests).unwrap_err();
    refusals.into_iter().map(|(index, refusal)| (index, refusal.to_string())).collect()
}

#[test]
fn ranges_without_a_start_follow_the_others() {
    let none = registry(&[], &[]);
    let two = [request("billing", None, None), request("shop", None, Some(120))];
    assert_eq!(granted(&none, &two), ["billing (1000 to 1049)", "shop (1050 to 1169)"]);
    let there = registry(&[range("web", 5_001, 9), range("low", -70, 3)], &[]);
    assert_eq!(granted(&there, &two), ["billing (5050 to 5099)", "shop (5100 to 5219)"]);
    // One with a start is not in the way of one without, in either order.
    let three =
        [request("a", None, Some(1)), request("b", Some(1_000), None), request("c", None, None)];
    assert_eq!(
        granted(&none, &three),
        ["a (1050 to 1050)", "b (1000 to 1049)", "c (1100 to 1149)"]
    );
}

#[test]
fn a_free_range_holds_no_key_of_another_service_s_job() {
    let keys = registry(
        &[],
        &[("web.a", 1_010), ("web.b", 1_050), ("cleanup", 1_149), ("billing.run", 1_151)],
    );
    assert_eq!(granted(&keys, &[request("billing", None, None)]), ["billing (1150 to 1199)"]);
}

#[test]
fn a_present_range_grows_and_moves_as_long_as_no_job_loses_its_key() {
    let there = registry(
        &[range("billing", 1_300, 50), range("shop", 1_400, 50)],
        &[("billing.run", 1_349), ("billing.odd", 7), ("shop.odd", 1_320)],
    );
    let one = |first, keys| [request("billing", first, keys)];
    assert_eq!(granted(&there, &one(None, Some(100))), ["billing (1300 to 1399)"]);
    assert_eq!(granted(&there, &one(Some(1_349), Some(1))), ["billing (1349 to 1349)"]);
    let unchanged = plan(&there, &one(None, None)).unwrap();
    assert!(!unchanged[0].is_change(), "{unchanged:?}");
    let text =
        "billing.run uses 1349, which billing would lose; give the job another lock_key first";
    for (first, keys) in [(None, Some(49)), (Some(5_000), None)] {
        assert_eq!(refused(&there, &one(first, keys)), [(0, text.to_owned())]);
    }
    let refusals = refused(&there, &one(None, Some(101)));
    assert!(refusals[0].1.starts_with("billing (1300 to 1400) overlaps shop (1400 to 1449)"));
}

#[test]
fn two_services_may_exchange_their_ranges() {
    let there = registry(&[range("a", 100, 50), range("b", 200, 50)], &[]);
    let exchanged = [request("a", Some(200), None), request("b", Some(100), None)];
    assert_eq!(granted(&there, &exchanged), ["a (200 to 249)", "b (100 to 149)"]);
}

#[test]
fn every_refused_request_is_reported_and_nothing_is_granted() {
    let there = registry(&[range("web", 100, 50)], &[]);
    let requests = [
        request("a.b", Some(1), None),
        request("fine", Some(1_000), None),
        request("c", Some(140), None),
        request("d", Some(1_049), Some(0)),
        request("e", Some(1_049), None),
        request("f", Some(MAX_KEY), None),
    ];
    let refusals = refused(&there, &requests);
    let places: Vec<usize> = refusals.iter().map(|(index, _)| *index).collect();
    assert_eq!(places, [0, 2, 3, 4, 5]);
    for (refusal, part) in refusals.iter().map(|(_, text)| text).zip([
        "\"a.b\" is no service",
        "c (140 to 189) overlaps web (100 to 149)",
        "0 is no number of keys",
        "e (1049 to 1098) overlaps fine (1000 to 1049)",
        "reaches beyond 2^53 - 1",
    ]) {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

#[test]
fn where_the_largest_numbers_are_taken_a_start_must_be_chosen() {
    let there = registry(&[range("web", MAX_KEY - 60, 50)], &[]);
    let refusals = refused(&there, &[request("a", None, None)]);
    assert!(refusals[0].1.contains("no 50 numbers are free"), "{refusals:?}");
    assert_eq!(granted(&there, &[request("a", Some(1), None)]), ["a (1 to 50)"]);
}

proptest! {
    /// Whatever is there and requested: what is granted shares no key, and no job has lost its own.
    #[test]
    fn no_granted_ranges_share_a_key(
        present in prop::collection::btree_map(0_u8..8, (0_i64..40, 1_u32..6), 0..6),
        keys in prop::collection::btree_set((0_u8..8, 0_i64..240), 0..12),
        wanted in prop::collection::btree_map(0_u8..8, (prop::option::of(0_i64..240), prop::option::of(1_u32..60)), 1..6),
    ) {
        let name = |number: u8| format!("s{number}");
        // Far enough from one another.
        let ranges: Vec<_> = present.iter().enumerate()
            .map(|(at, (service, (offset, keys)))| range(&name(*service), at as i64 * 50 + offset, *keys))
            .collect();
        let jobs = keys.iter().map(|(service, key)| (format!("{}.j{key}", name(*service)), Some(*key))).collect();
        let before = Registry { ranges, jobs };
        let requests: Vec<_> = wanted.iter()
            .map(|(service, (first, keys))| request(&name(*service), *first, *keys))
            .collect();
        if let Ok(changes) = plan(&before, &requests) {
            let named: HashSet<_> = changes.iter().map(|change| change.after.service()).collect();
            prop_assert_eq!(named.len(), requests.len());
            let others = before.ranges.iter().filter(|range| !named.contains(range.service()));
            let all: Vec<_> = others.chain(changes.iter().map(|change| &change.after)).collect();
            for (index, one) in all.iter().enumerate() {
                for other in &all[index + 1..] {
                    prop_assert!(!one.overlaps(other), "{one} and {other}");
                }
            }
            for change in &changes {
                let Some(old) = &change.before else { continue };
                for (job, key) in &before.jobs {
                    let key = key.unwrap();
                    if service_of(job) == Some(old.service()) && old.contains(key) {
                        prop_assert!(change.after.contains(key), "{job} has lost {key}");
                    }
                }
            }
        }
    }
}
