//! Sends requests and mail to other systems: address checks, TLS, and limits of time and size.
//!
//! [`http`] sends one request over a new connection, [`mail`] sends one mail to a mail server. Both end within
//! a time that the caller gives, read a bounded number of bytes from the other side, and keep no pool and no
//! background task: dropping the future closes the connection. [`address`] decides to which addresses a request
//! may go, [`sexton_tls`] which certificates are trusted. [`secret`] reads secrets by reference.
//! [`channel`] writes notifications in the form of each kind of channel, and sends them. [`oidc`] learns from an
//! OpenID provider who logs in.
//!
//! The crate knows nothing of tasks or retries. A caller maps [`http::ResponseMeaning`],
//! [`http::HttpError`] and [`mail::MailError`] to what follows from them.

pub mod address;
pub mod channel;
mod error_chain;
pub mod heartbeat;
pub mod http;
pub mod mail;
pub mod oidc;
pub mod secret;
