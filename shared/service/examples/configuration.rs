//! Prints `docs/reference/settings.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(sexton_service::settings::markdown().as_bytes())
}
