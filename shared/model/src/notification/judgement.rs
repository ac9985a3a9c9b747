//! Whether a notification is still needed at the moment at which it would be sent.

use crate::incident::{IncidentState, NotificationKind};

/// What decides whether a notification is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, and all combinations exist")]
pub struct Standing {
    /// What it reports.
    pub kind: NotificationKind,
    /// Whether it was tried: the receiver may have it then, even if it did not answer.
    pub was_tried: bool,
    /// Whether it was written to be sent later, unless somebody responds before.
    pub is_delayed: bool,
    /// The incident's state; `None`: a test of the channel.
    pub incident: Option<IncidentState>,
    /// Whether the incident is silenced now.
    pub is_silenced: bool,
    /// Whether the channel was sent before that the incident is open, or may have been.
    pub knows_incident: bool,
}

/// What becomes of a notification that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is sent.
    Send,
    /// Nobody needs it any more.
    Drop(DropReason),
}

/// Why nobody needs a notification any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// The incident is silenced.
    Silenced,
    /// The incident was over before the channel learned of it.
    Over,
    /// Somebody has responded to the incident.
    Acknowledged,
    /// The incident is open again.
    Reopened,
    /// The channel never learned that the incident was open.
    Unknown,
}

impl DropReason {
    /// Returns the reason for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Silenced => "the incident is silenced",
            Self::Over => "the incident was over before it was sent",
            Self::Acknowledged => "somebody has acknowledged the incident",
            Self::Reopened => "the incident is open again",
            Self::Unknown => "the channel never learned that the incident was open",
        }
    }
}

/// Decides about a notification that is due.
///
/// - A test is always sent.
/// - While an incident is silenced, nothing is sent but its end, to channels that know of the incident.
/// - `opened` and `reopened` are dropped if the incident is over; but not once they were tried, since the receiver may have
///   them and then needs the end as well. One that waited for a response is dropped if there was one.
/// - `reminder` and `escalated` are for incidents that are open: a response or the end drops them.
/// - `acknowledged` and `resolved` go to channels that know of the incident. If the incident is meanwhile over, or open again,
///   what follows says more.
pub const fn judge(standing: Standing) -> Verdict {
    use IncidentState::{Acknowledged, Open, Resolved};
    use NotificationKind as Kind;
    let Some(state) = standing.incident else { return Verdict::Send };
    let Standing { kind, was_tried, is_delayed, is_silenced, knows_incident, .. } = standing;
    if is_silenced && !matches!(kind, Kind::Resolved | Kind::Test) {
        return Verdict::Drop(DropReason::Silenced);
    }
    match (kind, state) {
        (Kind::Opened | Kind::Reopened, Acknowledged) if is_delayed && !was_tried => {
            Verdict::Drop(DropReason::Acknowledged)
        }
        (Kind::Reminder | Kind::Escalated, Acknowledged) => Verdict::Drop(DropReason::Acknowledged),
        (Kind::Reminder | Kind::Escalated, Resolved) => Verdict::Drop(DropReason::Over),
        (Kind::Acknowledged | Kind::Resolved, _) if !knows_incident => {
            Verdict::Drop(DropReason::Unknown)
        }
        (Kind::Opened | Kind::Reopened | Kind::Acknowledged, Resolved) if !was_tried => {
            Verdict::Drop(DropReason::Over)
        }
        (Kind::Acknowledged | Kind::Resolved, Open) if !was_tried => {
            Verdict::Drop(DropReason::Reopened)
        }
        // Acknowledged before it was over, so this end is of an earlier opening.
        (Kind::Resolved, Acknowledged) if !was_tried => Verdict::Drop(DropReason::Reopened),
        _ => Verdict::Send,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DropReason as Why;
    use IncidentState::{Acknowledged, Open, Resolved};
    use NotificationKind as Kind;

    const UNTRIED: Standing = Standing {
        kind: Kind::Opened,
        was_tried: false,
        is_delayed: false,
        incident: Some(Open),
        is_silenced: false,
        knows_incident: false,
    };

    fn verdict(change: impl FnOnce(&mut Standing)) -> Verdict {
        let mut standing = UNTRIED;
        change(&mut standing);
        judge(standing)
    }

    #[test]
    fn each_kind_is_needed_in_its_states_alone() {
        let (send, drop) = (Verdict::Send, Verdict::Drop);
        for (kind, states) in [
            (Kind::Opened, [send, send, drop(Why::Over)]),
            (Kind::Reopened, [send, send, drop(Why::Over)]),
            (Kind::Reminder, [send, drop(Why::Acknowledged), drop(Why::Over)]),
            (Kind::Escalated, [send, drop(Why::Acknowledged), drop(Why::Over)]),
            (Kind::Acknowledged, [drop(Why::Reopened), send, drop(Why::Over)]),
            (Kind::Resolved, [drop(Why::Reopened), drop(Why::Reopened), send]),
            (Kind::Test, [send, send, send]),
        ] {
            for (state, expected) in [Open, Acknowledged, Resolved].into_iter().zip(states) {
                let known =
                    Standing { kind, incident: Some(state), knows_incident: true, ..UNTRIED };
                assert_eq!(judge(known), expected, "{kind:?} {state:?}");
            }
        }
    }

    #[test]
    fn an_end_goes_only_to_those_who_learned_of_the_beginning() {
        for kind in [Kind::Acknowledged, Kind::Resolved] {
            let judged = verdict(|s| (s.kind, s.incident) = (kind, Some(Resolved)));
            assert_eq!(judged, Verdict::Drop(Why::Unknown));
        }
    }

    #[test]
    fn what_a_receiver_may_have_is_followed_to_its_end() {
        let tried = verdict(|s| (s.was_tried, s.incident) = (true, Some(Resolved)));
        assert_eq!(tried, Verdict::Send);
        let reminder = |s: &mut Standing| {
            (s.kind, s.was_tried, s.incident) = (Kind::Reminder, true, Some(Resolved));
        };
        assert_eq!(verdict(reminder), Verdict::Drop(Why::Over));
    }

    #[test]
    fn a_silence_leaves_the_end_and_a_test_alone() {
        assert_eq!(verdict(|s| s.is_silenced = true), Verdict::Drop(Why::Silenced));
        let end = |s: &mut Standing| {
            (s.kind, s.incident) = (Kind::Resolved, Some(Resolved));
            (s.is_silenced, s.knows_incident) = (true, true);
        };
        assert_eq!(verdict(end), Verdict::Send);
        assert_eq!(verdict(|s| (s.is_silenced, s.incident) = (true, None)), Verdict::Send);
    }

    #[test]
    fn an_opening_that_waited_for_a_response_is_dropped_by_one() {
        let delayed = verdict(|s| (s.is_delayed, s.incident) = (true, Some(Acknowledged)));
        assert_eq!(delayed, Verdict::Drop(Why::Acknowledged));
    }
}
