//! Which channels learn of an incident.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::incident::Severity;

/// A rule that sends incidents to channels. Each route that matches adds its channels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// Labels that the incident must have; empty: any.
    pub labels: BTreeMap<String, String>,
    /// Severities that match; empty: all.
    pub severities: Vec<Severity>,
    /// Names of the channels, at least one.
    pub channels: Vec<String>,
    /// Who is notified as well when nobody acknowledges the incident.
    pub escalation: Option<Escalation>,
}

/// The channels that learn of an incident that nobody acknowledged in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escalation {
    /// Time since the incident opened.
    pub after: Duration,
    /// Names of the channels, at least one.
    pub channels: Vec<String>,
}

/// A channel that is notified of an incident.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Destination {
    /// The channel's name.
    pub channel: String,
    /// Time since the incident opened; zero: at once. Otherwise only if nobody acknowledges it before.
    pub after: Duration,
}

/// Returns the channels for an incident, each once, with the shortest time of the routes that match. Sorted by name.
pub fn destinations(
    routes: &[Route],
    labels: &BTreeMap<String, String>,
    severity: Severity,
) -> Vec<Destination> {
    let mut shortest: BTreeMap<&str, Duration> = BTreeMap::new();
    let matching = routes.iter().filter(|route| {
        (route.severities.is_empty() || route.severities.contains(&severity))
            && route.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    });
    for route in matching {
        let at_once = route.channels.iter().map(|channel| (channel, Duration::ZERO));
        let later = route.escalation.iter().flat_map(|escalation| {
            escalation.channels.iter().map(|channel| (channel, escalation.after))
        });
        for (channel, after) in at_once.chain(later) {
            let time = shortest.entry(channel).or_insert(after);
            *time = after.min(*time);
        }
    }
    shortest
        .into_iter()
        .map(|(channel, after)| Destination { channel: channel.to_owned(), after })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(labels: &[(&str, &str)], severities: &[Severity], channels: &[&str]) -> Route {
        Route {
            labels: labels
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            severities: severities.to_vec(),
            channels: channels.iter().map(ToString::to_string).collect(),
            escalation: None,
        }
    }

    fn names(routes: &[Route], labels: &[(&str, &str)], severity: Severity) -> Vec<String> {
        let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let found = destinations(routes, &labels.collect(), severity);
        found.into_iter().map(|one| format!("{}+{}", one.channel, one.after.as_secs())).collect()
    }

    #[test]
    fn every_route_that_matches_adds_its_channels_once() {
        let mut pager = route(&[("team", "billing")], &[Severity::High], &["pager"]);
        let after = Duration::from_mins(15);
        pager.escalation = Some(Escalation { after, channels: vec!["chief".into(), "ops".into()] });
        let routes = [route(&[], &[], &["ops"]), pager];
        let billing = [("team", "billing"), ("user", "7")];
        assert_eq!(names(&routes, &billing, Severity::High), ["chief+900", "ops+0", "pager+0"]);
        assert_eq!(names(&routes, &billing, Severity::Low), ["ops+0"]);
        assert_eq!(names(&routes, &[("team", "ads")], Severity::High), ["ops+0"]);
        assert_eq!(names(&routes[1..], &[], Severity::High), Vec::<String>::new());
    }

    #[test]
    fn the_shortest_time_of_a_channel_counts() {
        let mut first = route(&[], &[], &["a"]);
        first.escalation = Some(Escalation {
            after: Duration::from_secs(9),
            channels: vec!["b".into(), "a".into()],
        });
        let mut second = first.clone();
        second.escalation.as_mut().unwrap().after = Duration::from_secs(5);
        assert_eq!(names(&[first, second], &[], Severity::Low), ["a+0", "b+5"]);
    }
}
