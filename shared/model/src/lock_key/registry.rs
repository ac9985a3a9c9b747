//! What is wrong with the ranges and keys of a platform, and where two platforms differ.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Serialize;

use super::MAX_KEY;
use super::job_key;
use super::range::{KeyRange, SortedRanges, service_of};
use crate::quoting::plain;
use crate::text_enum::text_enum;

/// The ranges of a platform, and its jobs with their keys. Deleted jobs are not in it, nor those that Sexton creates itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registry {
    /// The ranges; no two of them overlap or are of one service.
    pub ranges: Vec<KeyRange>,
    /// Each job's name and key, by name.
    pub jobs: Vec<(String, Option<i64>)>,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LockKeyFindingCode, rename_all = "snake_case"))]
pub enum Code {
    /// A job's name is not `<service>.<jobName>`.
    Name,
    /// A job has no key, and its service has a range.
    NoKey,
    /// A job's key is not one of its service's range.
    Outside,
    /// A job has a key, and its service has no range.
    NoRange,
    /// Two jobs have one key.
    Duplicate,
    /// Programs in JavaScript round a job's key.
    Rounded,
    /// All keys of a range are taken.
    Exhausted,
    /// Two platforms have different ranges for a service.
    RangeDiffers,
    /// Two platforms have different keys for a job, or one key for different jobs.
    KeyDiffers,
}

text_enum!(Code {
    Name => "name",
    NoKey => "no_key",
    Outside => "outside",
    NoRange => "no_range",
    Duplicate => "duplicate",
    Rounded => "rounded",
    Exhausted => "exhausted",
    RangeDiffers => "range_differs",
    KeyDiffers => "key_differs",
});

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Something that a person has to decide about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LockKeyFinding))]
pub struct Finding {
    /// The kind.
    pub code: Code,
    /// The job, or else the service.
    pub subject: String,
    /// The fact, and what to do.
    pub message: String,
    /// The other platform, where two are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
}

impl Finding {
    fn new(code: Code, subject: &str, message: impl Into<String>) -> Self {
        Self { code, subject: subject.to_owned(), message: message.into(), against: None }
    }
}

/// Displays as `billing.run: outside: 7 is not …`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", plain(&self.subject), self.code.as_str(), self.message)
    }
}

impl Registry {
    /// Finds what is wrong, ordered by the subjects' names.
    pub fn check(&self) -> Vec<Finding> {
        let by_service = self.by_service();
        let sorted = SortedRanges::new(&self.ranges);
        let mut of_key: BTreeMap<i64, &str> = BTreeMap::new();
        let mut findings = Vec::new();
        let mut find = |code, subject: &str, message: String| {
            findings.push(Finding::new(code, subject, message));
        };
        for (job, key) in &self.jobs {
            let service = service_of(job);
            let range = service.and_then(|service| by_service.get(service).copied());
            if service.is_none() {
                find(Code::Name, job, "is not named <service>.<jobName>".to_owned());
            }
            let Some(key) = *key else {
                if let Some(range) = range {
                    find(Code::NoKey, job, format!("has no lock_key; take one of {range}"));
                }
                continue;
            };
            if let Some(why) = job_key::problem(job, key, range, &sorted) {
                find(Code::Outside, job, format!("{why}; change its lock_key, or the range"));
            } else if range.is_none()
                && let Some(service) = service
            {
                find(
                    Code::NoRange,
                    job,
                    format!(
                        "has the key {key}, and {service} has no range; `sexton keys assign {service}` gives it one"
                    ),
                );
            }
            if !(-MAX_KEY..=MAX_KEY).contains(&key) {
                find(
                    Code::Rounded,
                    job,
                    format!("{key} is beyond 2^53 - 1, where Node.js locks another key"),
                );
            }
            if let Some(first) = of_key.insert(key, job) {
                find(Code::Duplicate, job, format!("{key} is the key of {first} as well"));
            }
        }
        for range in &self.ranges {
            let used = of_key.range(range.first()..=range.last()).count();
            if used == range.keys() as usize {
                find(
                    Code::Exhausted,
                    range.service(),
                    format!(
                        "jobs use all {used} keys; `sexton keys assign {} --keys {}` adds some",
                        range.service(),
                        used * 2
                    ),
                );
            }
        }
        findings.sort_by(|a, b| (&a.subject, a.code).cmp(&(&b.subject, b.code)));
        findings
    }

