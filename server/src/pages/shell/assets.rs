//! The files that pages refer to: embedded, each with its hash in its name, so that a browser keeps it and a new version is fetched.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use ring::digest::{SHA256, digest};

struct Asset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const ASSETS: [Asset; 4] = [
    Asset {
        name: "console.css",
        media_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../assets/console.css"),
    },
    Asset {
        name: "console.js",
        media_type: JAVASCRIPT,
        bytes: include_bytes!("../../../assets/console.js"),
    },
    Asset {
        name: "idiomorph.js",
        media_type: JAVASCRIPT,
        bytes: include_bytes!("../../../assets/idiomorph.js"),
    },
    Asset {
        name: "icon.svg",
        media_type: "image/svg+xml",
        bytes: include_bytes!("../../../assets/icon.svg"),
    },
];
/// Characters of the hash in a name.
const HASH_BYTES: usize = 6;

/// Each with its versioned name.
static VERSIONED: LazyLock<Vec<(String, &Asset)>> = LazyLock::new(|| {
    let version = |asset: &Asset| {
        let mut hash = String::new();
        for byte in digest(&SHA256, asset.bytes).as_ref().iter().take(HASH_BYTES) {
            // Writing to a String cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        let (stem, ending) = asset.name.split_once('.').unwrap_or((asset.name, ""));
        format!("{stem}-{hash}.{ending}")
    };
    ASSETS.iter().map(|asset| (version(asset), asset)).collect()
});

/// Returns the name under which an asset is served.
pub(in crate::pages) fn versioned(name: &str) -> &'static str {
    let found = VERSIONED.iter().find(|(_, asset)| asset.name == name);
    found.map_or("", |(versioned, _)| versioned.as_str())
}

/// Serves an asset. An older name, of a page that was open when the server was replaced, leads to nothing; the page still works.
pub(in crate::pages) async fn serve(Path(name): Path<String>) -> Response {
    let Some((_, asset)) = VERSIONED.iter().find(|(versioned, _)| *versioned == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let forever = "public, max-age=31536000, immutable";
    ([(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, forever)], asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_has_a_name_that_changes_with_its_content() {
        for asset in &ASSETS {
            let name = versioned(asset.name);
            let (stem, ending) = asset.name.split_once('.').unwrap();
            assert!(name.starts_with(stem) && name.ends_with(ending), "{name}");
            assert_eq!(name.len(), asset.name.len() + 1 + 2 * HASH_BYTES);
        }
    }

    /// Uncompressed, which is stricter than the goal of 80 kB compressed.
    #[test]
    fn all_assets_together_are_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes <= 80_000, "{bytes}");
    }
}
