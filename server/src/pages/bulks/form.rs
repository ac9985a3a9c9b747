//! The parameters of a bulk, in an address and in its form.

use chrono::{DateTime, Utc};
use sexton_model::bulk::{BulkKind, MAX_CANARY_EXECUTIONS};
use sexton_model::rate::Rate;
use sexton_model::state::State;
use sexton_operations::bulks::request::{
    BulkAction, BulkPreview, Verifier, preview, preview_cancel,
};
use sexton_operations::error::OperationError;
use sexton_operations::filter::FailureScope;
use sexton_operations::selection::Selection;
use sexton_store::Store;

use crate::api::{filtered_query, problem_of_parameter};
use crate::pages::shell::frame::Section;
use crate::pages::shell::problems::Problems;
use crate::problem::Problem;

filtered_query! {
    /// An action on many failures, and how it is done.
    pub(super) BulkQuery {
        /// `requeue`, `discard` or `restore` of failures; `cancel` of executions.
        kind: Option<String>,
        /// To cancel: only in these states. May be repeated.
        #[param(explode)]
        state: Vec<State>,
        /// Of failures: also those of muted groups.
        muted: bool,
        /// When the preview was made: what fails later is not touched.
        previewed_at: Option<DateTime<Utc>>,
        /// How many executions the preview counted: the bulk is refused if it would take more.
        count: Option<u64>,
        /// More match than the preview counted.
        more: bool,
        /// How many first, as it was typed; the others follow only when all of these have succeeded.
        canary: Option<String>,
        /// How many per time, as in `10/m`.
        rate: Option<String>,
        /// Skip the verify tasks.
        no_verify: bool,
        /// For the audit.
        #[serde(deserialize_with = "crate::api::reason")]
        reason: Option<String>,
        /// Only show the command and the request.
        as_command: bool,
    }
}

/// The list whose filter selects the executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Failed,
    Executions,
}

impl List {
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Failed => "/failed",
            Self::Executions => "/executions",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Executions => "Executions",
        }
    }

    pub(super) const fn section(self) -> Section {
        match self {
            Self::Failed => Section::Failed,
            Self::Executions => Section::Executions,
        }
    }

    const fn kinds_hint(self) -> &'static str {
        match self {
            Self::Failed => "write requeue, discard or restore",
            Self::Executions => "write cancel",
        }
    }
}

impl BulkQuery {
    /// Returns the kind, if it and what goes with it fit the list.
    pub(super) fn kind(&self, list: List) -> Result<BulkKind, Problem> {
        let kind = self.kind.as_deref().and_then(BulkKind::parse);
        let fits = |kind: &BulkKind| (*kind == BulkKind::Cancel) == (list == List::Executions);
        let kind =
            kind.filter(fits).ok_or_else(|| problem_of_parameter("kind", list.kinds_hint()))?;
        if kind != BulkKind::Cancel && !self.state.is_empty() {
            return Err(problem_of_parameter("state", "goes with a cancel"));
        }
        if self.state.iter().any(|state| !kind.acts_on(*state)) {
            return Err(problem_of_parameter("state", "must be pending, retrying or running"));
        }
        if kind == BulkKind::Cancel && self.muted {
            let detail = "goes with a requeue or discard: only failures have muted groups";
            return Err(problem_of_parameter("muted", detail));
        }
        if kind != BulkKind::Requeue && self.canary.is_some() {
            return Err(problem_of_parameter("canary", "goes with a requeue"));
        }
        Ok(kind)
    }

    /// Counts what the bulk would act on, up to `until`; an age such as 36h counts from `now`.
    pub(super) async fn preview(
        &self,
        store: &Store,
        kind: BulkKind,
        (now, until): (DateTime<Utc>, Option<DateTime<Utc>>),
    ) -> Result<BulkPreview, OperationError> {
        if kind == BulkKind::Cancel {
            let filter = self.filter().read_executions(store, &self.state, now).await?;
            return preview_cancel(store, &Selection::Filter(Box::new(filter)), until).await;
        }
        let scope = FailureScope { discarded: kind == BulkKind::Restore, muted: self.muted };
        let filter = self.filter().read_failures(store, scope, now).await?;
        preview(store, &Selection::Filter(Box::new(filter)), until).await
    }

    /// Reads what people type into the form, and returns the action.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the fields.
    pub(super) fn action(&self, kind: BulkKind) -> Result<BulkAction<'_>, Problems> {
        let rate = self.rate.as_deref().map(|text| text.trim().parse::<Rate>()).transpose();
        let (canary, reason) = (self.read_canary(), self.reason.as_deref());
        let mut problems = Problems::default();
        if let Err(text) = &canary {
            problems.push_of("canary", text.as_str());
        }
        if let Err(error) = &rate {
            problems.push_of("rate", error.to_string());
        }
        if kind == BulkKind::Discard && reason.is_none() {
            problems.push_of("reason", "Say why they are given up, for those who read the audit.");
        }
        match (canary, rate) {
            (Ok(canary), Ok(rate)) if problems.is_empty() => {
                let verify = if self.no_verify { Verifier::Nobody } else { Verifier::Tasks };
                Ok(BulkAction { kind, canary, pool: None, verify, rate, reason })
            }
            _ => Err(problems),
        }
    }

    fn read_canary(&self) -> Result<Option<u32>, String> {
        let Some(text) = self.canary.as_deref() else { return Ok(None) };
        let size = text.trim().parse::<u32>().ok();
        let size = size.filter(|size| (1..=MAX_CANARY_EXECUTIONS).contains(size));
        size.map(Some).ok_or_else(|| {
            format!("write how many executions are the canary: 1 to {MAX_CANARY_EXECUTIONS}")
        })
    }
}
