//! A screen between the socket and the client library: what the library cannot read never reaches it.
//!
//! The library takes a message's properties apart by recursion, one level of the stack for each level
//! of nesting, and a broker passes on what any publisher nested: ten kilobytes of headers are enough
//! to overflow the stack, which ends the process. It also ends the connection over a text that is not
//! UTF-8, and over a frame larger than it agreed on with the broker, which sends properties in one frame,
//! however small a frame the consumer proposed. The message then goes back to its queue and does the same to the next consumer.
//!
//! # Guarantees
//!
//! - A message whose properties have such a flaw arrives without properties, but for the header
//!   [`UNREADABLE_HEADER`] that says why; its body is untouched. So it can be parked like any other
//!   message that cannot be read, and nothing else stands still for it.
//! - Everything else passes byte for byte. Memory is bounded by one frame of properties.
//!
//! It does not judge properties that can be read, and it trusts the broker's own framing.

mod flaw;
mod frames;
mod methods;
mod stream;

pub use flaw::{PropertiesFlaw, UNREADABLE_HEADER};
pub use frames::{FrameFilter, MAX_PROPERTIES_BYTES};
pub(crate) use stream::connect;
