//! What the path of a crontab tells of it.

use std::path::Path;

/// Endings of file names that say that it is a crontab, and nothing of what is in it.
const FILE_ENDINGS: [&str; 4] = [".cron.d", ".crontab", ".cron", ".txt"];
/// Names that say nothing either.
const GENERIC_NAMES: [&str; 4] = ["crontab", "cron", "root", "system"];

/// Whether a crontab at this path has a column for the user by its place: `/etc/crontab` and the
/// files of a folder `cron.d`.
pub fn has_users(file: &str) -> bool {
    let path = Path::new(file);
    let folder = path.parent().and_then(Path::file_name);
    file == "/etc/crontab" || folder.is_some_and(|folder| folder == "cron.d")
}

/// What a file is about by its name, as in `/etc/cron.d/certbot`; `None` if that says nothing.
pub(super) fn stem(file: &str) -> Option<&str> {
    let name = Path::new(file).file_name()?.to_str()?;
    let name = FILE_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    (!matches!(name, "" | "-") && !GENERIC_NAMES.contains(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_whether_there_are_users_and_what_the_file_is_about() {
        for (file, users, about) in [
            ("/etc/crontab", true, None),
            ("/etc/cron.d/certbot", true, Some("certbot")),
            ("backup/cron.d/php.cron.d", true, Some("php")),
            ("sysstat.cron", false, Some("sysstat")),
            ("-", false, None),
            ("", false, None),
        ] {
            assert_eq!((has_users(file), stem(file)), (users, about), "{file}");
        }
    }
}
