//! Where the programs under test are.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// Names another folder for the programs. It does not begin like one of their settings, which would
/// be refused as unknown, and is not handed on in any case.
const FOLDER_VARIABLE: &str = "TEST_BIN_DIR";

/// The program `name`: in `TEST_BIN_DIR` if that is set, else beside this program, which is where
/// cargo puts binaries, or one folder above, which is where it puts them for a test.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let folders = if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        vec![PathBuf::from(folder)]
    } else {
        let program = std::env::current_exe().context("failed to find this program's own file")?;
        program.ancestors().skip(1).take(2).map(PathBuf::from).collect()
    };
    let candidates = folders.iter().map(|folder| folder.join(name));
    let Some(found) = candidates.clone().find(|path| path.is_file()) else {
        let places: Vec<_> = candidates.map(|path| path.display().to_string()).collect();
        bail!(
            "the program {name} is not at {}: build it with `cargo build --workspace --bins`",
            places.join(" or ")
        );
    };
    // It is started from another working directory.
    std::path::absolute(&found).with_context(|| format!("resolve {}", found.display()))
}
