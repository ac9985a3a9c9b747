//! Passwords: what may be one, and their slow hashes.
//!
//! A hash takes 19 MiB and tens of milliseconds of a processor, which is what it is for: who has the database cannot try many. So two are
//! computed at the same time, beside the threads that answer requests, and the others wait in a bounded queue.

use std::fmt;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::Deserialize;
use sexton_model::access::{MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARS};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

use crate::error::{InvalidRequest, OperationError};
use crate::secret_text::{random, random_text};

/// Hashes that are computed at the same time.
const MAX_HASHES: usize = 2;
/// Hashes that are computed or wait; more are refused. Fewer than the requests that a server answers at the same time, so that log-ins do not
/// hold up the others.
const MAX_WAITING: usize = 16;
const SALT_BYTES: usize = 16;
/// Random bytes of a password that is generated.
const GENERATED_BYTES: usize = 18;
/// A hash of nothing, with the parameters of [`hasher`]: a name without an account is compared with it, and so takes as long as one with.
const NO_PASSWORD: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

static QUEUE: HashQueue = HashQueue::new();

/// The hashes of a process, those that are computed and those that wait.
struct HashQueue {
    computed: Semaphore,
    all: Semaphore,
}

impl HashQueue {
    const fn new() -> Self {
        Self { computed: Semaphore::const_new(MAX_HASHES), all: Semaphore::const_new(MAX_WAITING) }
    }

    /// Runs `work` on a thread for work that blocks, when it is its turn. The turn ends with the work, also if nobody waits for it any more.
    async fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TooManyHashes> {
        let place: SemaphorePermit<'static> = self.all.try_acquire().map_err(|_| TooManyHashes)?;
        // It is never closed.
        let turn = self.computed.acquire().await.map_err(|_| TooManyHashes)?;
        let done = spawn_blocking(move || {
            let done = work();
            drop((turn, place));
            done
        });
        // It fails only while the process ends.
        done.await.map_err(|_| TooManyHashes)
    }
}

/// A password. It is not shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Takes a text as a password, whatever it is.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Makes a random one of 24 characters.
    ///
    /// # Errors
    ///
    /// [`OperationError::Failed`]: the system gave no random bytes.
    pub fn generate() -> Result<Self, OperationError> {
        random_text::<GENERATED_BYTES>().map(Self)
    }

    /// Returns the text. Show it to nobody but the person whose password it is.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Checks that it may be an account's password.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`], which does not repeat it.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        let problem = if self.0.chars().count() < MIN_PASSWORD_CHARS {
            format!("must have at least {MIN_PASSWORD_CHARS} characters")
        } else if self.0.len() > MAX_PASSWORD_BYTES {
            format!("must have at most {MAX_PASSWORD_BYTES} bytes")
        } else if self.0.chars().any(char::is_control) {
            "must have no control characters, such as the end of a line".to_owned()
        } else {
            return Ok(());
        };
        Err(InvalidRequest::field("password", problem))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Too many hashes wait already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too many people log in at the same time; try again in a few seconds")]
pub struct TooManyHashes;

