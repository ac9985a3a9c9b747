//! The platform as a whole: its processes and what they offer, its state and its doctor's facts.

pub mod doctor;
pub mod incidents;
pub mod instances;
pub mod measurement;
pub mod offers;
pub mod readings;
pub mod status;
