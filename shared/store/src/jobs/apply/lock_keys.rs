//! Whether the jobs of an apply may have their lock keys.
//!
//! Judged for jobs that are new or whose key changes: a range that somebody assigns later stops no service whose scheduler applies
//! its jobs at every start. `sexton keys check` finds such jobs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use sexton_model::job::JobSpec;
use sexton_model::jobs_file::Problem;
use sexton_model::lock_key::job_key::{problem, remedy};
use sexton_model::lock_key::range::{KeyRange, SortedRanges, service_of, usage};
use sqlx::PgConnection;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::jobs::Job;
use crate::lock_keys::{holders, read_ranges, used_keys};
use crate::platform_keys::PlatformKeys;

/// Maximum number of problems for which the next free key is looked for.
const MAX_REMEDIES: usize = 20;

/// Returns a problem for each job that may not have the key that it wants.
pub(super) async fn find_problems(
    connection: &mut PgConnection,
    specs: &[JobSpec],
    jobs: &[Job],
) -> Result<Vec<Problem>, StoreError> {
    let present: HashMap<&str, Option<i64>> =
        jobs.iter().map(|job| (job.name.as_str(), job.lock_key)).collect();
    let is_new = |spec: &&JobSpec| present.get(spec.name.as_str()) != Some(&spec.lock_key);
    let wanting: Vec<(&JobSpec, i64)> =
        specs.iter().filter(is_new).filter_map(|spec| Some((spec, spec.lock_key?))).collect();
    if wanting.is_empty() {
        return Ok(Vec::new());
    }
    let platform_keys = PlatformKeys::read(WithTimeout(&mut *connection)).await?;
    let keys: Vec<i64> = wanting.iter().map(|(_, key)| *key).collect();
    let named: HashSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    // By key: first the jobs that keep theirs, then, in the order of the files, those that want one.
    let mut taken: HashMap<i64, String> = holders(connection, &keys)
        .await?
        .into_iter()
        .filter(|(name, _)| !named.contains(name.as_str()))
        .map(|(name, key)| (key, name))
        .collect();
    let unchanged = specs.iter().filter(|spec| !is_new(spec));
    taken.extend(unchanged.filter_map(|spec| Some((spec.lock_key?, spec.name.clone()))));
    let ranges = read_ranges(WithTimeout(&mut *connection)).await?;
    let by_service: HashMap<&str, &KeyRange> =
        ranges.iter().map(|range| (range.service(), range)).collect();
    let sorted = SortedRanges::new(&ranges);
    let mut granted: Vec<i64> = taken.keys().copied().collect();
    let mut refused = Vec::new();
    for (spec, key) in wanting {
        let range = service_of(&spec.name).and_then(|service| by_service.get(service).copied());
        let holder = taken.entry(key).or_insert_with(|| spec.name.clone());
        let why = if let Some(purpose) = platform_keys.purpose(key) {
            // The job's task would keep Sexton from it.
            Some(format!("{key} is the lock of {purpose}"))
        } else if *holder == spec.name {
            problem(&spec.name, key, range, &sorted)
        } else {
            Some(format!("{key} is the key of {holder}"))
        };
        match why {
            Some(why) => refused.push((spec, range, why)),
            None => granted.push(key),
        }
    }
    let mut free = FreeKeys { granted, used: HashMap::new() };
    let mut problems = Vec::new();
    for (index, (spec, range, why)) in refused.into_iter().enumerate() {
        let message = if index < MAX_REMEDIES {
            let next = match range {
                Some(range) => Some((range, free.take(connection, range).await?)),
                None => None,
            };
            format!("{why}; {}", remedy(&spec.name, next))
        } else {
            why
        };
        problems.push(Problem {
            file: String::new(),
            line: None,
            job: Some(spec.name.clone()),
            field: Some("lock_key".to_owned()),
            message,
            unlisted: 0,
        });
    }
    Ok(problems)
}

/// Finds free keys for jobs whose key is refused, each another one.
struct FreeKeys<'a> {
    /// The keys of this apply that are not refused.
    granted: Vec<i64>,
    /// The keys that are taken, in order, by service.
    used: HashMap<&'a str, Vec<i64>>,
}

impl<'a> FreeKeys<'a> {
    /// Returns the next free key of a range; `None`: all are taken.
    async fn take(
        &mut self,
        connection: &mut PgConnection,
        range: &'a KeyRange,
    ) -> Result<Option<i64>, StoreError> {
        let used = match self.used.entry(range.service()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let mut used = used_keys(connection, range).await?;
                used.extend(self.granted.iter().filter(|key| range.contains(**key)));
                used.sort_unstable();
                used.dedup();
                unknown.insert(used)
            }
        };
        let next = usage(range, used).1;
        if let Some(next) = next {
            let at = used.partition_point(|key| *key < next);
            used.insert(at, next);
        }
        Ok(next)
    }
}
