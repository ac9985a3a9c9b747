//! `sexton serve`: log-in by an OpenID provider.

use crate::settings::rule::{IssuerUrl, PublicUrl, Roles, Scopes, Text};
use crate::settings::setting::Program::Server;
use crate::settings::setting::{Fallback, Setting, SettingInfo};

const OFF: Fallback = Fallback::Without("people log in with accounts alone");

pub(crate) static SERVE_OIDC_ISSUER: Setting<IssuerUrl> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_ISSUER",
        meaning: "The OpenID provider by which people can log in, beside accounts, as `oidc NAME` in the audit.",
        unit: "URL",
        fallback: OFF,
        trade_off: "Needs `SERVE_OIDC_CLIENT_ID`, `SERVE_OIDC_ROLES` and `SERVE_PUBLIC_URL`. A person who controls the provider can be \
                    anybody to whom those give a role. Its host may have a private address; other hosts that it names for its \
                    endpoints need public ones.",
        programs: &[Server],
        secret: false,
    },
    rule: IssuerUrl,
};

pub(crate) static SERVE_OIDC_CLIENT_ID: Setting<Text> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_CLIENT_ID",
        meaning: "By which the provider knows the console.",
        unit: "text",
        fallback: OFF,
        trade_off: "Tokens for other clients are refused.",
        programs: &[Server],
        secret: false,
    },
    rule: Text { what: "the id of the client at the provider", max_bytes: 300 },
};

pub(crate) static SERVE_OIDC_CLIENT_SECRET: Setting<Text> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_CLIENT_SECRET",
        meaning: "The secret that the provider gave the client.",
        unit: "text",
        fallback: Fallback::Without("the client is a public one, which PKCE alone protects"),
        trade_off: "With it nobody else can use a code that the provider issued for this client. Most providers require it.",
        programs: &[Server],
        secret: true,
    },
    rule: Text { what: "the client's secret", max_bytes: 1_000 },
};

pub(crate) static SERVE_OIDC_ROLES: Setting<Roles> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_ROLES",
        meaning: "Which role people get by a text in a claim of their ID token; of several the highest. `CLAIM` is a name, or a path \
                  with dots, and ends at the first colon that begins no `://`.",
        unit: "rules",
        fallback: OFF,
        trade_off: "Nobody else gets in. `aud:CLIENT_ID=viewer` lets everybody in to whom the provider issues a token. A change \
                    counts from the next log-in on.",
        programs: &[Server],
        secret: false,
    },
    rule: Roles,
};

pub(crate) static SERVE_OIDC_NAME_CLAIM: Setting<Text> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_NAME_CLAIM",
        meaning: "The claim that names a person in the audit. `email` counts only with `email_verified`.",
        unit: "claim",
        fallback: Fallback::Text("email"),
        trade_off: "At many providers people choose `preferred_username` and `name` themselves, and could take the name of \
                    somebody else: take one that your provider keeps unique. `sub` always is, and says nothing to a reader.",
        programs: &[Server],
        secret: false,
    },
    rule: Text { what: "the name of a claim", max_bytes: 200 },
};

pub(crate) static SERVE_OIDC_SCOPES: Setting<Scopes> = Setting {
    about: SettingInfo {
        name: "SERVE_OIDC_SCOPES",
        meaning: "What is requested of the provider.",
        unit: "scopes",
        fallback: Fallback::Text("openid profile email"),
        trade_off: "Some providers add groups only with a scope of their own, such as `groups`, and refuse scopes that they do \
                    not know.",
        programs: &[Server],
        secret: false,
    },
    rule: Scopes { max_bytes: 500 },
};

pub(crate) static SERVE_PUBLIC_URL: Setting<PublicUrl> = Setting {
    about: SettingInfo {
        name: "SERVE_PUBLIC_URL",
        meaning: "The address at which browsers reach the console. The provider sends people back to `/log-in/oidc/callback` below it.",
        unit: "URL",
        fallback: OFF,
        trade_off: "With the name of a proxy before it, not `SERVE_ADDR`. What a request says about its host counts for nothing here.",
        programs: &[Server],
        secret: false,
    },
    rule: PublicUrl,
};
