//! Limits how many log-ins are at the provider at the same time, in all and from one address, so that no address takes all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sexton_model::network::limited_unit;

/// Log-ins by the provider at the same time; more are refused. Log-ins by password have another limit.
const MAX_LOG_INS: usize = 16;
/// Log-ins from one address at the same time; a company may share an address.
const MAX_LOG_INS_PER_ADDRESS: usize = 4;

/// The log-ins under way on this server, by address. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ConcurrencyLimit(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The right to one log-in, given back when it is dropped.
#[derive(Debug)]
pub(super) struct ConcurrencyPermit {
    limit: ConcurrencyLimit,
    unit: IpAddr,
}

impl ConcurrencyLimit {
    /// Takes a permit; `None`: all are taken, or all of this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<ConcurrencyPermit> {
        let unit = limited_unit(address);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = taken.get(&unit).copied().unwrap_or_default();
        if of_address >= MAX_LOG_INS_PER_ADDRESS || taken.values().sum::<usize>() >= MAX_LOG_INS {
            return None;
        }
        taken.insert(unit, of_address + 1);
        Some(ConcurrencyPermit { limit: self.clone(), unit })
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut taken = self.limit.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_address) = taken.get_mut(&self.unit) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.remove(&self.unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_four_permits_and_all_together_sixteen() {
        let limit = ConcurrencyLimit::default();
        let take = |address: &str| limit.take(address.parse().unwrap());
        let mut taken: Vec<_> = (0..4).map(|_| take("2001:db8::1").unwrap()).collect();
        assert!(take("2001:db8::1").is_none());
        assert!(take("2001:db8::2").is_none(), "one person has as many addresses");
        for number in 0..12 {
            taken.push(take(&format!("203.0.113.{}", number % 3)).unwrap());
        }
        assert!(take("203.0.113.9").is_none());
        taken.pop();
        drop(take("203.0.113.9").unwrap());
        drop(take("203.0.113.9").unwrap());
        drop(taken);
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