impl From<TooManyHashes> for OperationError {
    fn from(error: TooManyHashes) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Returns the hash of a password, in the PHC format.
pub(crate) async fn hash(password: &Password) -> Result<String, OperationError> {
    password.check()?;
    let salt = random::<SALT_BYTES>()?;
    let password = password.clone();
    let hashed = QUEUE.run(move || {
        let hashed = hasher().hash_password_with_salt(password.0.as_bytes(), &salt);
        hashed.map(|hashed| hashed.to_string()).map_err(|error| error.to_string())
    });
    hashed
        .await?
        .map_err(|error| OperationError::Failed(format!("a password cannot be hashed: {error}")))
}

/// Returns whether a password has this hash. `None`, for a name without an account, takes as long, and is never so.
pub(crate) async fn is_right(
    password: &Password,
    hash: Option<&str>,
) -> Result<bool, TooManyHashes> {
    // The longest is compared as if it were shorter, so that a long text costs no more than a password.
    let password: Vec<u8> = password.0.bytes().take(MAX_PASSWORD_BYTES + 1).collect();
    let (is_known, hash) = (hash.is_some(), hash.unwrap_or(NO_PASSWORD).to_owned());
    let compared = QUEUE.run(move || {
        let hash = PasswordHash::new(&hash);
        hash.is_ok_and(|hash| hasher().verify_password(&password, &hash).is_ok())
    });
    compared.await.map(|is_equal| is_equal && is_known)
}

/// Argon2id with 19 MiB, two passes and one lane, as OWASP recommends.
fn hasher() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    fn password(text: &str) -> Password {
        Password::new(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_is_right_for_its_hash_alone() {
        let right = password("correct horse battery");
        let (hashed, again) = (hash(&right).await.unwrap(), hash(&right).await.unwrap());
        assert!(hashed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hashed}");
        assert_ne!(hashed, again, "the salt is random");
        assert!(is_right(&right, Some(&hashed)).await.unwrap());
        assert!(!is_right(&password("correct horse batterY"), Some(&hashed)).await.unwrap());
        for not_a_hash in ["", "$argon2id$", "correct horse battery"] {
            assert!(!is_right(&right, Some(not_a_hash)).await.unwrap(), "{not_a_hash}");
        }
    }

    #[tokio::test]
    async fn a_name_without_an_account_is_compared_with_a_hash_that_costs_as_much() {
        let hashed = hash(&password("correct horse battery")).await.unwrap();
        let (known, unknown) =
            (PasswordHash::new(&hashed).unwrap(), PasswordHash::new(NO_PASSWORD).unwrap());
        assert_eq!(
            (&known.algorithm, known.version, &known.params),
            (&unknown.algorithm, unknown.version, &unknown.params)
        );
        let lengths = |hash: &PasswordHash| (hash.salt.unwrap().len(), hash.hash.unwrap().len());
        assert_eq!(lengths(&known), lengths(&unknown));
        assert!(!is_right(&password(""), None).await.unwrap());
    }

    #[tokio::test]
    async fn two_are_computed_at_the_same_time_and_no_more_than_sixteen_wait() {
        static CROWD: HashQueue = HashQueue::new();
        static AT_WORK: AtomicUsize = AtomicUsize::new(0);
        let (gate, open) = std::sync::mpsc::channel::<()>();
        let open = Arc::new(std::sync::Mutex::new(open));
        let mut crowd = JoinSet::new();
        for _ in 0..100 {
            let open = Arc::clone(&open);
            crowd.spawn(CROWD.run(move || {
                let at_work = AT_WORK.fetch_add(1, Ordering::SeqCst) + 1;
                let _ = open.lock().unwrap().recv();
                AT_WORK.fetch_sub(1, Ordering::SeqCst);
                at_work
            }));
        }
        for _ in 0..100 - MAX_WAITING {
            assert_eq!(crowd.join_next().await.unwrap().unwrap(), Err(TooManyHashes));
        }
        drop(gate);
        let mut most = 0;
        for _ in 0..MAX_WAITING {
            most = most.max(crowd.join_next().await.unwrap().unwrap().unwrap());
        }
        assert!(most <= MAX_HASHES, "{most}");
        assert_eq!(CROWD.run(|| 1).await, Ok(1), "the places are free again");
    }

    #[test]
    fn what_may_be_a_password() {
        for text in ["correct horse", "ünïcödé-wört", &"a".repeat(MAX_PASSWORD_BYTES)] {
            assert!(password(text).check().is_ok(), "{text}");
        }
        for text in ["", "hunter2", "elevenchars", "ends with a line\n", &"a".repeat(257)] {
            let refused = password(text).check().unwrap_err().to_string();
            assert!(text.is_empty() || !refused.contains(text), "{refused}");
        }
        assert!(Password::generate().unwrap().check().is_ok());
        assert!(!format!("{:?}", password("correct horse")).contains("horse"));
    }
}
