//! The parameters of a bulk, in an address and in its form.

use chrono::{DateTime, Utc};
use sexton_model::bulk::BulkKind;
use sexton_model::state::State;
use sexton_operations::bulks::options::{BulkOptions, CheckedOptions};
use sexton_operations::bulks::request::{BulkPreview, preview, preview_cancel};
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
        match self.options().misplaced(kind).first() {
            Some(one) => Err(problem_of_parameter(one.option, &one.problem)),
            None => Ok(kind),
        }
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

    fn options(&self) -> BulkOptions<'_> {
        BulkOptions {
            // What is no number is as wrong as 0.
            canary: self.canary.as_deref().map(|text| text.trim().parse().unwrap_or_default()),
            no_verify: self.no_verify,
            rate: self.rate.as_deref().map(str::trim),
            ..BulkOptions::default()
        }
    }

    /// Reads what people type into the form.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the fields.
    pub(super) fn check_options(&self, kind: BulkKind) -> Result<CheckedOptions, Problems> {
        let (checked, mut problems) = (self.options().check(kind), Problems::default());
        for one in checked.as_ref().err().into_iter().flatten() {
            // People see the field's label, not the option's name.
            let problem = &one.problem;
            if one.option == "canary" {
                let text = format!("Write how many executions are the canary: this {problem}.");
                problems.push_of(one.option, text);
            } else {
                problems.push_of(one.option, problem.as_str());
            }
        }
        if kind == BulkKind::Discard && self.reason.is_none() {
            problems.push_of("reason", "Say why they are given up, for those who read the audit.");
        }
        match checked {
            Ok(checked) if problems.is_empty() => Ok(checked),
            _ => Err(problems),
        }
    }
}
