//! Who sends a request, and whether they may.
//!
//! A handler gets at the database only by an [`Allowed`], which names the role that it needs. So no handler can be written without a
//! decision, and a test walks every route with every role.

mod local;

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sexton_model::access::Role;
use sexton_operations::actor::Actor;
use sexton_operations::tokens;
use sexton_service::http_server::Peer;
use sexton_store::Store;

use crate::problem::Problem;

/// The name in the audit of requests without a token.
const LOCAL_ACTOR: &str = "local";

/// What requests work with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Backend {
    reads: Store,
    writes: Store,
    local_role: Option<Role>,
    host: Arc<str>,
}

impl Backend {
    /// Makes it of two pools of connections to the same database: one for requests that change nothing, which ends slow statements
    /// early, and one for the others. Without a token, requests of this machine have the role `local_role`; `None`: they are refused.
    /// `host` is the name of this machine, for the audit.
    pub fn new(reads: Store, writes: Store, local_role: Option<Role>, host: &str) -> Self {
        Self { reads, writes, local_role, host: host.into() }
    }
}

/// A role that a handler needs, as a type.
pub trait Permission: Send + Sync + 'static {
    /// The role.
    const ROLE: Role;
}

macro_rules! permissions {
    ($($name:ident: $doc:literal),+ $(,)?) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Permission for $name {
            const ROLE: Role = Role::$name;
        }
    )+ };
}

permissions!(
    Viewer: "Look at everything.",
    Operator: "Act on what is there.",
    Editor: "Change what is there.",
    Admin: "Decide who may do what.",
);

/// Who sends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The name in the audit.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// A request whose sender has the role `P`, and what its handler works with.
#[derive(Clone, Debug)]
pub struct Allowed<P> {
    caller: Caller,
    actor: Actor,
    backend: Backend,
    permission: PhantomData<P>,
}

impl<P> Allowed<P> {
    /// Who sends it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// For the audit.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The database, for requests that change nothing: the server ends a statement after two seconds.
    pub fn reads(&self) -> &Store {
        &self.backend.reads
    }

    /// The database, for requests that change something. The audit records where they come from.
    pub fn writes(&self) -> Store {
        self.backend.writes.from_place(self.actor.origin.as_deref().unwrap_or_default())
    }
}

impl<P: Permission> FromRequestParts<Backend> for Allowed<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, backend: &Backend) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
        let caller = identify(&parts.headers, peer, backend).await?;
        if caller.role < P::ROLE {
            return Err(Problem::forbidden(&caller.name, caller.role, P::ROLE));
        }
        let origin = peer.map(|peer| format!("api {}", peer.ip()));
        let actor = Actor {
            name: caller.name.clone(),
            host: backend.host.to_string(),
            process_id: std::process::id(),
            origin,
            is_interactive: false,
        };
        Ok(Self { caller, actor, backend: backend.clone(), permission: PhantomData })
    }
}

async fn identify(
    headers: &HeaderMap,
    peer: Option<SocketAddr>,
    backend: &Backend,
) -> Result<Caller, Problem> {
    let Some(authorization) = headers.get(AUTHORIZATION) else {
        return match backend.local_role {
            Some(role) if peer.is_some_and(|peer| local::is_local(peer.ip(), headers)) => {
                Ok(Caller { name: LOCAL_ACTOR.to_owned(), role })
            }
            _ => Err(Problem::unauthenticated("send a token, as `Authorization: Bearer sxt_…`")),
        };
    };
    let text = authorization.to_str().ok().and_then(bearer);
    let Some(text) = text else {
        return Err(Problem::unauthenticated(
            "write `Authorization: Bearer sxt_…`, and nothing else",
        ));
    };
    let accepted = tokens::accept(&backend.reads, text).await?;
    let Some(accepted) = accepted else {
        return Err(Problem::unauthenticated("the token is unknown, expired or revoked"));
    };
    let Some(role) = accepted.role else {
        return Err(Problem::unauthenticated("the token has a role of a newer version"));
    };
    Ok(Caller { name: format!("token {}", accepted.name), role })
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
