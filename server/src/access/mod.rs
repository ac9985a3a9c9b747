//! Who sends a request, and whether they may.
//!
//! A handler gets at the database only by an [`Allowed`], which names the role that it needs. So no handler can be written without a
//! decision, and a test walks every route with every role.

mod local;

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sexton_model::access::Role;
use sexton_operations::actor::Actor;
use sexton_operations::tokens;
use sexton_service::http_server::Peer;
use sexton_store::Store;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// The name in the audit of requests without a token.
const LOCAL_ACTOR: &str = "local";
/// Requests whose tokens are looked up at the same time, the waits for a connection among them; more are refused.
const MAX_QUESTIONS: usize = 500;

/// Connections to one database, apart from each other, so that slow searches hold up no action, and neither holds up the question who
/// sends a request. The first two end slow statements early.
#[derive(Clone, Debug)]
pub struct Stores {
    /// For the question who sends a request.
    pub callers: Store,
    /// For requests that change nothing.
    pub reads: Store,
    /// For the others.
    pub writes: Store,
}

/// What requests work with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Backend {
    stores: Stores,
    local_role: Option<Role>,
    host: Arc<str>,
    /// Requests that may be at that question at the same time.
    questions: Arc<Semaphore>,
}

impl Backend {
    /// Makes it of connections. Requests without a token are refused.
    pub fn new(stores: Stores) -> Self {
        let questions = Arc::new(Semaphore::new(MAX_QUESTIONS));
        Self { stores, local_role: None, host: "".into(), questions }
    }

    /// Sets the name of this machine, for the audit.
    #[must_use]
    pub fn on(self, host: &str) -> Self {
        Self { host: host.into(), ..self }
    }

    /// Sets what requests of this machine may do without a token.
    #[must_use]
    pub fn with_local_role(self, local_role: Option<Role>) -> Self {
        Self { local_role, ..self }
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
        &self.backend.stores.reads
    }

    /// The database, for requests that change something. The audit records where they come from.
    pub fn writes(&self) -> Store {
        self.backend.stores.writes.from_place(self.actor.origin.as_deref().unwrap_or_default())
    }
}

impl<P: Permission> FromRequestParts<Backend> for Allowed<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, backend: &Backend) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
        let caller = identify(parts, peer, backend).await?;
        if caller.role < P::ROLE {
            return Err(Problem::forbidden(&caller.name, caller.role, P::ROLE));
        }
        let origin = peer.map(|peer| format!("api {}", peer.ip()));
        let actor = Actor {
            name: caller.name.clone(),
            host: backend.host.to_string(),
            process_id: std::process::id(),
            origin,
            // So the audit has a trigger with a key, too.
            is_interactive: true,
        };
        Ok(Self { caller, actor, backend: backend.clone(), permission: PhantomData })
    }
}

async fn identify(
    parts: &Parts,
    peer: Option<SocketAddr>,
    backend: &Backend,
) -> Result<Caller, Problem> {
    let headers = &parts.headers;
    let is_local = |peer: SocketAddr| local::is_local(peer.ip(), parts.version, headers);
    let Some(authorization) = headers.get(AUTHORIZATION) else {
        return match backend.local_role {
            Some(role) if peer.is_some_and(is_local) => {
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
    let Ok(_question) = backend.questions.try_acquire() else {
        return Err(Problem::unavailable("too many requests come at the same time"));
    };
    let accepted = tokens::accept(&backend.stores.callers, &backend.stores.writes, text).await?;
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
