//! What is before a server: networks of proxies, and the headers that they send.

use sexton_model::network::Network;

use super::Rule;

/// The most networks of one setting.
const MAX_NETWORKS: usize = 100;
/// Longest base path.
const MAX_PATH_BYTES: usize = 200;
const MAX_HEADER_BYTES: usize = 100;
/// Headers that say something else already.
const TAKEN_HEADERS: [&str; 5] =
    ["authorization", "connection", "content-length", "cookie", "host"];

/// Networks, separated by commas.
pub(crate) struct Networks;

impl Rule for Networks {
    type Value = Vec<Network>;

    fn parse(&self, text: &str) -> Result<Vec<Network>, String> {
        let parse = |entry: &str| {
            let entry = entry.trim();
            entry.parse().map_err(|error| format!("{entry:?}: {error}"))
        };
        let networks: Vec<Network> = text.split(',').map(parse).collect::<Result<_, _>>()?;
        if networks.len() > MAX_NETWORKS {
            return Err(format!("{} entries are too many", networks.len()));
        }
        Ok(networks)
    }

    fn allowed(&self) -> String {
        format!(
            "1 to {MAX_NETWORKS} entries separated by commas, each an IP address, or a network like 10.0.0.0/8 or fd00::/8"
        )
    }
}

/// A path before others, with a slash before and none behind it. `/` is none.
pub(crate) struct BasePath;

impl Rule for BasePath {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let fits = |segment: &str| {
            !segment.is_empty()
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
                && !matches!(segment, "." | "..")
        };
        let mut segments = path.split('/');
        if path.len() > MAX_PATH_BYTES || segments.next() != Some("") || !segments.all(fits) {
            return Err("not such a path".to_owned());
        }
        // A server behind a proxy that removes it would take the routes of programs for it.
        if matches!(path.split('/').nth(1), Some("api" | "ping")) {
            return Err("the API and pings are there".to_owned());
        }
        Ok(path.to_owned())
    }

    fn allowed(&self) -> String {
        format!(
            "a path of letters, digits and `-_.~` with a slash before, at most {MAX_PATH_BYTES} bytes, like /sexton"
        )
    }
}

/// The name of a header of HTTP, in lower case.
pub(crate) struct HeaderName;

impl Rule for HeaderName {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        let name = text.to_ascii_lowercase();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > MAX_HEADER_BYTES || !name.bytes().all(fits) {
            return Err("not such a name".to_owned());
        }
        if TAKEN_HEADERS.contains(&name.as_str()) {
            return Err("this header has another meaning".to_owned());
        }
        Ok(name)
    }

    fn allowed(&self) -> String {
        format!(
            "the name of a header, of letters, digits and hyphens, at most {MAX_HEADER_BYTES} bytes, like X-Forwarded-User"
        )
    }
}
