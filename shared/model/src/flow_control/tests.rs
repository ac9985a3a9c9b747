use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn destination(number: usize) -> Destination {
    Destination { pool: format!("p{number}"), state: State::Pending }
}

const fn response(accepted: usize, refused: usize) -> Response {
    Response { accepted, refused, drained: false }
}

#[test]
fn a_queue_that_refuses_everything_gets_one_probe_after_a_longer_rest_each_time() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    assert_eq!(flow.window(&full, at(0)), FULL_WINDOW);
    let mut now = 0;
    let mut waits = Vec::new();
    for _ in 0..9 {
        let wait = flow.observe(&full, response(0, 500), at(now)).num_seconds();
        let pause = wait.min(30);
        assert_eq!(flow.window(&full, at(now + pause - 1)), 0, "it rests");
        assert_eq!(flow.window(&full, at(now + pause)), 1, "then it is probed");
        assert_eq!(flow.window(&destination(2), at(now)), FULL_WINDOW, "others are not limited");
        waits.push(wait);
        now += pause;
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn a_queue_that_has_room_again_soon_gets_as_much_as_any() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    for _ in 0..9 {
        flow.observe(&full, response(0, 1), at(0));
    }
    let mut windows = Vec::new();
    while flow.is_limited(&full) {
        let window = flow.window(&full, at(60));
        windows.push(window);
        flow.observe(&full, response(window, 0), at(60));
    }
    assert_eq!(windows, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
}

#[test]
fn a_queue_that_accepts_some_gets_as_many_next_time_without_a_rest() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    assert_eq!(flow.observe(&full, response(40, 460), at(0)), INITIAL_WAIT);
    assert_eq!(flow.window(&full, at(0)), 40);
    flow.observe(&full, response(40, 0), at(0));
    assert_eq!(flow.window(&full, at(0)), 80);
}

#[test]
fn a_destination_of_which_everything_was_accepted_is_forgotten() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    flow.observe(&full, response(0, 1), at(0));
    flow.observe(&full, Response { accepted: 1, refused: 0, drained: true }, at(5));
    assert_eq!(flow, FlowControl::default());
    // A destination that was never limited is not recorded.
    flow.observe(&full, response(500, 0), at(5));
    assert_eq!(flow, FlowControl::default());
}

#[test]
fn a_suspicion_lets_the_relay_probe_at_once_and_changes_nothing_that_it_knows() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    flow.suspect(&full);
    assert_eq!(flow.window(&full, at(0)), 1);
    flow.observe(&full, response(0, 1), at(0));
    flow.suspect(&full);
    assert_eq!(flow.window(&full, at(4)), 0);
}

#[test]
fn a_clock_that_is_set_back_ends_a_rest() {
    let (mut flow, full) = (FlowControl::default(), destination(1));
    flow.observe(&full, response(0, 1), at(0));
    assert_eq!(flow.window(&full, at(-3_600)), 1);
}

#[test]
fn what_is_remembered_is_bounded_and_the_least_limited_is_forgotten_first() {
    let mut flow = FlowControl::default();
    flow.observe(&destination(0), response(300, 200), at(0));
    for number in 1..3 * MAX_LIMITED_DESTINATIONS {
        flow.observe(&destination(number), response(0, 1), at(0));
        assert!(flow.0.len() <= MAX_LIMITED_DESTINATIONS);
    }
    assert!(!flow.is_limited(&destination(0)));
    let last = destination(3 * MAX_LIMITED_DESTINATIONS - 1);
    assert_eq!(flow.window(&last, at(0)), 0, "the new one is remembered");
}

#[test]
fn what_a_small_window_does_not_use_goes_to_the_others() {
    assert_eq!(shares(500, &[500]), [500]);
    assert_eq!(shares(500, &[1, 500]), [1, 499]);
    assert_eq!(shares(500, &[500, 500, 500]), [167, 167, 166]);
    assert_eq!(shares(500, &[0, 500]), [0, 500]);
    assert_eq!(shares(2, &[500, 500, 500]), [1, 1, 0]);
    assert_eq!(shares(500, &[]), [0_usize; 0]);
}

proptest! {
    /// Max-min fairness: no destination gets less than an equal part, unless its window is smaller.
    #[test]
    fn shares_are_fair_and_use_up_what_can_be_used(
        total in 0_usize..2_000,
        windows in prop::collection::vec(0_usize..=FULL_WINDOW, 0..150),
    ) {
        let shares = shares(total, &windows);
        prop_assert_eq!(shares.iter().sum::<usize>(), total.min(windows.iter().sum()));
        for (share, window) in shares.iter().zip(&windows) {
            prop_assert!(share <= window);
            prop_assert!(*share >= (total / windows.len()).min(*window));
        }
    }

    /// However a queue responds, its destination is probed again within half a minute, never gets more than a full
    /// window, and its tickets wait for at most five minutes.
    #[test]
    fn no_responses_starve_or_flood_a_destination(
        responses in prop::collection::vec((0_usize..=500, 0_usize..=500, any::<bool>(), 0_i64..60), 1..60),
    ) {
        let (mut flow, one) = (FlowControl::default(), destination(1));
        let mut now = 0;
        for (accepted, refused, drained, later) in responses {
            let wait = flow.observe(&one, Response { accepted, refused, drained }, at(now));
            prop_assert!(wait >= INITIAL_WAIT && wait <= MAX_TICKET_WAIT);
            prop_assert!((1..=FULL_WINDOW).contains(&flow.window(&one, at(now + 30))));
            if accepted > 0 {
                prop_assert!(flow.window(&one, at(now)) >= 1, "what accepts does not rest");
            }
            now += later;
        }
        // Once it accepts everything it is soon no longer limited.
        for _ in 0..10 {
            now += 30;
            let window = flow.window(&one, at(now));
            flow.observe(&one, response(window, 0), at(now));
        }
        prop_assert!(!flow.is_limited(&one));
    }
}
