//! libfaketime, through which a program reads a wrong clock.

use std::path::{Path, PathBuf};

use tokio::sync::Mutex;

use crate::{ServersError, install};

/// Where distributions put it, per architecture.
const FOLDER: &str = "/usr/lib";
/// The variable that names another file.
const VARIABLE: &str = "TEST_FAKETIME";

/// Held while the package is installed: tests beside one another need it at once.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// The file of libfaketime, for `LD_PRELOAD`; on Debian and Ubuntu its package is installed if it
/// is missing, as servers are.
///
/// # Errors
///
/// It is missing and cannot be installed from here.
pub async fn faketime_library() -> Result<PathBuf, ServersError> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Ok(named.into());
    }
    let _alone = INSTALLING.lock().await;
    if let Some(found) = find() {
        return Ok(found);
    }
    let why = match install::package("libfaketime").await {
        Ok(()) => "its package does not bring it".to_owned(),
        Err(why) => why,
    };
    find().ok_or(ServersError::NoFaketime { folder: FOLDER, variable: VARIABLE, why })
}

/// `/usr/lib/<architecture>/faketime/`, or without the architecture.
fn find() -> Option<PathBuf> {
    let folder = Path::new(FOLDER);
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(folder.to_owned())
        .chain(below)
        .map(|folder| folder.join("faketime/libfaketime.so.1"))
        .find(|file| file.is_file())
}
