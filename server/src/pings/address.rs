//! Parses the address of a ping.
//!
//! ```text
//! /ping/<id>               /ping/<key>/<name>               success
//! /ping/<id>/start         /ping/<key>/<name>/start         a run begins
//! /ping/<id>/fail          /ping/<key>/<name>/fail          it failed
//! /ping/<id>/log           /ping/<key>/<name>/log           a text for people
//! /ping/<id>/<0..255>      /ping/<key>/<name>/<0..255>      its exit status: 0 success, else failure
//! ```
//!
//! `?rid=<uuid>` names the run, `?create=1` creates the check of a name. The form is that of Healthchecks
//! (<https://healthchecks.io/docs/http_api/>), so its clients work unchanged.

use sexton_model::check::{PingKind, is_check_name};
use uuid::Uuid;

/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 100;

/// Which check is pinged.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Addressee {
    /// By its id.
    Id(Uuid),
    /// By its name, with a key.
    Name {
        /// The key.
        key: String,
        /// The check's name.
        name: String,
    },
}

/// A ping's address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PingAddress {
    /// Which check is pinged.
    pub addressee: Addressee,
    /// What the ping reports.
    pub kind: PingKind,
    /// The exit status.
    pub exit_code: Option<u8>,
    /// The run.
    pub rid: Option<Uuid>,
    /// Whether a check of this name is created if there is none.
    pub create: bool,
}

/// Why an address is none; displayed, it is the answer to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// No path of a ping.
    #[error("not found")]
    NotFound,
    /// The `rid` is no UUID.
    #[error("invalid rid: it must be a UUID")]
    Rid,
}

/// Parses what comes after `/ping/`, and the query.
///
/// # Errors
///
/// [`AddressError`].
pub fn parse(path: &str, query: &str) -> Result<PingAddress, AddressError> {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    let addressee = match first.parse::<Uuid>() {
        // Other notations of a UUID could be keys.
        Ok(id) if first.len() == 36 => Addressee::Id(id),
        _ => {
            let name = parts.next().ok_or(AddressError::NotFound)?;
            let is_key = !first.is_empty()
                && first.len() <= MAX_KEY_BYTES
                && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            if !(is_key && is_check_name(name)) {
                return Err(AddressError::NotFound);
            }
            Addressee::Name { key: first.to_owned(), name: name.to_owned() }
        }
    };
    let signal = parts.next().filter(|signal| !signal.is_empty());
    if parts.next().is_some() {
        return Err(AddressError::NotFound);
    }
    let (kind, exit_code) = signal
        .map_or(Some((PingKind::Success, None)), read_signal)
        .ok_or(AddressError::NotFound)?;
    let value = |wanted: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value).next_back()
    };
    let rid = value("rid").map(|rid| rid.parse().map_err(|_| AddressError::Rid)).transpose()?;
    let create = matches!((&addressee, value("create")), (Addressee::Name { .. }, Some("1")));
    Ok(PingAddress { addressee, kind, exit_code, rid, create })
}

fn read_signal(signal: &str) -> Option<(PingKind, Option<u8>)> {
    match signal {
        "start" => Some((PingKind::Start, None)),
        "fail" => Some((PingKind::Fail, None)),
        "log" => Some((PingKind::Log, None)),
        // No sign, no more than three digits.
        status if status.bytes().all(|byte| byte.is_ascii_digit()) && status.len() <= 3 => {
            let code: u8 = status.parse().ok()?;
            Some((if code == 0 { PingKind::Success } else { PingKind::Fail }, Some(code)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "5b8a9f3e-0000-4000-8000-000000000001";

    fn by_id(kind: PingKind, exit_code: Option<u8>) -> PingAddress {
        let addressee = Addressee::Id(ID.parse().unwrap());
        PingAddress { addressee, kind, exit_code, rid: None, create: false }
    }

    #[test]
    fn every_signal_is_read() {
        for (signal, kind, code) in [
            ("", PingKind::Success, None),
            ("/", PingKind::Success, None),
            ("/start", PingKind::Start, None),
            ("/fail", PingKind::Fail, None),
            ("/log", PingKind::Log, None),
            ("/0", PingKind::Success, Some(0)),
            ("/1", PingKind::Fail, Some(1)),
            ("/255", PingKind::Fail, Some(255)),
        ] {
            assert_eq!(parse(&format!("{ID}{signal}"), ""), Ok(by_id(kind, code)), "{signal}");
        }
        for signal in ["/256", "/-1", "/+1", "/stop", "/start/", "/start/now", "/0001"] {
            let refused = Err(AddressError::NotFound);
            assert_eq!(parse(&format!("{ID}{signal}"), ""), refused, "{signal}");
        }
    }

    #[test]
    fn a_key_and_a_name_address_a_check() {
        let address =
            parse("sxp_abc-1/db.backup/start", "create=1&rid=5b8a9f3e-0000-4000-8000-000000000002");
        let address = address.unwrap();
        let (key, name) = ("sxp_abc-1".to_owned(), "db.backup".to_owned());
        assert_eq!(address.addressee, Addressee::Name { key, name });
        assert!(address.create && address.rid.is_some() && address.kind == PingKind::Start);
        for path in ["", "key", "key/", "key/Name", "k%20y/name", "key/na%20me", "/name"] {
            assert_eq!(parse(path, ""), Err(AddressError::NotFound), "{path}");
        }
        assert!(!parse(ID, "create=1").unwrap().create, "an id creates nothing");
    }

    #[test]
    fn a_rid_that_is_no_uuid_is_refused() {
        for rid in ["rid=", "rid=1", "rid=x&a=b"] {
            assert_eq!(parse(ID, rid), Err(AddressError::Rid), "{rid}");
        }
        assert_eq!(parse(ID, "a=b&rid").unwrap().rid, None);
    }

    proptest! {
        #[test]
        fn no_address_makes_it_panic(path in "\\PC{0,80}", query in "\\PC{0,80}") {
            let _ = parse(&path, &query);
        }
    }
}
