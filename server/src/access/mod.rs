//! Identifies the caller of a request, and checks its role.
//!
//! A handler gets at the database only by an [`Allowed`], which names the role that it needs. So no handler can be written without a
//! decision, and a test walks every route with every role.

mod attempts;
pub mod client;
mod cookie;
mod identify;
mod local;
pub mod provider;
pub mod same_origin;
pub mod session;
pub mod set_up;
mod stores;
mod turns;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::access::Role;
use sexton_model::job_scope::JobScope;
use sexton_operations::actor::Actor;
use sexton_service::settings::EffectiveSetting;
use sexton_store::Store;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use utoipa::ToSchema;

use self::attempts::Attempts;
use self::client::{Client, ProxySettings};
use self::provider::ProviderLogIn;
use self::set_up::SetUpCode;
use self::turns::Turns;
use crate::problem::Problem;
use crate::rate_limit::RateLimit;

pub use self::stores::Stores;

pub(crate) use self::stores::READ_TIMEOUT;
pub(crate) use self::turns::Unattended;

/// Requests that one caller may send at once, beyond those of a steady rate.
const BURST: u32 = 100;
/// Requests whose tokens and sessions are looked up at the same time, the waits for a connection among them; more are refused.
const MAX_LOOKUPS: usize = 500;

/// What requests work with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Backend {
    stores: Stores,
    local_role: Option<Role>,
    host: Arc<str>,
    /// Limits the look-ups of callers at the same time.
    lookups: Arc<Semaphore>,
    proxies: Arc<ProxySettings>,
    attempts: Arc<Attempts>,
    /// Requests of one caller; `None`: any number.
    requests: Option<Arc<RateLimit>>,
    set_up: Arc<SetUpCode>,
    base_path: Arc<str>,
    provider: Option<Arc<ProviderLogIn>>,
    settings: Arc<[EffectiveSetting]>,
    background_work: TaskTracker,
    turns: Turns,
}

impl Backend {
    /// Makes a backend of connections. It refuses requests without a token or a session, and trusts no proxy.
    pub fn new(stores: Stores) -> Self {
        Self {
            stores,
            local_role: None,
            host: "".into(),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            proxies: Arc::default(),
            attempts: Arc::new(Attempts::new()),
            requests: None,
            set_up: Arc::default(),
            base_path: "".into(),
            provider: None,
            settings: Arc::default(),
            background_work: TaskTracker::new(),
            turns: Turns::default(),
        }
    }

