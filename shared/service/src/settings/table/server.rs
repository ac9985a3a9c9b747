//! `sexton serve`: the console, the API, and the pings of foreign jobs.

use crate::settings::rule::{Address, BasePath, HeaderName, LocalRole, Networks, Switch, Whole};
use crate::settings::setting::Program::Server;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

pub(crate) static SERVE_ADDR: Setting<Address> = Setting {
    about: SettingInfo {
        name: "SERVE_ADDR",
        meaning: "The address of the console, the API and pings. Port 0 takes a free port, which the log names.",
        unit: "address",
        fallback: Fallback::Text("127.0.0.1:8420"),
        trade_off: "In a container use `0.0.0.0:8420`. It speaks HTTP: put a proxy with TLS before it where requests cross a \
                    network that you do not trust.",
        programs: &[Server],
        secret: false,
    },
    rule: Address,
};

pub(crate) static SEXTON_BASE_PATH: Setting<BasePath> = Setting {
    about: SettingInfo {
        name: "SEXTON_BASE_PATH",
        meaning: "The path below which a proxy shows console, API and pings, like `/sexton`.",
        unit: "path",
        fallback: Fallback::Without("they have a host of their own"),
        trade_off: "Every address that the server writes begins with it. The proxy may pass it on or remove it; one that begins \
                    like a page, such as `/jobs`, it must pass on.",
        programs: &[Server],
        secret: false,
    },
    rule: BasePath,
};

pub(crate) static SERVE_LOCAL_ROLE: Setting<LocalRole> = Setting {
    about: SettingInfo {
        name: "SERVE_LOCAL_ROLE",
        meaning: "What requests from this machine may do without a token or a log-in.",
        unit: "role",
        fallback: Fallback::Text("none"),
        trade_off: "For a first look, on a machine whose users and programs you trust. A request that came through a proxy, or \
                    from a page of another site, needs a token all the same.",
        programs: &[Server],
        secret: false,
    },
    rule: LocalRole,
};

pub(crate) static SERVE_REQUESTS_PER_MINUTE: Setting<Whole> = Setting {
    about: SettingInfo {
        name: "SERVE_REQUESTS_PER_MINUTE",
        meaning: "The number of requests of one token or person in a minute that a process answers, 100 of them at once; the \
                  others get 429. 0 answers any number.",
        unit: "requests",
        fallback: Fallback::Text("600"),
        trade_off: "More lets one program keep the others waiting. Fewer slows down programs that look often.",
        programs: &[Server],
        secret: false,
    },
    rule: Whole { min: 0, max: 1_000_000 },
};

pub(crate) static SERVE_BEHIND_TLS: Setting<Switch> = Setting {
    about: SettingInfo {
        name: "SERVE_BEHIND_TLS",
        meaning: "Whether all clients come by HTTPS, through a proxy that does not say so.",
        unit: "switch",
        fallback: Fallback::Text("false"),
        trade_off: "With `true` browsers send the cookie of a session by HTTPS alone, so nobody can log in by plain HTTP. \
                    Rather set `SERVE_TRUSTED_PROXIES`, by which each request says how it came.",
        programs: &[Server],
        secret: false,
    },
    rule: Switch,
};

pub(crate) static SERVE_TRUSTED_PROXIES: Setting<Networks> = Setting {
    about: SettingInfo {
        name: "SERVE_TRUSTED_PROXIES",
        meaning: "The addresses from which proxies connect. What they say in `X-Forwarded-For` is the client's address in the \
                  audit and for limits, and `X-Forwarded-Proto: https` lets people log in.",
        unit: "networks",
        fallback: Fallback::Without(
            "what proxies say counts for nothing, and everybody behind one shares its limits",
        ),
        trade_off: "Everybody at these addresses can pass for any address, and with `SERVE_PROXY_USER_HEADER` for any person: \
                    name the proxies alone, and let them replace these headers.",
        programs: &[Server],
        secret: false,
    },
    rule: Networks,
};

pub(crate) static SERVE_PROXY_USER_HEADER: Setting<HeaderName> = Setting {
    about: SettingInfo {
        name: "SERVE_PROXY_USER_HEADER",
        meaning: "The header in which trusted proxies name the person whom they have logged in, as `proxy NAME` in the audit.",
        unit: "header",
        fallback: Fallback::Without("people log in with accounts"),
        trade_off: "Needs `SERVE_TRUSTED_PROXIES`, and `SERVE_PROXY_ROLE` or `SERVE_PROXY_ROLE_HEADER`. The proxy must remove \
                    the header from requests that bring it.",
        programs: &[Server],
        secret: false,
    },
    rule: HeaderName,
};

pub(crate) static SERVE_PROXY_ROLE_HEADER: Setting<HeaderName> = Setting {
    about: SettingInfo {
        name: "SERVE_PROXY_ROLE_HEADER",
        meaning: "The header in which trusted proxies say what that person may do: viewer, operator, editor or admin.",
        unit: "header",
        fallback: Fallback::Without("everybody has `SERVE_PROXY_ROLE`"),
        trade_off: "A person without the header has `SERVE_PROXY_ROLE`; one with another word in it is refused.",
        programs: &[Server],
        secret: false,
    },
    rule: HeaderName,
};

pub(crate) static SERVE_PROXY_ROLE: Setting<LocalRole> = Setting {
    about: SettingInfo {
        name: "SERVE_PROXY_ROLE",
        meaning: "What people may do whom a proxy names without a role.",
        unit: "role",
        fallback: Fallback::Text("none"),
        trade_off: "With `none` they are refused.",
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
