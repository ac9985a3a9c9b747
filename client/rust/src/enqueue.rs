//! What to enqueue.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Error;

/// The params of a job, with its names: what a caller and the worker's handler share.
///
/// A caller enqueues by the job's name, and a worker's handler is that of a task type: in the jobs file each job names
/// its task. So the type has both, and the two sides cannot differ in them. The jobs file still stands by itself:
/// `name` and `task` there have to be these two.
///
/// Several jobs may have one task, and a worker has one handler for it. Implement this for one of them; to enqueue
/// another, name it: `Enqueue::new("billing.refund").params(&charge)`.
pub trait Job: Serialize + DeserializeOwned {
    /// The job's name.
    const NAME: &'static str;

    /// The task type that the job names, by which a worker finds the handler; the job's name unless it is set.
    ///
    /// 1 to 100 characters of `A-Z a-z 0-9 . _ -`; a worker refuses to start with any other.
    const TASK: &'static str = Self::NAME;

    /// The JSON Schema of the params, as text; none unless it is set.
    ///
    /// A worker that registers a handler for the job publishes it. From then on, until no worker that runs offers it, the
    /// database checks the params of every caller by it, also of those that do not know this type.
    const PARAMS_SCHEMA: Option<&'static str> = None;
}

/// How long a key stands for one execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UniqueFor {
    /// For ever: a second call with the key never makes a second execution.
    #[default]
    Ever,
    /// While an execution with the key has not ended. One that is parked as failed has not.
    Open,
    /// For a period of up to 400 days, in whole seconds and from 1970 on: one execution for each. What counts is when
    /// the execution is to run.
    Period(Duration),
}

impl UniqueFor {
    pub(crate) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Ever => "ever".into(),
            Self::Open => "open".into(),
            Self::Period(period) => format!("{}s", period.as_secs()).into(),
        }
    }
}

/// What becomes of an execution that has the key already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IfExists {
    /// It stays as it is.
    #[default]
    Keep,
    /// It gets the new params and labels, unless it has begun.
    Replace,
    /// It gets the new params and labels and the new time, unless it has begun.
    Postpone,
}

impl IfExists {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::Postpone => "postpone",
        }
    }
}

/// When an execution is to run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum When {
    Now,
    At(DateTime<Utc>),
    After(Duration),
}

/// One execution to enqueue.
#[derive(Clone, PartialEq, Debug)]
#[must_use = "nothing is enqueued before Client::enqueue"]
pub struct Enqueue {
    pub(crate) job: Cow<'static, str>,
    pub(crate) params: Value,
    pub(crate) key: Option<String>,
    pub(crate) when: When,
    pub(crate) unique_for: UniqueFor,
    pub(crate) if_exists: IfExists,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Enqueue {
    /// Names the job; it runs with the job's own params, at once, and without a key.
    pub fn new(job: impl Into<Cow<'static, str>>) -> Self {
        Self {
            job: job.into(),
            params: json!({}),
            key: None,
            when: When::Now,
            unique_for: UniqueFor::Ever,
            if_exists: IfExists::Keep,
            labels: BTreeMap::new(),
        }
    }

    /// Names the job by the type of its params.
    ///
    /// # Errors
    ///
    /// [`Error::Params`]: serde cannot write them as JSON.
    pub fn job<J: Job>(params: &J) -> Result<Self, Error> {
        Self::new(J::NAME).params(params)
    }

    /// Sets params, which override those of the job of the same name, at the top level.
    ///
    /// # Errors
    ///
    /// [`Error::Params`]: serde cannot write them as JSON.
    pub fn params(mut self, params: &impl Serialize) -> Result<Self, Error> {
        self.params = serde_json::to_value(params).map_err(Error::Params)?;
        Ok(self)
    }

    /// Sets the caller's own key, at most 256 bytes.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Runs it at an instant; one in the past means now.
    pub const fn run_at(mut self, at: DateTime<Utc>) -> Self {
        self.when = When::At(at);
        self
    }

    /// Runs it this long after the call, by the database's clock.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.when = When::After(delay);
        self
    }

    /// Sets how long the key stands for one execution; for ever unless it is set.
    pub const fn unique_for(mut self, unique_for: UniqueFor) -> Self {
        self.unique_for = unique_for;
        self
    }

    /// Sets what becomes of an execution that has the key already; it stays as it is unless it is set.
    pub const fn if_exists(mut self, if_exists: IfExists) -> Self {
        self.if_exists = if_exists;
        self
    }

    /// Adds a label, for people.
    pub fn label(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.labels.insert(name.into(), text.into());
        self
    }

    /// The item of `sexton.enqueue_many`.
    pub(crate) fn item(&self) -> Value {
        let mut item = json!({
            "params": self.params,
            "key": self.key,
            "unique_for": self.unique_for.text(),
            "if_exists": self.if_exists.text(),
            "labels": self.labels,
        });
        match self.when {
            When::Now => {}
            When::At(at) => item["run_at"] = at.to_rfc3339_opts(SecondsFormat::Micros, true).into(),
            When::After(delay) => {
                item["delay"] = format!("{:.6} seconds", delay.as_secs_f64()).into();
            }
        }
        item
    }
}
