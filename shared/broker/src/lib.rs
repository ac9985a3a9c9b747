//! RabbitMQ as Sexton uses it: the topology, supervised connections, a confirming publisher, slot
//! consumers and the cursor over the failed queue.
//!
//! Level 1 of the workspace. This crate knows queues and messages; it knows nothing of PostgreSQL,
//! of configuration, or of what a message means for an execution. A message is a means of delivery
//! here, never the record: whatever is lost or doubled on the way is put right by the rows.
//!
//! Reading order: [`names`] and [`topology`] (what exists on the broker), [`link`] (a connection
//! that comes back by itself), [`publish`], [`consume`], [`inspect`], [`failed`] and [`examine`].
//!
//! The client library reports its own troubles through `tracing` under the target `lapin`, with the
//! bodies of returned messages in them. Programs must switch that target off; everything worth
//! telling is told by this crate, once.

mod attach;
pub mod consume;
mod consuming;
pub mod delivery;
pub mod endpoint;
pub mod examine;
pub mod failed;
mod incidents;
pub mod inspect;
mod lane;
mod life;
pub mod link;
mod mismatch;
pub mod names;
mod outage;
pub mod outgoing;
pub mod properties;
pub mod publish;
mod reconnect;
mod removal;
pub mod screen;
mod session;
mod silence;
mod spent;
mod supervisor;
pub mod timeouts;
pub mod topology;

pub use consume::SlotConsumer;
pub use consuming::Consuming;
pub use delivery::{AckOutcome, Delivery};
pub use endpoint::{Endpoint, EndpointError};
pub use failed::{Copied, FailedQueue, Parked};
pub use inspect::{Depth, InspectError};
pub use link::{Link, LinkSettings, LinkState};
pub use names::{Namespace, NamespaceError};
pub use properties::Properties;
pub use publish::{MAX_BODY_BYTES, Publication, PublishError, Publisher};
pub use sexton_model::ladder::LADDER_MS;
pub use sexton_model::pool::PoolName;
pub use timeouts::Timeouts;
pub use topology::TopologyError;
