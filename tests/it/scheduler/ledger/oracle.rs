//! What should have become of each second, by the rules as the documents state them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use sexton_model::job::{JobSpec, MisfirePolicy, Overlap};

/// When a job fires, as a question about a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pattern {
    /// Each second of Unix time that this divides.
    Every(i64),
    /// Each full minute whose number in its hour this divides.
    Minutes(i64),
}

impl Pattern {
    fn has(self, at: DateTime<Utc>) -> bool {
        let second = at.timestamp();
        match self {
            Self::Every(period) => second % period == 0,
            Self::Minutes(step) => second % 60 == 0 && second / 60 % 60 % step == 0,
        }
    }

    fn key(self, at: DateTime<Utc>) -> String {
        let kind = match self {
            Self::Every(_) => "every",
            Self::Minutes(_) => "cron",
        };
        format!("{kind}-{}", at.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

/// A firing's disposition, and who or what is behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExplainedFiring {
    pub(super) at: DateTime<Utc>,
    pub(super) disposition: String,
    pub(super) behind: Option<String>,
}

/// An execution.
struct Made {
    word: &'static str,
    /// It counts for the overlap policy.
    counts: bool,
}

pub(super) struct Oracle {
    begin: DateTime<Utc>,
    /// From when on which pattern.
    patterns: Vec<(DateTime<Utc>, Pattern)>,
    spec: JobSpec,
    paused: Option<&'static str>,
    /// Everything up to here is accounted for.
    until: DateTime<Utc>,
    /// What did not run.
    missed: BTreeMap<DateTime<Utc>, (String, Option<String>)>,
    /// By execution key.
    made: BTreeMap<String, Made>,
    deleted: bool,
}

impl Oracle {
    pub(super) fn new(begin: DateTime<Utc>, pattern: Pattern, spec: &JobSpec) -> Self {
        Self {
            begin,
            patterns: vec![(begin, pattern)],
            spec: spec.clone(),
            paused: None,
            until: begin,
            missed: BTreeMap::new(),
            made: BTreeMap::new(),
            deleted: false,
        }
    }

    pub(super) fn begin(&self) -> DateTime<Utc> {
        self.begin
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Second by second, both ends included: the firings and the pattern of each.
    fn firings(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<(DateTime<Utc>, Pattern)> {
        let mut found = Vec::new();
        let mut second = from;
        while second <= to {
            let now = self.patterns.iter().rfind(|(since, _)| *since < second);
            found.extend(now.filter(|(_, it)| it.has(second)).map(|(_, it)| (second, *it)));
            second += TimeDelta::seconds(1);
        }
        found
    }

    fn due(&self, now: DateTime<Utc>) -> Vec<(DateTime<Utc>, Pattern)> {
        self.firings(self.until + TimeDelta::seconds(1), now)
    }

    fn miss(&mut self, at: DateTime<Utc>, word: &str, behind: Option<String>) {
        self.missed.insert(at, (word.to_owned(), behind));
    }

    pub(super) fn plan(&mut self, now: DateTime<Utc>) {
        if self.paused.is_some() || self.deleted {
            return;
        }
        let due = self.due(now);
        self.until = now;
        let misfire = self.spec.misfire;
        let age = |at: DateTime<Utc>| (now - at).to_std().unwrap_or_default();
        let on_time = |at| age(at).as_secs() <= 60;
        let late: Vec<_> = due.iter().copied().filter(|(at, _)| !on_time(*at)).collect();
        let timely: Vec<_> = due.iter().copied().filter(|(at, _)| on_time(*at)).collect();
        let (within, without): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|(at, _)| age(*at) <= misfire.window);
        for (at, _) in without {
            self.miss(at, "outside_window", None);
        }
        let (given_up, runs) = match misfire.policy {
            MisfirePolicy::Skip => ("misfire_skip", 0),
            MisfirePolicy::FireOnce => ("coalesced", usize::from(timely.is_empty())),
            MisfirePolicy::FireAll => ("over_limit", misfire.limit as usize),
        };
        let first = within.len().saturating_sub(runs);
        let rows: Vec<_> = within[first..].iter().chain(&timely).copied().collect();
        let into = rows.first().map(|(at, pattern)| pattern.key(*at));
        for (at, _) in &within[..first] {
            self.miss(*at, given_up, into.clone().filter(|_| given_up == "coalesced"));
        }
        let mut busy = self.made.values().any(|made| made.counts && made.word == "running");
        for (at, pattern) in rows {
            let skipped = self.spec.overlap == Overlap::Skip && busy;
            busy = true;
            let word = if skipped { "skipped" } else { "running" };
            self.made.entry(pattern.key(at)).or_insert(Made { word, counts: true });
        }
    }

    pub(super) fn pause(&mut self, actor: &'static str) {
        self.paused = Some(actor);
    }

    pub(super) fn resume(&mut self, now: DateTime<Utc>) {
        self.pass(now, "resumed");
        self.paused = None;
    }

    /// What is due does not run any more.
    fn pass(&mut self, now: DateTime<Utc>, word: &str) {
        for (at, _) in self.due(now) {
            match self.paused {
                Some(actor) => self.miss(at, "paused", Some(actor.to_owned())),
                None => self.miss(at, word, Some("ann".to_owned())),
            }
        }
        self.until = now;
    }

    pub(super) fn edit(&mut self, now: DateTime<Utc>, pattern: Pattern, spec: &JobSpec) {
        if self.patterns.last().is_some_and(|(_, old)| *old != pattern) {
            self.pass(now, "rescheduled");
            self.patterns.push((now, pattern));
        }
        self.spec = spec.clone();
    }

    pub(super) fn delete(&mut self, now: DateTime<Utc>) {
        self.pass(now, "deleted");
        for made in self.made.values_mut().filter(|made| made.word == "running") {
            made.word = "cancelled";
        }
        self.deleted = true;
    }

    pub(super) fn claimed(&mut self, key: String) {
        self.made.insert(key, Made { word: "running", counts: true });
    }

    pub(super) fn under_way(&self) -> Vec<String> {
        let under_way = self.made.iter().filter(|(_, made)| made.word == "running");
        under_way.map(|(key, _)| key.clone()).collect()
    }

    /// Whether it counts for the overlap policy.
    pub(super) fn counts(&self, key: &str) -> bool {
        self.made[key].counts
    }

    pub(super) fn end(&mut self, key: &str, word: &'static str) {
        self.made.get_mut(key).unwrap().word = word;
    }

    /// Second by second up to the beginning, both ends included: what the first pattern would have had.
    fn before_the_job(&self, from: DateTime<Utc>) -> Vec<(DateTime<Utc>, Pattern)> {
        let (begin, first) = self.patterns[0];
        let seconds = (0..).map(|n| from + TimeDelta::seconds(n)).take_while(|at| *at <= begin);
        seconds.filter(|at| first.has(*at)).map(|at| (at, first)).collect()
    }

    pub(super) fn backfill(&mut self, from: DateTime<Utc>, to: DateTime<Utc>) {
        let mut all = self.before_the_job(from);
        all.extend(self.firings(from, to));
        for (at, pattern) in all {
            self.made.entry(pattern.key(at)).or_insert(Made { word: "running", counts: false });
        }
    }

    /// What became of every firing up to `horizon`, in the order of time.
    pub(super) fn walk(&self, now: DateTime<Utc>, horizon: DateTime<Utc>) -> Vec<ExplainedFiring> {
        let end = if self.deleted { now } else { horizon };
        // Before there was a job nothing was to run; what was backfilled has run.
        let mut all = self.before_the_job(self.begin - TimeDelta::days(1));
        all.retain(|(at, pattern)| self.made.contains_key(&pattern.key(*at)));
        all.extend(self.firings(self.begin, end));
        all.into_iter()
            .map(|(at, pattern)| {
                let paused = self.paused.map(str::to_owned);
                let (disposition, behind) =
                    match (self.made.get(&pattern.key(at)), self.missed.get(&at)) {
                        (Some(made), _) => (made.word.to_owned(), None),
                        (None, Some((word, behind))) => (word.clone(), behind.clone()),
                        (None, None) if at > now => ("not_yet".to_owned(), paused),
                        (None, None) if paused.is_some() => ("paused".to_owned(), paused),
                        (None, None) => ("due".to_owned(), None),
                    };
                ExplainedFiring { at, disposition, behind }
            })
            .collect()
    }
}
