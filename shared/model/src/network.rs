//! Networks of IP addresses, as `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A network, or a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// A text that is no network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// The part before the slash.
    #[error("not an IP address")]
    Address,
    /// The part behind the slash.
    #[error("not a length of a prefix, which is 0 to 32, or to 128 for IPv6")]
    Prefix,
    /// No connection has such an address: those of IPv4 are compared as IPv4.
    #[error("an IPv4 address written as IPv6; write it as IPv4")]
    Mapped,
    /// Most likely the length is a mistake.
    #[error("bits of the address are set behind its prefix")]
    HostBits,
}

impl Network {
    /// Returns whether the address is in it. An IPv4 address that is written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }
}

/// Returns the network that an address belongs to for limits: the address itself, or the /64 that one customer has of IPv6.
pub fn limited_unit(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => address,
        address @ IpAddr::V6(_) => masked(address, 64),
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            std::net::Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address)?;
        if address.to_canonical() != address {
            return Err(NetworkError::Mapped);
        }
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= bits).ok_or(NetworkError::Prefix)?
            }
            Some(_) => return Err(NetworkError::Prefix),
        };
        if masked(address, prefix) != address {
            return Err(NetworkError::HostBits);
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_contains_its_addresses_and_no_others() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("192.168.4.0/23", "192.168.5.255", "192.168.6.0"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "::2"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1"),
        ] {
            assert!(contains(network, inside), "{network} {inside}");
            assert!(!contains(network, outside), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for (text, error) in [
            ("", NetworkError::Address),
            ("proxy.example", NetworkError::Address),
            ("10.0.0.0/33", NetworkError::Prefix),
            ("10.0.0.0/", NetworkError::Prefix),
            ("10.0.0.0/+8", NetworkError::Prefix),
            ("::/129", NetworkError::Prefix),
            ("10.0.0.1/8", NetworkError::HostBits),
            ("::ffff:10.0.0.0/104", NetworkError::Mapped),
        ] {
            assert_eq!(text.parse::<Network>(), Err(error), "{text}");
        }
    }

    #[test]
    fn addresses_of_one_customer_are_limited_together() {
        let unit = |text: &str| limited_unit(text.parse().unwrap()).to_string();
        assert_eq!(unit("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(unit("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(unit("10.0.0.7"), "10.0.0.7");
    }
}
