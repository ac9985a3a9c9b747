//! Which faults are struck, and in which order: a function of the seed.

use std::collections::HashMap;

use super::fault::Fault;
use super::random::Random;

/// How much is to be struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Faults in all.
    pub total: usize,
    /// Of each kind, at least.
    pub each: usize,
}

/// The faults of a run, each `amount.each` times at least, in an order that the seed decides.
///
/// What is beyond those is drawn from the kinds that leave the servers alone: a server's faults are
/// everybody's, so more of them would only be fewer of the others.
pub fn plan(seed: u64, kinds: &[Fault], amount: Amount) -> Vec<Fault> {
    let mut random = Random::new(seed);
    let mut faults: Vec<Fault> = Vec::with_capacity(amount.total);
    for kind in kinds {
        faults.extend(std::iter::repeat_n(*kind, kind.least(amount.each)));
    }
    let calm: Vec<Fault> = kinds.iter().copied().filter(|kind| !kind.is_of_server()).collect();
    while faults.len() < amount.total && !calm.is_empty() {
        faults.push(calm[random.below(calm.len())]);
    }
    random.shuffle(&mut faults);
    faults
}

/// What is left of a plan when `struck` has been struck already, in the same order.
pub fn left(plan: &[Fault], struck: &[Fault]) -> Vec<Fault> {
    let mut done: HashMap<Fault, usize> = HashMap::new();
    for fault in struck {
        *done.entry(*fault).or_default() += 1;
    }
    let is_left = |fault: &&Fault| match done.get_mut(fault) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    plan.iter().filter(is_left).copied().collect()
}

/// The kinds that were struck less than `each` times, with how often they were.
pub fn short_of(kinds: &[Fault], struck: &[Fault], each: usize) -> Vec<(Fault, usize)> {
    let count = |kind: Fault| struck.iter().filter(|fault| **fault == kind).count();
    kinds
        .iter()
        .map(|kind| (*kind, count(*kind)))
        .filter(|(kind, count)| *count < kind.least(each))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMOUNT: Amount = Amount { total: 1_000, each: 10 };

    #[test]
    fn a_plan_has_each_kind_often_enough_and_is_the_same_for_the_same_seed() {
        let kinds = Fault::all();
        let faults = plan(1, &kinds, AMOUNT);
        assert!(faults.len() >= AMOUNT.total);
        assert_eq!(short_of(&kinds, &faults, AMOUNT.each), []);
        assert_eq!(faults, plan(1, &kinds, AMOUNT));
        assert_ne!(faults, plan(2, &kinds, AMOUNT));
    }

    #[test]
    fn server_faults_are_kept_to_the_minimum() {
        let faults = plan(1, &Fault::all(), AMOUNT);
        let of_servers = faults.iter().filter(|fault| fault.is_of_server()).count();
        let kinds = Fault::all().into_iter().filter(|fault| fault.is_of_server());
        assert_eq!(of_servers, kinds.map(|kind| kind.least(AMOUNT.each)).sum::<usize>());
    }

    #[test]
    fn the_remaining_plan_keeps_its_order() {
        let faults = plan(3, &Fault::all(), AMOUNT);
        let (first, rest) = faults.split_at(400);
        let rest_of_some = left(&faults, first);
        assert_eq!(rest_of_some.len(), rest.len());
        let (mut wanted, mut found) = (rest.to_vec(), rest_of_some);
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted);
        assert_eq!(left(&faults, &faults), []);
        assert_eq!(left(&faults, &[]), faults);
    }

    #[test]
    fn a_fault_injected_too_rarely_is_named_with_its_count() {
        let kinds = Fault::all();
        let mut faults = plan(4, &kinds, Amount { total: 0, each: 2 });
        assert_eq!(short_of(&kinds, &faults, 2), []);
        let missing = faults.iter().position(|fault| *fault == kinds[3]).unwrap();
        faults.remove(missing);
        assert_eq!(short_of(&kinds, &faults, 2), [(kinds[3], 1)]);
    }
}
