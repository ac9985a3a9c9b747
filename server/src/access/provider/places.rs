//! Places of people who are on their way to or from the provider: a few, and fewer for one address, so that nobody takes all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sexton_model::network::limited_unit;

/// People at the same time; more are refused. Passwords have places of their own.
const PLACES: usize = 16;
/// Those of one address, which a company may share.
const PER_ADDRESS: usize = 4;

/// The places of a server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    unit: IpAddr,
}

impl Places {
    /// Takes a place; `None`: all are taken, or all of this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        let unit = limited_unit(address);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = taken.get(&unit).copied().unwrap_or_default();
        if of_address >= PER_ADDRESS || taken.values().sum::<usize>() >= PLACES {
            return None;
        }
        taken.insert(unit, of_address + 1);
        Some(Place { places: self.clone(), unit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn an_address_has_four_places_and_all_together_sixteen() {
        let places = Places::default();
        let take = |address: &str| places.take(address.parse().unwrap());
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
        assert!(places.0.lock().unwrap().is_empty());
    }
}
