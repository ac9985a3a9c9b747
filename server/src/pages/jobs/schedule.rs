//! When a job fires, in words.

use sexton_model::cron::describe;
use sexton_model::duration::to_millis;
use sexton_model::job::Schedule;
use sexton_operations::text;
use sexton_store::jobs::Job;

/// When a job fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ScheduleWords {
    pub(super) words: String,
    /// The expression, if the words are others.
    pub(super) expression: Option<String>,
    /// The zone whose clocks it reads; `None`: the zone changes nothing.
    pub(super) zone: Option<String>,
}

impl ScheduleWords {
    pub(super) fn of(job: &Job) -> Self {
        let expression = job.schedule_expression.clone().unwrap_or_default();
        let schedule =
            Schedule::from_columns(&job.schedule_kind, job.schedule_expression.as_deref());
        let plain = |words: String| Self { words, expression: None, zone: None };
        match schedule {
            Ok(Schedule::None) => plain("only when somebody triggers it".to_owned()),
            Ok(Schedule::Every { period, phase }) => {
                let written = |duration| text::duration(to_millis(duration));
                let period_words = format!("every {}", written(period));
                if phase.is_zero() {
                    return plain(period_words);
                }
                plain(format!(
                    "{period_words}, {} after the full {}",
                    written(phase),
                    written(period)
                ))
            }
            Ok(Schedule::At { at }) => {
                let zone = at.is_wall().then(|| job.timezone.clone());
                Self { words: format!("once, at {at}"), expression: None, zone }
            }
            Ok(Schedule::Cron { .. }) => {
                let days = job.days.as_deref().and_then(sexton_model::cron::DayRule::parse);
                let words = describe(&expression, &job.name, days);
                let zone = Some(job.timezone.clone());
                match words {
                    Some(words) => Self { words, expression: Some(expression), zone },
                    None => Self { words: expression, expression: None, zone },
                }
            }
            // Of another version.
            Err(_) => plain(format!("{} {expression}", job.schedule_kind)),
        }
    }
}
