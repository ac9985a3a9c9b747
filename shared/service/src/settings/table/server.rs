//! `sexton serve`: the API, and the pings of foreign jobs.

use crate::settings::rule::{Address, LocalRole, Whole};
use crate::settings::setting::Program::Server;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static SERVE_ADDR: Setting<Address> = Setting {
    about: SettingInfo {
        name: "SERVE_ADDR",
        meaning: "The address of the API and of pings. Port 0 takes a free port, which the log names.",
        unit: "address",
        fallback: Fallback::Text("127.0.0.1:8420"),
        trade_off: "In a container use `0.0.0.0:8420`. It speaks HTTP: put a proxy with TLS before it where requests cross a \
                    network that you do not trust.",
        programs: &[Server],
        secret: false,
    },
    rule: Address,
};

pub(crate) static SERVE_LOCAL_ROLE: Setting<LocalRole> = Setting {
    about: SettingInfo {
        name: "SERVE_LOCAL_ROLE",
        meaning: "What requests from this machine may do without a token.",
        unit: "role",
        fallback: Fallback::Text("none"),
        trade_off: "For a first look, on a machine whose users and programs you trust. A request that came through a proxy, or \
                    from a page of another site, needs a token all the same.",
        programs: &[Server],
        secret: false,
    },
    rule: LocalRole,
};

pub(crate) static PINGS_PER_MINUTE: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "PINGS_PER_MINUTE",
        meaning: "The number of pings of one check in a minute that a process accepts; the others are answered with 429.",
        unit: "pings",
        fallback: Fallback::Text("60"),
        trade_off: "A run needs two. Each is a row in PostgreSQL until newer ones take its place.",
        programs: &[Server],
        secret: false,
    },
    rule: Whole { min: 1, max: 1_000_000 },
};
