//! Prints `docs/reference/metrics.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(sexton_service::metrics::reference_page().as_bytes())
}
