//! How the two day fields of an expression are combined.

use serde::{Deserialize, Serialize};

use super::Dialect;
use super::fields::{Fields, is_starred};
use crate::text_enum::text_enum;

/// How day of month and day of week are combined where both restrict the days.
///
/// A field restricts the days unless it is `*` or `?` alone. Where one field or none does, all schedulers agree, and
/// the rule changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DayRule {
    /// A day fires if both fields select it, as in Spring.
    Both,
    /// A day fires if either field selects it, as in most crons.
    Either,
}

impl DayRule {
    /// The words in jobs files.
    pub const WORDS: [&'static str; 2] = ["both", "either"];

    /// Returns the rule for an expression with these fields: `stated`, or else Vixie cron's, by which a leading `*`
    /// decides. `*/2` begins with one, `2-30/2` does not.
    pub(super) fn of(stated: Option<Self>, fields: Fields<'_>) -> Self {
        if !fields.restrict_days_twice() {
            // The field that selects every day leaves the choice to the other.
            return Self::Both;
        }
        let starred = is_starred(fields.day_of_month) || is_starred(fields.day_of_week);
        stated.unwrap_or(if starred { Self::Both } else { Self::Either })
    }
}

text_enum!(DayRule { Both => "both", Either => "either" });

/// Returns whether both day fields of an expression restrict the days, so that a [`DayRule`] decides when it fires.
///
/// `false` for a text that is no expression, and for macros.
pub fn restricts_days_twice(text: &str) -> bool {
    Fields::split(text, Dialect::Any).is_ok_and(|fields| fields.restrict_days_twice())
}

impl Fields<'_> {
    /// Returns whether neither day field is `*` or `?` alone.
    pub(super) fn restrict_days_twice(&self) -> bool {
        let is_plain = |field: &str| matches!(field, "*" | "?");
        !is_plain(self.day_of_month) && !is_plain(self.day_of_week)
    }
}
