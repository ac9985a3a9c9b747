//! People whom an identity provider vouches for. There is no account of them: the provider says at each log-in who they are, and rules which role
//! they have.

use sexton_model::access::ActorKind;
use sexton_model::oidc::Person;
use sexton_store::Store;
use sexton_store::operator::AuditContext;
use sexton_store::sessions::{VouchedPerson, start_vouched};

use crate::accounts::{SECRET_BYTES, StartedSession};
use crate::error::OperationError;
use crate::secret_text;

/// The name in the audit of what such a person does.
pub fn actor_name(person: &str) -> String {
    ActorKind::Oidc.actor(person)
}

/// Starts a session. `provider_hash` is that of the settings by which the person got in. `place` is where the person is, for the audit.
///
/// # Errors
///
/// Those of the database; nothing was written.
pub async fn log_in(
    writes: &Store,
    person: &Person,
    (issuer, provider_hash): (&str, &[u8; 32]),
    place: &str,
) -> Result<StartedSession, OperationError> {
    let secret = secret_text::random_text::<SECRET_BYTES>()?;
    let hash = secret_text::hash(&secret);
    let Person { name, subject, role } = person;
    let vouched = VouchedPerson { name, role: *role, issuer, subject, provider_hash };
    let actor = actor_name(name);
    let by = AuditContext { actor: &actor, reason: None };
    let expires_at = start_vouched(&writes.from_place(place), &hash, &vouched, by, None).await?;
    Ok(StartedSession { secret, expires_at })
}
