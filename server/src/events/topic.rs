//! What a page follows.

use sexton_operations::changes::Changes;
use uuid::Uuid;

/// The most topics of one stream.
pub const MAX_TOPICS: usize = 10;

/// Something that changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Topic {
    /// `failures`: failed and discarded executions, and their groups.
    Failures,
    /// `executions`: the newest executions.
    Executions,
    /// `actions`: what people do, and what programs enqueue over the API.
    Actions,
    /// `decisions`: what people do, without what is enqueued.
    Decisions,
    /// `incidents`
    Incidents,
    /// `bulks`
    Bulks,
    /// `time`: every ten seconds, for what has no sign of its own, such as heartbeats and depths of queues.
    Time,
    /// `execution:ID`: one execution.
    Execution(Uuid),
}

impl Topic {
    /// Parses a word; `None`: no such topic exists.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "failures" => Self::Failures,
            "executions" => Self::Executions,
            "actions" => Self::Actions,
            "decisions" => Self::Decisions,
            "incidents" => Self::Incidents,
            "bulks" => Self::Bulks,
            "time" => Self::Time,
            _ => Self::Execution(word.strip_prefix("execution:")?.parse().ok()?),
        })
    }

    /// Returns whether it differs between two readings.
    pub fn has_changed(self, before: &Changes, after: &Changes) -> bool {
        match self {
            Self::Failures => before.failures != after.failures,
            Self::Executions => before.executions != after.executions,
            Self::Actions => before.actions != after.actions,
            Self::Decisions => before.decisions != after.decisions,
            Self::Incidents => before.incidents != after.incidents,
            Self::Bulks => before.bulks != after.bulks,
            Self::Time => false,
            Self::Execution(id) => before.of_execution.get(&id) != after.of_execution.get(&id),
        }
    }
}

/// Parses a list of words with commas between them.
///
/// # Errors
///
/// The reason for a refusal, in words.
pub fn parse_topics(text: &str) -> Result<Vec<Topic>, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.len() > MAX_TOPICS {
        return Err(format!(
            "names {} topics; at most {MAX_TOPICS} fit into a stream",
            words.len()
        ));
    }
    let parse = |word: &&str| {
        let known = "failures, executions, actions, decisions, incidents, bulks, time, or execution: and an id";
        Topic::parse(word).ok_or_else(|| format!("{word:?} is no topic; write {known}"))
    };
    words.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_an_unknown_one_is_named() {
        let id = Uuid::from_u128(7);
        let topics = parse_topics(&format!("failures, execution:{id}")).unwrap();
        assert_eq!(topics, [Topic::Failures, Topic::Execution(id)]);
        assert!(parse_topics("failure").unwrap_err().contains("\"failure\" is no topic"));
        assert!(parse_topics("").is_err());
        assert!(parse_topics(&["time"; 11].join(",")).unwrap_err().contains("11 topics"));
    }

    #[test]
    fn what_is_enqueued_is_an_action_and_no_decision() {
        let reading = |actions: &str| Changes { actions: actions.to_owned(), ..Changes::default() };
        let (before, after) = (reading("1"), reading("2"));
        assert!(Topic::Actions.has_changed(&before, &after));
        for word in ["decisions", "failures"] {
            assert!(!Topic::parse(word).unwrap().has_changed(&before, &after), "{word}");
        }
        let after = Changes { decisions: "2".to_owned(), ..before.clone() };
        assert!(Topic::Decisions.has_changed(&before, &after));
    }

    #[test]
    fn an_execution_changes_alone() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let reading = |state: &str| Changes {
            of_execution: [(one, state.to_owned()), (other, "failed".to_owned())].into(),
            ..Changes::default()
        };
        let (before, after) = (reading("running"), reading("failed"));
        assert!(Topic::Execution(one).has_changed(&before, &after));
        assert!(!Topic::Execution(other).has_changed(&before, &after));
        assert!(!Topic::Failures.has_changed(&before, &after));
    }
}
