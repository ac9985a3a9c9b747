//! Whether a job may have a key: one of its service's range, and none of another service's.

use super::range::{KeyRange, SortedRanges, service_of};

/// Returns why a job of this name may not have this key, as a sentence to be read after the field's name; `None`: it may. A job
/// whose service has no range may have any number that is in no range.
pub fn problem(
    job: &str,
    key: i64,
    range: Option<&KeyRange>,
    ranges: &SortedRanges<'_>,
) -> Option<String> {
    if let Some(range) = range {
        return (!range.contains(key)).then(|| format!("{key} is not one of the keys of {range}"));
    }
    let of_other = ranges.of_key(key)?;
    let service = service_of(job).map_or_else(
        || "the job is named without a service".to_owned(),
        |service| format!("{service} has no range"),
    );
    Some(format!("{key} is one of the keys of {of_other}, and {service}"))
}

/// Returns what to do about a key that cannot be taken: the next free one of the service's range, or a range.
pub fn remedy(job: &str, next: Option<(&KeyRange, Option<i64>)>) -> String {
    match (next, service_of(job)) {
        (Some((_, Some(next))), _) => format!("the next free one is {next}"),
        (Some((range, None)), _) => format!(
            "all {} are taken: `sexton keys assign {} --keys {}` makes the range longer",
            range.keys(),
            range.service(),
            range.keys().saturating_mul(2)
        ),
        (None, Some(service)) => {
            format!("`sexton keys assign {service}` gives {service} a range of its own")
        }
        (None, None) => "name the job <service>.<jobName>, or take another number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_the_service_s_range_and_of_no_other() {
        let range = |service, first| KeyRange::new(service, first, 50).unwrap();
        let all = [range("billing", 1300), range("shop", 1350)];
        let sorted = SortedRanges::new(&all);
        let judge = |job: &str, key| {
            let range = all.iter().find(|range| Some(range.service()) == service_of(job));
            problem(job, key, range, &sorted)
        };
        for (job, key) in [("billing.run", 1300), ("shop.a.b", 1399), ("web.run", 7), ("run", 7)] {
            assert_eq!(judge(job, key), None, "{job} {key}");
        }
        for (job, key, why) in [
            ("billing.run", 1350, "1350 is not one of the keys of billing (1300 to 1349)"),
            ("billing.run", 7, "7 is not one of the keys of billing (1300 to 1349)"),
            (
                "web.run",
                1399,
                "1399 is one of the keys of shop (1350 to 1399), and web has no range",
            ),
            (
                "run",
                1300,
                "1300 is one of the keys of billing (1300 to 1349), and the job is named without a service",
            ),
        ] {
            assert_eq!(judge(job, key).as_deref(), Some(why));
        }
    }
}
