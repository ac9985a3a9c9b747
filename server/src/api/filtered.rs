//! The parameters of lists of executions and failures.

/// Makes the type of a query of a list that is filtered by [`FilterRequest`], with further parameters of its own.
///
/// [`FilterRequest`]: sexton_operations::filter::FilterRequest
macro_rules! filtered_query {
    ($(#[$about:meta])* $vis:vis $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        #[serde(deny_unknown_fields, default)]
        $vis struct $name {
            /// Only of this job, even a deleted one.
            $vis job: Option<String>,
            /// Only of jobs whose names begin with this, such as `billing.`.
            $vis job_prefix: Option<String>,
            /// Only of this task type.
            $vis task_type: Option<String>,
            /// Only of this pool.
            $vis pool: Option<String>,
            /// Only with this error class, such as `exit_1`.
            $vis error_class: Option<String>,
            /// Only with these words in the error's message, in this order; the last one may be incomplete.
            $vis text: Option<String>,
            /// Only of this failure group: its fingerprint, or a unique beginning.
            $vis group: Option<String>,
            /// Only at or after this: an instant in RFC 3339, or an age such as `36h`.
            $vis since: Option<String>,
            /// Only before this.
            $vis until: Option<String>,
            /// Only with their last attempt on the worker of this name.
            $vis worker: Option<String>,
            /// Only of jobs with this label, such as `team=billing`. May be repeated.
            #[param(explode)]
            $vis label: Vec<String>,
            /// Only with this in their params, such as `order.id=7`. May be repeated.
            #[param(explode)]
            $vis param: Vec<String>,
            $($(#[$field_about])* $vis $field: $type,)*
        }

        impl $name {
            pub(crate) fn filter(&self) -> sexton_operations::filter::FilterRequest {
                sexton_operations::filter::FilterRequest {
                    job: self.job.clone(),
                    job_prefix: self.job_prefix.clone(),
                    task_type: self.task_type.clone(),
                    pool: self.pool.clone(),
                    error_class: self.error_class.clone(),
                    text: self.text.clone(),
                    group: self.group.clone(),
                    since: self.since.clone(),
                    until: self.until.clone(),
                    worker: self.worker.clone(),
                    label: self.label.clone(),
                    params: self.param.clone(),
                }
            }
        }
    };
}

pub(crate) use filtered_query;
