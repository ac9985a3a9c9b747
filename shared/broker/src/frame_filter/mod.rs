//! A filter between the socket and the client library, which removes what the library cannot parse.
//!
//! The library parses a message's properties by recursion, one stack level for each level of nesting, and a broker
//! passes on any nesting: ten kilobytes of headers suffice to overflow the stack, which ends the process. It also
//! ends the connection over a text that is not UTF-8, and over a frame larger than agreed with the broker, which
//! sends properties in one frame, however small a frame the consumer proposed. The message then goes back to its
//! queue and does the same to the next consumer.
//!
//! # Guarantees
//!
//! - A message whose properties have such a flaw arrives without properties, except for the header
//!   [`UNREADABLE_HEADER`] that says why; its body is untouched. So it can be parked like any other unreadable
//!   message, and delays no other.
//! - Everything else passes byte for byte. Memory is bounded by one frame of properties.
//!
//! It does not judge readable properties, and it trusts the broker's own framing.

mod flaw;
mod frames;
mod methods;
mod stream;

pub use flaw::{PropertiesFlaw, UNREADABLE_HEADER};
pub use frames::{FrameFilter, MAX_PROPERTIES_BYTES};
pub(crate) use stream::connect;
