//! Finds out who sends a request: a token, a person whom a proxy vouches for, a session, or somebody on this machine.

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sexton_model::access::{ActorKind, Role};
use sexton_operations::{accounts, persons, tokens};
use sexton_service::http_server::Peer;
use tokio::time::Instant;

use super::client::{Client, ProxySettings};
use super::{Backend, Caller, CallerKind, local, same_origin, session};
use crate::problem::{Problem, retry_seconds};

/// The name in the audit of requests without a token.
const LOCAL_ACTOR: &str = "local";
/// The longest name that a proxy may give.
const MAX_USER_BYTES: usize = 200;

/// Returns the caller of a request.
///
/// `Authorization` counts alone: a client that sends it wants that identity, and no page of another site can send it. A session's cookie and a proxy's
/// header come by themselves, so with them a change must come from a page of this server.
pub(super) async fn identify(
    parts: &Parts,
    client: Option<&Client>,
    backend: &Backend,
) -> Result<Caller, Problem> {
    if parts.headers.contains_key(AUTHORIZATION) {
        return by_token(parts, client, backend).await;
    }
    if let Some(client) = client {
        if let Some(caller) = by_proxy(parts, client, backend.proxies())? {
            same_origin::check(&parts.method, &parts.headers)?;
            return Ok(caller);
        }
        if let Some(secret) = session::secret(&parts.headers, client)
            && let Some(caller) = by_session(secret, backend).await?
        {
            same_origin::check(&parts.method, &parts.headers)?;
            return Ok(caller);
        }
    }
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    match backend.local_role {
        Some(role)
            if peer.is_some_and(|peer| local::is_local(peer, parts.version, &parts.headers)) =>
        {
            Ok(Caller::new(LOCAL_ACTOR.to_owned(), role, CallerKind::Local))
        }
        _ => Err(Problem::unauthenticated(
            "log in, or send a token, as `Authorization: Bearer sxt_…`",
        )),
    }
}

async fn by_token(
    parts: &Parts,
    client: Option<&Client>,
    backend: &Backend,
) -> Result<Caller, Problem> {
    let header = parts.headers.get(AUTHORIZATION);
    let text = header.and_then(|header| header.to_str().ok()).and_then(bearer);
    let Some(text) = text else {
        return Err(Problem::unauthenticated(
            "write `Authorization: Bearer sxt_…`, and nothing else",
        ));
    };
    let _permit = backend.lookup_permit()?;
    let accepted = tokens::accept(&backend.stores.callers, &backend.stores.writes, text).await?;
    let Some(accepted) = accepted else {
        // Right tokens pass all the same, or one program with an old token would lock out everybody behind its proxy.
        let counted = client.map_or(Ok(()), |client| {
            backend.attempts().unknown_token(client.address, Instant::now())
        });
        return Err(match counted {
            Ok(()) => Problem::unauthenticated("the token is unknown, expired or revoked"),
            Err(wait) => {
                let detail = format!(
                    "too many requests with unknown, expired or revoked tokens come from this address; wait {} s, and \
                     take a token that is accepted",
                    retry_seconds(wait)
                );
                Problem::rate_limited(detail, wait)
            }
        });
    };
    let Some(role) = accepted.role else {
        return Err(Problem::unauthenticated("the token has a role of a newer version"));
    };
    let caller = Caller::new(ActorKind::Token.actor(&accepted.name), role, CallerKind::Token);
    Ok(Caller { only_jobs: accepted.only_jobs, ..caller })
}

pub(super) async fn by_session(secret: &str, backend: &Backend) -> Result<Option<Caller>, Problem> {
    let _permit = backend.lookup_permit()?;
    let stores = &backend.stores;
    let accepted = accounts::accept_session(&stores.callers, &stores.writes, secret).await?;
    // One that has ended is as good as none: the person logs in again.
    let Some(accepted) = accepted else { return Ok(None) };
    // The provider that vouched for the person is gone or has other settings, and might vouch no more.
    if !accepted.is_account
        && !backend.provider().is_some_and(|provider| provider.is_bound(&accepted))
    {
        return Ok(None);
    }
    let Some(role) = accepted.role else {
        return Err(Problem::unauthenticated("the account has a role of a newer version"));
    };
    let session_expires_at = Some(accepted.expires_at);
    let caller = if accepted.is_account {
        let caller = Caller::new(accounts::actor_name(&accepted.name), role, CallerKind::Account);
        Caller { account: Some(accepted.name), ..caller }
    } else {
        Caller::new(persons::actor_name(&accepted.name), role, CallerKind::Oidc)
    };
    Ok(Some(Caller { only_jobs: accepted.only_jobs, session_expires_at, ..caller }))
}

/// The person whom a trusted proxy names; `None`: it names nobody.
fn by_proxy(
    parts: &Parts,
    client: &Client,
    proxies: &ProxySettings,
) -> Result<Option<Caller>, Problem> {
    let Some(header) = proxies.user_header.as_ref().filter(|_| client.is_from_proxy) else {
        return Ok(None);
    };
    let one = |name: &axum::http::HeaderName| {
        let mut values = parts.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            // A proxy that adds its header to the client's lets everybody be anybody.
            (Some(_), Some(_)) => {
                let detail = format!("the header {name} comes twice; let the proxy replace it");
                Err(Problem::unauthenticated(&detail))
            }
            (Some(value), None) => Ok(Some(value.to_str().unwrap_or_default().trim())),
        }
    };
    let Some(user) = one(header)? else { return Ok(None) };
    if user.is_empty() || user.len() > MAX_USER_BYTES {
        let detail =
            format!("the header {header} has no name of 1 to {MAX_USER_BYTES} bytes of ASCII");
        return Err(Problem::unauthenticated(&detail));
    }
    let given = proxies.role_header.as_ref().map(one).transpose()?.flatten();
    let role = match given {
        // One that is misspelt must not become another.
        Some(text) => Role::parse(text),
        None => proxies.role,
    };
    let Some(role) = role else {
        let detail = format!(
            "the proxy names no role for {user}; it sends viewer, operator, editor or admin in the header of \
             SERVE_PROXY_ROLE_HEADER, or SERVE_PROXY_ROLE is set"
        );
        return Err(Problem::unauthenticated(&detail));
    };
    Ok(Some(Caller::new(ActorKind::Proxy.actor(user), role, CallerKind::Proxy)))
}

/// The scheme's name may be written in any case (RFC 9110, 11.1).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_read_in_any_case_of_the_scheme() {
        for header in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(bearer(header), Some("abc"), "{header}");
        }
        for header in ["", "abc", "Basic abc", "Bearerabc"] {
            assert_eq!(bearer(header), None, "{header}");
        }
    }
}
