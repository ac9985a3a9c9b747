//! Names in addresses.

use url::form_urlencoded::byte_serialize;

/// Returns a name as one segment of a path, where a plus sign is one.
pub(in crate::pages) fn segment(name: &str) -> String {
    let name: String = byte_serialize(name.as_bytes()).collect();
    name.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_no_character_that_a_path_or_a_shell_would_read() {
        assert_eq!(segment("a b/c+d?\"$"), "a%20b%2Fc%2Bd%3F%22%24");
        assert_eq!(segment("billing.invoices"), "billing.invoices");
    }
}
