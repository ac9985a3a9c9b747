//! The dead man's switch: decides whether the platform is well, so that an outside watcher may hear of it.

use std::time::Duration;

/// A firing that is overdue for longer says that no scheduler claims in time.
pub const MAX_CLAIM_DELAY: Duration = Duration::from_mins(1);
/// A due ticket that is unpublished for longer says that none is published.
pub const MAX_PUBLISH_DELAY: Duration = Duration::from_mins(1);
/// A notification that is due, and that nobody has tried, for longer says that none is sent.
pub const MAX_SEND_DELAY: Duration = Duration::from_mins(5);
/// A heartbeat that could be sent, and that nobody has tried, for longer says that none is sent. It is longer than a refused one
/// waits, and than many watchers that hang hold up the first try.
pub const MAX_HEARTBEAT_DELAY: Duration = Duration::from_mins(10);
/// How long all channels fail before nobody hears of incidents.
pub const MAX_CHANNELS_FAIL: Duration = Duration::from_mins(15);

/// What a scheduler read of the platform; `None`: nothing waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlatformSigns {
    /// How long the oldest firing is overdue that no scheduler has claimed.
    pub overdue: Option<Duration>,
    /// How long the oldest due ticket is unpublished.
    pub unpublished: Option<Duration>,
    /// How long the oldest notification could have been tried and was not, of channels that nothing holds up.
    pub unsent: Option<Duration>,
    /// The same of heartbeats of jobs, of addresses that nothing holds up. Those behind an earlier one of their job do not count.
    pub unsent_heartbeats: Option<Duration>,
    /// Since when no channel has accepted anything, if there are channels and all of them fail.
    pub channels_fail: Option<Duration>,
    /// Whether this scheduler is connected to RabbitMQ.
    pub is_connected: bool,
}

/// Returns what is wrong with the platform, each in words; empty: it is well.
pub fn problems(signs: &PlatformSigns) -> Vec<String> {
    let over = |value: Option<Duration>, limit: Duration| value.filter(|value| *value > limit);
    let mut found = Vec::new();
    if !signs.is_connected {
        found.push("this scheduler is not connected to RabbitMQ".to_owned());
    }
    if let Some(age) = over(signs.overdue, MAX_CLAIM_DELAY) {
        found.push(format!("a firing has been due for {} s, and nobody claims it", age.as_secs()));
    }
    if let Some(age) = over(signs.unpublished, MAX_PUBLISH_DELAY) {
        found.push(format!("a ticket has been due for {} s, and is not published", age.as_secs()));
    }
    if let Some(age) = over(signs.unsent, MAX_SEND_DELAY) {
        let age = age.as_secs();
        found.push(format!("a notification has been due for {age} s, and nobody sends it"));
    }
    if let Some(age) = over(signs.unsent_heartbeats, MAX_HEARTBEAT_DELAY) {
        let age = age.as_secs();
        found.push(format!("a heartbeat of a job has been due for {age} s, and nobody tries it"));
    }
    if let Some(age) = over(signs.channels_fail, MAX_CHANNELS_FAIL) {
        found.push(format!("no channel accepts a notification, for {} s", age.as_secs()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set = fn(&mut PlatformSigns, Option<Duration>);

    #[test]
    fn each_sign_beyond_its_limit_is_a_problem_and_none_within_it() {
        let well = PlatformSigns { is_connected: true, ..PlatformSigns::default() };
        assert_eq!(problems(&well), Vec::<String>::new());
        let signs: [(Set, Duration, &str); 5] = [
            (|signs, age| signs.overdue = age, MAX_CLAIM_DELAY, "claims"),
            (|signs, age| signs.unpublished = age, MAX_PUBLISH_DELAY, "published"),
            (|signs, age| signs.unsent = age, MAX_SEND_DELAY, "sends"),
            (|signs, age| signs.unsent_heartbeats = age, MAX_HEARTBEAT_DELAY, "tries"),
            (|signs, age| signs.channels_fail = age, MAX_CHANNELS_FAIL, "accepts"),
        ];
        for (set, limit, word) in signs {
            let mut signs = well;
            set(&mut signs, Some(limit));
            assert_eq!(problems(&signs), Vec::<String>::new());
            set(&mut signs, Some(limit + Duration::from_secs(1)));
            let found = problems(&signs);
            assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
        }
        let cut_off = PlatformSigns { is_connected: false, ..well };
        assert!(problems(&cut_off)[0].contains("RabbitMQ"));
    }
}
