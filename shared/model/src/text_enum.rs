//! The texts of an enum in the database, in the jobs file and in `--json`.

/// Gives an enum `as_str` and `parse`, one text for each variant.
macro_rules! text_enum {
    ($type:ty { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $type {
            /// Returns the value in the database, the jobs file and `--json`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The inverse of [`Self::as_str`].
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use text_enum;
