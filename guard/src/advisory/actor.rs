//! The task that owns the connection, and does everything on it, one thing after the other.
//!
//! So a caller that stops waiting leaves no lock behind that nobody knows: the actor takes the lock, finds that nobody waits,
//! and releases it. No statement is given up in the middle but with the whole session.

use sqlx::postgres::PgConnectOptions;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::live::Live;
use super::lock::{Acquire, Command, ReleaseLock, SessionLock};
use super::session::{Failure, Session};
use super::times;
use crate::error::{LockError, ReleaseError};
use crate::held::Held;
use crate::key::Key;
use crate::moment::Moment;

/// The task's state.
#[derive(Debug)]
pub(super) struct Actor {
    options: PgConnectOptions,
    commands: mpsc::UnboundedReceiver<Command>,
    live: Option<Live>,
    sessions: u64,
    /// When connecting failed last, and why: calls that have waited meanwhile fail as well.
    failed: Option<(Instant, LockError)>,
}

/// Why the actor wakes up.
enum Event {
    Ended(String),
    PingIsDue,
    Command(Option<Command>),
}

impl Actor {
    pub(super) fn new(
        options: PgConnectOptions,
        commands: mpsc::UnboundedReceiver<Command>,
        session: Session,
        connected_at: Moment,
    ) -> Self {
        let live = Some(Live::new(session, 1, connected_at));
        Self { options, commands, live, sessions: 1, failed: None }
    }

    /// Runs until all handles and all locks are dropped.
    pub(super) async fn run(mut self) {
        loop {
            match self.next_event().await {
                Event::Ended(why) => self.lose(&why),
                Event::PingIsDue => self.ping().await,
                Event::Command(Some(Command::Acquire(request))) => self.acquire(request).await,
                Event::Command(Some(Command::Release(request))) => self.release(request).await,
                Event::Command(Some(Command::Flush(reply))) => drop(reply.send(())),
                Event::Command(None) => break,
            }
        }
        if let Some(live) = self.live {
            live.session.close();
        }
    }

    async fn next_event(&mut self) -> Event {
        let Some(live) = &mut self.live else {
            return Event::Command(self.commands.recv().await);
        };
        let next_ping = live.next_ping();
        tokio::select! {
            biased;
            why = live.session.end() => Event::Ended(why),
            () = sleep_until(next_ping) => Event::PingIsDue,
            command = self.commands.recv() => Event::Command(command),
        }
    }

    async fn ping(&mut self) {
        self.lose_if_expired();
        let Some(live) = &mut self.live else { return };
        let sent_at = Moment::now();
        match live.session.ping(live.deadline()).await {
            Ok(()) => live.lease.renew(sent_at),
            Err(Failure::Refused(error)) => self.lose(&error.to_string()),
            Err(Failure::Lost(why)) => self.lose(&why),
        }
    }

    async fn acquire(&mut self, request: Acquire) {
        // The caller has stopped waiting.
        if request.reply.is_closed() {
            return;
        }
        match self.take(&request).await {
            Ok(true) => {
                let Some(live) = &mut self.live else { return };
                live.held += 1;
                let (held, reply): (Held, _) = SessionLock::held(
                    request,
                    live.number,
                    // Of its own, so that a holder who cancels it ends no other work.
                    live.lost.child_token(),
                    live.lease.clone(),
                    live.works.token(),
                );
                // If nobody waits any more the lock is dropped here, which releases it.
                let _ = reply.send(Ok(Some(held)));
            }
            Ok(false) => answer(request, Ok(None)),
            Err(error) => answer(request, Err(error)),
        }
    }

    /// Takes the lock on the session, and connects before if need be.
    async fn take(&mut self, request: &Acquire) -> Result<bool, LockError> {
        self.lose_if_expired();
        let was_idle = self.live.as_ref().is_some_and(|live| live.held == 0);
        if self.live.is_none() {
            self.connect(request.sent_at).await?;
        }
        let mut taken = self.take_on_session(request).await;
        // A firewall may have forgotten a connection that nobody used. A tick is not tried again here: if the first try has
        // taken it, the second would say that another instance has it, and nobody would run it or count it as missed.
        if was_idle && request.tick.is_none() && matches!(taken, Err(Failure::Lost(_))) {
            self.connect(request.sent_at).await?;
            taken = self.take_on_session(request).await;
        }
        taken.map_err(|failure| match failure {
            Failure::Refused(error) if request.tick.is_some() => LockError::of_tick(error),
            Failure::Refused(error) => error.into(),
            Failure::Lost(why) => LockError::lost_connection(why),
        })
    }

    async fn take_on_session(&mut self, request: &Acquire) -> Result<bool, Failure> {
        let Some(live) = &mut self.live else { return Err(Failure::Lost("closed".to_owned())) };
        let sent_at = Moment::now();
        let deadline = live.deadline();
        let taken = match (request.key, request.tick) {
            (Key::Number(key), Some(tick)) => live.session.try_tick(key, tick, deadline).await,
            (key, _) => live.session.try_lock(key, deadline).await,
        };
        match &taken {
            Ok(_) => live.lease.renew(sent_at),
            Err(Failure::Lost(why)) => self.lose(why),
            // The function of ticks releases it by itself.
            Err(Failure::Refused(_)) if request.tick.is_some() => {}
            Err(Failure::Refused(_)) => self.release_after_refusal(request.key).await,
        }
        taken
    }

