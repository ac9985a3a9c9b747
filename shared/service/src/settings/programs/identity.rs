//! The settings of a log-in by an OpenID provider: all that it needs, or none.

use sexton_model::oidc::{ClientSecret, ProviderSettings};

use crate::settings::reader::Reader;
use crate::settings::rule::Rule;
use crate::settings::setting::Setting;
use crate::settings::table;

/// Returns the provider; `None`: there is no such log-in, or there is a problem.
pub(super) fn read_provider(reader: &mut Reader) -> Option<ProviderSettings> {
    let issuer = reader.value(&table::SERVE_OIDC_ISSUER);
    let has_issuer = reader.is_set(&table::SERVE_OIDC_ISSUER);
    let client_id = needed(reader, &table::SERVE_OIDC_CLIENT_ID, has_issuer);
    let client_secret = reader.value(&table::SERVE_OIDC_CLIENT_SECRET).map(ClientSecret::new);
    let roles = needed(reader, &table::SERVE_OIDC_ROLES, has_issuer);
    let name_claim = reader.value(&table::SERVE_OIDC_NAME_CLAIM);
    let scopes = reader.value(&table::SERVE_OIDC_SCOPES);
    let public_url = needed(reader, &table::SERVE_PUBLIC_URL, has_issuer);
    if !has_issuer {
        let reason = "set SERVE_OIDC_ISSUER, too: without a provider this says nothing";
        reader.refuse_if_set(&table::SERVE_OIDC_CLIENT_ID, reason);
        reader.refuse_if_set(&table::SERVE_OIDC_CLIENT_SECRET, reason);
        reader.refuse_if_set(&table::SERVE_OIDC_ROLES, reason);
        reader.refuse_if_set(&table::SERVE_OIDC_NAME_CLAIM, reason);
        reader.refuse_if_set(&table::SERVE_OIDC_SCOPES, reason);
        reader.refuse_if_set(&table::SERVE_PUBLIC_URL, reason);
    }
    Some(ProviderSettings {
        issuer: issuer?,
        client_id: client_id?,
        client_secret,
        scopes: scopes?,
        name_claim: name_claim?,
        roles: roles?,
        public_url: public_url?,
    })
}

/// The value of a setting without which there is no log-in by the provider.
fn needed<R: Rule + Sync>(
    reader: &mut Reader,
    setting: &Setting<R>,
    has_issuer: bool,
) -> Option<R::Value> {
    if has_issuer && !reader.is_set(setting) {
        let allowed = setting.rule.allowed();
        reader.refuse(
            setting,
            &format!("not set, and SERVE_OIDC_ISSUER needs it; allowed: {allowed}"),
        );
        return None;
    }
    reader.value(setting)
}
