//! The pools of a worker, and the number of slots of each.

use super::{Name, Rule, Whole};
use crate::settings::problem::quote_shortened;

/// Pools as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolSlots {
    /// The names, distinct.
    pub(crate) names: Vec<String>,
    /// The slots of each, if given.
    pub(crate) slots: Option<Vec<u32>>,
}

/// Names, separated by commas, all with a number of slots or all without; spaces do not count, nor does a repeated
/// name without numbers.
pub(crate) struct PoolList {
    pub(crate) name: Name,
    pub(crate) max_pools: usize,
    /// The range for one pool, and for all together.
    pub(crate) slots: Whole,
}

impl Rule for PoolList {
    type Value = PoolSlots;

    fn parse(&self, text: &str) -> Result<PoolSlots, String> {
        let mut names: Vec<String> = Vec::new();
        let mut slots = Vec::new();
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        for part in &parts {
            let describe = |reason: String| match *part {
                "" => "a name between the commas is missing".to_owned(),
                _ => format!("{}: {reason}", quote_shortened(part)),
            };
            let (name, number) = match part.split_once(':') {
                Some((name, number)) => (name.trim_end(), Some(number.trim_start())),
                None => (*part, None),
            };
            let name = self.name.parse(name).map_err(describe)?;
            if let Some(number) = number {
                if names.contains(&name) {
                    return Err(describe("a pool is named twice".to_owned()));
                }
                slots.push(
                    self.slots
                        .parse(number)
                        .map_err(|reason| describe(format!("its slots are {reason}")))?,
                );
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > self.max_pools {
            return Err(format!("{} names are too many", names.len()));
        }
        if !slots.is_empty() && slots.len() != parts.len() {
            return Err("some pools have a number of slots and some have none".to_owned());
        }
        // Each of the bounded number of pools has a bounded number of slots.
        if slots.iter().sum::<u32>() > self.slots.max {
            return Err(format!("more than {} slots together", self.slots.max));
        }
        Ok(PoolSlots { names, slots: Some(slots).filter(|slots| !slots.is_empty()) })
    }

    fn allowed(&self) -> String {
        format!(
            "1 to {} names separated by commas, each {}; all or none with slots, like \
             default:4,reports:2, {} to {} each and at most {} together",
            self.max_pools,
            self.name.allowed(),
            self.slots.min,
            self.slots.max,
            self.slots.max
        )
    }
}

/// Distributes `slots` over `pools` pools in turn.
pub(crate) fn distribute_slots(slots: u32, pools: usize) -> Vec<u32> {
    let all = u32::try_from(pools).unwrap_or(u32::MAX).max(1);
    (0..all).map(|pool| slots / all + u32::from(pool < slots % all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_dealt_out_in_turn() {
        assert_eq!(distribute_slots(8, 1), [8]);
        assert_eq!(distribute_slots(8, 3), [3, 3, 2]);
        assert_eq!(distribute_slots(1, 2), [1, 0]);
    }
}
