//! RabbitMQ as Sexton uses it: the topology, supervised connections, a confirming publisher, slot consumers and the
//! pass over the failed queue.
//!
//! Level 1 of the workspace. This crate knows queues and messages; it knows nothing of PostgreSQL, of configuration,
//! or of a message's meaning for an execution. A message is a means of delivery here, never the record: the rows
//! correct every loss and duplicate.
//!
//! Reading order: [`names`] and [`topology`] (the objects on the broker), [`link`] (a connection that reconnects by
//! itself), [`publish`], [`slot_consumer`], [`inspect`], [`failed`] and [`diagnostics`].
//!
//! The client library logs its own errors through `tracing` under the target `lapin`, including the bodies of
//! returned messages. Programs must switch that target off; this crate logs relevant events, once.

mod ack_batch;
mod attach;
mod circuit_breaker;
mod consumer_status;
pub mod delivery;
pub mod diagnostics;
pub mod endpoint;
pub mod failed;
pub mod frame_filter;
pub mod inspect;
mod lane;
pub mod link;
mod liveness_probe;
mod mismatch;
pub mod names;
pub mod properties;
pub mod publications;
pub mod publish;
mod queue_incidents;
mod reconnect;
mod removal;
mod session;
pub mod slot_consumer;
mod supervisor;
pub mod timeouts;
pub mod topology;

pub use consumer_status::ConsumerStatus;
pub use delivery::{AckOutcome, Delivery};
pub use endpoint::{Endpoint, EndpointError};
pub use failed::{CopiedMessage, FailedQueue, ParkedMessage};
pub use inspect::{Depth, InspectError};
pub use link::{Link, LinkSettings, LinkState};
pub use names::{Namespace, NamespaceError};
pub use properties::Properties;
pub use publish::{MAX_BODY_BYTES, Publication, PublishError, Publisher};
pub use sexton_model::delay_queues::DELAY_QUEUES_MS;
pub use sexton_model::pool::PoolName;
pub use slot_consumer::SlotConsumer;
pub use timeouts::Timeouts;
pub use topology::TopologyError;