    /// Sets the database in which callers are looked up.
    #[must_use]
    pub fn asking(mut self, callers: Store) -> Self {
        self.stores.callers = callers;
        self
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

    /// Sets which proxies are trusted, and with what.
    #[must_use]
    pub fn behind(self, proxies: ProxySettings) -> Self {
        Self { proxies: Arc::new(proxies), ..self }
    }

    /// Sets by which identity provider people can log in, too.
    #[must_use]
    pub fn with_provider(self, provider: Option<ProviderLogIn>) -> Self {
        Self { provider: provider.map(Arc::new), ..self }
    }

    /// Limits the requests of each caller in a minute; 0: any number.
    #[must_use]
    pub fn with_requests_per_minute(self, requests: u32) -> Self {
        let limit = || Arc::new(RateLimit::new(requests, Duration::from_mins(1), BURST));
        Self { requests: (requests > 0).then(limit), ..self }
    }

    /// Returns a clone that changes only these jobs.
    fn within(&self, only_jobs: Option<&JobScope>) -> Self {
        let mut backend = self.clone();
        if let Some(only) = only_jobs {
            backend.stores.reads = self.stores.reads.within(only.clone());
            backend.stores.writes = self.stores.writes.within(only.clone());
        }
        backend
    }

    /// Sets the base path, which stands before the path of every address: empty, or with a slash before and none behind it.
    #[must_use]
    pub fn under(self, base_path: &str) -> Self {
        Self { base_path: base_path.into(), ..self }
    }

    /// Sets the settings of the server, which it shows.
    #[must_use]
    pub fn showing(self, settings: &[EffectiveSetting]) -> Self {
        Self { settings: settings.into(), ..self }
    }

    /// The settings of the server.
    pub(crate) fn settings(&self) -> Arc<[EffectiveSetting]> {
        Arc::clone(&self.settings)
    }

    /// Work that goes on when its client leaves: a program that ends waits for it.
    pub fn background_work(&self) -> &TaskTracker {
        &self.background_work
    }

    /// The name of this machine.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The base path: it stands before the path of every address.
    pub fn base_path(&self) -> Arc<str> {
        Arc::clone(&self.base_path)
    }

    /// Returns whether people get in without a token or an account: from this machine, by a proxy, or by an identity provider.
    pub fn lets_in_without_account(&self) -> bool {
        self.local_role.is_some() || self.proxies.user_header.is_some() || self.provider.is_some()
    }

    /// The identity provider by which people can log in.
    pub fn provider(&self) -> Option<&ProviderLogIn> {
        self.provider.as_deref()
    }

    fn proxies(&self) -> &ProxySettings {
        &self.proxies
    }

    fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Takes a permit for the look-up of a caller.
    fn lookup_permit(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.lookups
            .try_acquire()
            .map_err(|_| Problem::unavailable("too many requests come at the same time"))
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

/// How the caller of a request was identified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerKind {
    /// A token in the request.
    Token,
    /// The session of an account that logged in.
    Account,
    /// The session of a person whom the identity provider named.
    Oidc,
    /// The name that a trusted proxy gives.
    Proxy,
    /// No name: the request comes from the server's machine.
    Local,
}

/// The caller of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The name in the audit: `token NAME`, `account NAME`, `oidc NAME`, `proxy NAME` or `local`.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The jobs that it may change; `None`: all.
    pub only_jobs: Option<JobScope>,
    /// How the caller was identified.
    pub kind: CallerKind,
    /// The account that has logged in.
    pub account: Option<String>,
    /// When its session ends in any case.
    pub session_expires_at: Option<DateTime<Utc>>,
}

impl Caller {
    fn new(name: String, role: Role, kind: CallerKind) -> Self {
        Self { name, role, only_jobs: None, kind, account: None, session_expires_at: None }
    }

    /// Where its requests come from, for the audit.
    fn place(&self, client: &Client) -> String {
        let by = match self.kind {
            CallerKind::Token | CallerKind::Local => "api",
            CallerKind::Account | CallerKind::Oidc | CallerKind::Proxy => "console",
        };
        format!("{by} {}", client.address)
    }
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
    /// The caller of the request.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The actor of the request, for the audit.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The base path: it stands before the path of every address.
    pub fn base_path(&self) -> Arc<str> {
        self.backend.base_path()
    }

    /// Spawns work that goes on when the client leaves.
    pub(crate) fn spawn_background<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.backend.background_work.spawn(work)
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

/// The caller, among the extensions of a request, so that a request which passes here twice counts once.
#[derive(Clone)]
struct Identified(Caller);

async fn identify_once(
    parts: &mut Parts,
    client: Option<&Client>,
    backend: &Backend,
) -> Result<Caller, Problem> {
    let caller = identify::identify(parts, client, backend).await?;
    if let Some(limit) = &backend.requests {
        let taken = limit.take(&caller.name, Instant::now());
        taken.map_err(|wait| {
            let detail = format!("{} sends too many requests", caller.name);
            Problem::rate_limited(detail, wait)
        })?;
    }
    parts.extensions.insert(Identified(caller.clone()));
    Ok(caller)
}

impl<P: Permission> FromRequestParts<Backend> for Allowed<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, backend: &Backend) -> Result<Self, Problem> {
        let client = Client::of(parts, backend);
        let caller = match parts.extensions.get::<Identified>() {
            Some(Identified(caller)) => caller.clone(),
            None => identify_once(parts, client.as_ref(), backend).await?,
        };
        if caller.role < P::ROLE {
            return Err(Problem::forbidden(&caller.name, caller.role, P::ROLE));
        }
        let origin = client.map(|client| caller.place(&client));
        let actor = Actor {
            name: caller.name.clone(),
            host: backend.host.to_string(),
            process_id: std::process::id(),
            origin,
            // So the audit has a trigger with a key, too.
            is_interactive: true,
        };
        let backend = backend.within(caller.only_jobs.as_ref());
        Ok(Self { caller, actor, backend, permission: PhantomData })
    }
}
