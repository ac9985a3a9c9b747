//! Decides to which addresses a request may go.
//!
//! A URL names a host, and the owner of that name decides to which address it resolves. So that no owner can
//! direct a request at systems that only this process can reach (a database, a cloud's metadata service), a
//! request goes to public addresses alone unless its configuration allows the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the kind of an address to which requests must not go; `None` for a public one.
pub fn blocked_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an address of this network"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("an address of a carrier's network"),
        [127, ..] => Some("a loopback address"),
        [169, 254, ..] => Some("a link-local address"),
        // A public address by its number; on each of Azure's machines the platform's own (metadata, keys, DNS).
        [168, 63, 129, 16] => Some("an address of a cloud's platform"),
        [224..=239, ..] => Some("a multicast address"),
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn v6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0, 0, 0, 0, 0, 0xffff, ..] => Some("an IPv4 address in the form of an IPv6 address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        // Gateways to IPv4: the embedded address decides.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        // Reserved blocks within allocated ranges.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("a reserved address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("an address that nobody was given"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_not_refused() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "172.32.0.0",
            "192.167.255.255",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert_eq!(blocked_kind(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn what_is_not_public_is_refused_by_its_kind() {
        for (address, kind) in [
            ("0.0.0.0", "this network"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "carrier"),
            ("127.0.0.1", "loopback"),
            ("127.255.0.1", "loopback"),
            ("169.254.169.254", "link-local"),
            ("168.63.129.16", "cloud's platform"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("255.255.255.255", "reserved"),
            ("198.18.0.1", "reserved"),
            ("::", "nobody"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "form of an IPv6"),
            ("::ffff:1.1.1.1", "form of an IPv6"),
            ("::7f00:1", "nobody"),
            ("fd00::1", "private"),
            ("fc00::1", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "nobody"),
            ("ff02::1", "multicast"),
            ("64:ff9b::7f00:1", "loopback"),
            ("64:ff9b:1::1", "nobody"),
            ("2002:a00:1::", "private"),
            ("2001::1", "reserved"),
            ("2001:db8::1", "reserved"),
        ] {
            let refused = blocked_kind(address.parse().unwrap());
            assert!(refused.is_some_and(|reason| reason.contains(kind)), "{address}: {refused:?}");
        }
    }
}
