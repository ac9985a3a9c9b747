//! Reads files that people name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sexton_model::jobs_file::MAX_FILE_BYTES;

/// The text of a file, or of standard input for `-`; of one that is too long a byte more than may be.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    // One byte more than a file may have, so that the parser is the one to refuse it.
    read_text_up_to(path, MAX_FILE_BYTES as u64 + 1)
}

/// The same, cut after so many bytes.
pub(crate) fn read_text_up_to(path: &Path, limit: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 == limit {
        // The cut may have split a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("it is not UTF-8 (byte {at}); save it as UTF-8");
        std::io::Error::new(std::io::ErrorKind::InvalidData, message)
    })
}
