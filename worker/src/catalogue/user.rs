//! Looks up the user of a command when the catalogue is loaded.

use sexton_model::quoting;

use crate::executor::command::TaskUser;

/// Longest name of a user, in bytes.
pub(super) const NAME_MAX_BYTES: usize = 256;

/// The host's accounts.
const ACCOUNTS: &str = "/etc/passwd";

/// Finds the user with this name, or with this number.
///
/// # Errors
///
/// The reason why no command can run as that user, for people.
pub(super) fn find(name: &str) -> Result<TaskUser, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs a worker that runs as root, which this one does not".to_owned());
    }
    let accounts = std::fs::read(ACCOUNTS).unwrap_or_default();
    find_in(name, &String::from_utf8_lossy(&accounts))
}

fn find_in(name: &str, accounts: &str) -> Result<TaskUser, String> {
    let number: Option<u32> = name.parse().ok();
    for line in accounts.lines() {
        let fields: Vec<_> = line.split(':').collect();
        let &[account, _, uid, gid, _, home, ..] = &fields[..] else { continue };
        let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { continue };
        if account == name || number == Some(uid) {
            return Ok(TaskUser { uid, gid, account: Some((account.to_owned(), home.to_owned())) });
        }
    }
    match number {
        // Containers run with user ids that have no account. The last one means "none" to the kernel.
        Some(uid) if uid < u32::MAX => Ok(TaskUser { uid, gid: uid, account: None }),
        _ => Err(format!("{} is no user of this host, by {ACCOUNTS}", quoting::quoted(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "root:x:0:0:root:/root:/bin/bash\n+::::::\nbroken:x\n\
                        reports:x:900:901:Reports,,,:/srv/reports:/usr/sbin/nologin\n";

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let account = Some(("reports".to_owned(), "/srv/reports".to_owned()));
        let reports = TaskUser { uid: 900, gid: 901, account };
        assert_eq!(find_in("reports", HOST), Ok(reports.clone()));
        assert_eq!(find_in("900", HOST), Ok(reports));
        assert_eq!(find_in("12345", HOST), Ok(TaskUser { uid: 12345, gid: 12345, account: None }));
    }

    #[test]
    fn nobody_is_not_guessed() {
        for name in ["report", "", "4294967295", "-1", "0x0"] {
            let message = find_in(name, HOST).unwrap_err();
            assert!(message.contains("is no user of this host"), "{message}");
        }
    }
}