    /// Finds where another platform, called `name`, differs: a service has another range or none there, a job has another key
    /// there, or a key is another job's there. Jobs that exist on one platform alone are no difference.
    pub fn compare(&self, other: &Self, name: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let (ours, theirs) = (self.by_service(), other.by_service());
        for range in &self.ranges {
            let message = match theirs.get(range.service()) {
                Some(there) if *there == range => continue,
                Some(there) => format!(
                    "{} to {} here, {} to {} there",
                    range.first(),
                    range.last(),
                    there.first(),
                    there.last()
                ),
                None => format!("{} to {} here, no range there", range.first(), range.last()),
            };
            findings.push(Finding::new(Code::RangeDiffers, range.service(), message));
        }
        for range in other.ranges.iter().filter(|range| !ours.contains_key(range.service())) {
            let message = format!("no range here, {} to {} there", range.first(), range.last());
            findings.push(Finding::new(Code::RangeDiffers, range.service(), message));
        }
        let there: HashMap<&str, Option<i64>> =
            other.jobs.iter().map(|(job, key)| (job.as_str(), *key)).collect();
        let of_key: HashMap<i64, &str> =
            other.jobs.iter().filter_map(|(job, key)| Some(((*key)?, job.as_str()))).collect();
        let words =
            |key: Option<i64>| key.map_or_else(|| "no key".to_owned(), |key| key.to_string());
        for (job, key) in &self.jobs {
            if let Some(other_key) = there.get(job.as_str()) {
                if other_key != key {
                    let message = format!("{} here, {} there", words(*key), words(*other_key));
                    findings.push(Finding::new(Code::KeyDiffers, job, message));
                }
            } else if let Some(holder) = key.and_then(|key| of_key.get(&key)) {
                let message =
                    format!("{} is its key here, and that of {holder} there", words(*key));
                findings.push(Finding::new(Code::KeyDiffers, job, message));
            }
        }
        for finding in &mut findings {
            finding.against = Some(name.to_owned());
        }
        findings.sort_by(|a, b| (&a.subject, a.code).cmp(&(&b.subject, b.code)));
        findings
    }

    fn by_service(&self) -> HashMap<&str, &KeyRange> {
        self.ranges.iter().map(|range| (range.service(), range)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(ranges: &[(&str, i64, u32)], jobs: &[(&str, Option<i64>)]) -> Registry {
        let range =
            |(service, first, keys): &(&str, i64, u32)| KeyRange::new(service, *first, *keys);
        Registry {
            ranges: ranges.iter().map(|one| range(one).unwrap()).collect(),
            jobs: jobs.iter().map(|(job, key)| ((*job).to_owned(), *key)).collect(),
        }
    }

    fn lines(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_in_order_is_no_finding() {
        let sound = registry(
            &[("billing", 100, 2), ("shop", 102, 2)],
            &[("billing.run", Some(100)), ("shop.a", Some(103)), ("web.b", None)],
        );
        assert_eq!(sound.check(), []);
        assert_eq!(sound.compare(&sound, "prod"), []);
        let fewer =
            registry(&[("billing", 100, 2), ("shop", 102, 2)], &[("billing.new", Some(101))]);
        assert_eq!(sound.compare(&fewer, "prod"), []);
    }

    #[test]
    fn each_kind_of_finding_names_its_subject_and_what_to_do() {
        let wrong = registry(
            &[("billing", 100, 2), ("full", 10, 1)],
            &[
                ("billing.a", None),
                ("billing.b", Some(102)),
                ("cleanup", Some(11)),
                ("cleanup2", Some(101)),
                ("full.a", Some(10)),
                ("shop.c", Some(100)),
                ("web.d", Some(7)),
                ("web.e", Some(7)),
                ("web.f", Some(MAX_KEY + 2)),
            ],
        );
        let found = wrong.check();
        let codes: Vec<_> =
            found.iter().map(|one| (one.subject.as_str(), one.code.as_str())).collect();
        assert_eq!(
            codes,
            [
                ("billing", "exhausted"),
                ("billing.a", "no_key"),
                ("billing.b", "outside"),
                ("cleanup", "name"),
                ("cleanup2", "name"),
                ("cleanup2", "outside"),
                ("full", "exhausted"),
                ("shop.c", "outside"),
                ("web.d", "no_range"),
                ("web.e", "no_range"),
                ("web.e", "duplicate"),
                ("web.f", "no_range"),
                ("web.f", "rounded"),
            ]
        );
        let text = lines(&found).join("\n");
        for part in [
            "billing.a: no_key: has no lock_key; take one of billing (100 to 101)",
            "billing.b: outside: 102 is not one of the keys of billing (100 to 101)",
            "shop.c: outside: 100 is one of the keys of billing (100 to 101), and shop has no range",
            "`sexton keys assign full --keys 2`",
            "7 is the key of web.d as well",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn platforms_differ_by_ranges_by_keys_and_by_the_jobs_of_a_key() {
        let here = registry(
            &[("billing", 100, 2), ("shop", 102, 2), ("web", 200, 5)],
            &[("billing.run", Some(100)), ("billing.stop", None), ("shop.old", Some(102))],
        );
        let there = registry(
            &[("billing", 100, 2), ("shop", 104, 2), ("mail", 300, 5)],
            &[("billing.run", Some(101)), ("billing.stop", Some(100)), ("shop.new", Some(102))],
        );
        let found = here.compare(&there, "prod");
        assert!(found.iter().all(|one| one.against.as_deref() == Some("prod")));
        assert_eq!(
            lines(&found),
            [
                "billing.run: key_differs: 100 here, 101 there",
                "billing.stop: key_differs: no key here, 100 there",
                "mail: range_differs: no range here, 300 to 304 there",
                "shop: range_differs: 102 to 103 here, 104 to 105 there",
                "shop.old: key_differs: 102 is its key here, and that of shop.new there",
                "web: range_differs: 200 to 204 here, no range there",
            ]
        );
    }
}
