//! The platform as a whole: its processes and what they offer, its state and its doctor's facts.

pub mod dead_man;
pub mod doctor;
pub mod instances;
pub mod job_readings;
pub mod measurement;
pub mod offers;
pub mod queue_incidents;
pub mod readings;
pub mod status;