    /// A session's lock outlives the statement that failed behind it.
    async fn release_after_refusal(&mut self, key: Key) {
        let Some(live) = &mut self.live else { return };
        let deadline = live.deadline();
        if let Err(failure) = live.session.unlock(key, deadline).await {
            self.lose(&format!("{failure:?}"));
        }
    }

    async fn release(&mut self, request: ReleaseLock) {
        self.lose_if_expired();
        let is_current = self.live.as_ref().is_some_and(|live| live.number == request.session);
        let answer = if is_current {
            self.release_current(&request).await
        } else {
            self.record_end(&request).await;
            Err(ReleaseError::Lost)
        };
        match (request.reply, answer) {
            (Some(reply), answer) => {
                let _ = reply.send(answer);
            }
            (None, Ok(())) => {}
            (None, Err(error)) => {
                let key = request.key;
                tracing::warn!(%key, %error, "the lock {key} was dropped: {error}");
            }
        }
    }

    async fn release_current(&mut self, request: &ReleaseLock) -> Result<(), ReleaseError> {
        let Some(live) = &mut self.live else { return Err(ReleaseError::Lost) };
        let key = request.key;
        let sent_at = Moment::now();
        let deadline = live.deadline();
        let mut released = match (key, request.tick) {
            (Key::Number(number), Some(tick)) => {
                live.session.end_tick(number, tick, &request.end, deadline).await
            }
            (key, _) => live.session.unlock(key, deadline).await,
        };
        if let (Some(tick), Err(Failure::Refused(error))) = (request.tick, &released) {
            tracing::warn!(%key, %tick, %error, "the end of the tick {tick} of {key} is not recorded: {error}");
            released = live.session.unlock(key, deadline).await;
        }
        live.held -= 1;
        match released {
            Ok(true) => {
                live.lease.renew(sent_at);
                Ok(())
            }
            Ok(false) => {
                self.lose(&format!("the session did not have the lock {key} that it had taken"));
                Err(ReleaseError::Lost)
            }
            Err(Failure::Refused(error)) => {
                let why = error.to_string();
                self.lose(&why);
                Err(ReleaseError::Unanswered(why))
            }
            Err(Failure::Lost(why)) => {
                self.lose(&why);
                Err(ReleaseError::Unanswered(why))
            }
        }
    }

    /// Records the end of a tick whose session is lost, if there is another session already.
    async fn record_end(&mut self, request: &ReleaseLock) {
        let (Some(live), Key::Number(key), Some(tick)) =
            (&mut self.live, request.key, request.tick)
        else {
            return;
        };
        let deadline = live.deadline();
        match live.session.end_tick(key, tick, &request.end, deadline).await {
            Ok(_) => {}
            Err(Failure::Refused(error)) => {
                tracing::warn!(%key, %tick, %error, "the end of the tick {tick} of {key} is not recorded: {error}");
            }
            Err(Failure::Lost(why)) => self.lose(&why),
        }
    }

    /// Connects for a call that was made at `called_at`.
    async fn connect(&mut self, called_at: Instant) -> Result<(), LockError> {
        if let Some((failed_at, error)) = &self.failed
            && called_at <= *failed_at
        {
            return Err(error.repeated());
        }
        let sent_at = Moment::now();
        match Session::connect(&self.options).await {
            Ok(session) => {
                self.sessions += 1;
                self.live = Some(Live::new(session, self.sessions, sent_at));
                Ok(())
            }
            Err(error) => {
                let repeated = error.repeated();
                self.failed = Some((Instant::now(), repeated));
                Err(error)
            }
        }
    }

    /// Gives the session up: first its works are cancelled, then, when they have ended, its connection is closed.
    fn lose(&mut self, why: &str) {
        let Some(live) = self.live.take() else { return };
        let (held, backend) = (live.held, live.session.pid());
        if held > 0 {
            tracing::error!(
                held,
                backend,
                "the connection of the advisory locks is lost ({why}); the work under {held} of them is cancelled"
            );
        } else {
            tracing::info!(backend, "the connection of the advisory locks ended ({why})");
        }
        live.lost.cancel();
        live.works.close();
        tokio::spawn(async move {
            if timeout(times::WORK_END_TIMEOUT, live.works.wait()).await.is_err() {
                let left = live.works.len();
                tracing::error!(
                    left,
                    "the work under {left} lost advisory locks has not ended; other instances may begin it"
                );
            }
            live.session.close();
        });
    }

    fn lose_if_expired(&mut self) {
        if self.live.as_ref().is_some_and(Live::is_expired) {
            self.lose("no answer for too long: this process or its runtime stood still");
        }
    }
}

fn answer(request: Acquire, answer: Result<Option<Held>, LockError>) {
    let Acquire { reservation, reply, .. } = request;
    // First, so that the caller can try again at once.
    drop(reservation);
    let _ = reply.send(answer);
}
