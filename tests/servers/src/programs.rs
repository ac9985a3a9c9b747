//! Where the servers' programs are, if they are installed, and which user may run them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::installation::{Installation, Root};

/// Folders that hold servers' programs without being in an ordinary user's `PATH`.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// PostgreSQL's programs.
#[derive(Debug, Clone)]
pub(super) struct PostgresPrograms {
    pub(super) initdb: PathBuf,
    pub(super) postgres: PathBuf,
    /// Whose they are. As another user than root, whom PostgreSQL refuses.
    pub(super) place: Installation,
}

/// RabbitMQ's programs.
#[derive(Debug, Clone)]
pub(super) struct RabbitPrograms {
    /// The script that starts the server: not a distribution's wrapper, which drops the environment
    /// and changes the user.
    pub(super) server: PathBuf,
    /// Erlang's port mapper, which is started apart so that it can be ended.
    pub(super) epmd: PathBuf,
    /// Whose they are.
    pub(super) place: Installation,
}

/// An unprivileged user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl PostgresPrograms {
    /// The newest installed version, `PATH` first.
    pub(super) fn find() -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root { Some(User::find(Path::new("/etc/passwd"))?) } else { None };
        let mut folders = Vec::new();
        // A link in PATH stands for the folder it leads to: initdb looks for its files from there.
        folders.extend(in_path("postgres").and_then(|p| Some(p.parent()?.to_owned())));
        folders.extend(versions(Path::new("/usr/lib/postgresql"), "", "bin"));
        folders.extend(versions(Path::new("/usr"), "pgsql-", "bin"));
        folders.push("/usr/local/pgsql/bin".into());
        let (initdb, postgres) = folders.iter().find_map(|folder| Self::both_in(folder))?;
        Some(Self { initdb, postgres, place: Installation::here(user) })
    }

    /// The newest version that a distribution's packages installed in `root`.
    pub(super) fn find_in(root: &Root) -> Option<Self> {
        let user = Some(User::find(&root.path("etc/passwd"))?);
        let folders = versions(&root.path("usr/lib/postgresql"), "", "bin");
        let (initdb, postgres) = folders.iter().find_map(|folder| Self::both_in(folder))?;
        let (initdb, postgres) = (root.seen(&initdb), root.seen(&postgres));
        Some(Self { initdb, postgres, place: Installation { root: Some(root.clone()), user } })
    }

    fn both_in(folder: &Path) -> Option<(PathBuf, PathBuf)> {
        let both = (folder.join("initdb"), folder.join("postgres"));
        (both.0.is_file() && both.1.is_file()).then_some(both)
    }
}

impl RabbitPrograms {
    /// The installed server, `PATH` first, if Erlang is there too.
    pub(super) fn find() -> Option<Self> {
        let mut folders = vec![PathBuf::from("/usr/lib/rabbitmq/bin")];
        folders.extend(in_path("rabbitmq-server").and_then(|p| Some(p.parent()?.to_owned())));
        folders.extend(versions(Path::new("/usr/lib/rabbitmq/lib"), "rabbitmq_server-", "sbin"));
        folders.extend(versions(Path::new("/opt"), "rabbitmq_server-", "sbin"));
        folders.push("/opt/rabbitmq/sbin".into());
        let server = folders.iter().find_map(|folder| Self::script_in(folder))?;
        in_path("erl")?;
        let epmd = in_path("epmd").or_else(|| Self::epmd_of(Path::new("/usr/lib/erlang")))?;
        Some(Self { server, epmd, place: Installation::default() })
    }

    /// The server that a distribution's package installed in `root`.
    pub(super) fn find_in(root: &Root) -> Option<Self> {
        let folders = versions(&root.path("usr/lib/rabbitmq/lib"), "rabbitmq_server-", "sbin");
        let server = folders.iter().find_map(|folder| Self::script_in(folder))?;
        let epmd = Self::epmd_of(&root.path("usr/lib/erlang"))?;
        let (server, epmd) = (root.seen(&server), root.seen(&epmd));
        Some(Self { server, epmd, place: Installation { root: Some(root.clone()), user: None } })
    }

    /// The real script lives beside the one it reads its defaults with; a wrapper does not.
    fn script_in(folder: &Path) -> Option<PathBuf> {
        let script = folder.join("rabbitmq-server");
        (folder.join("rabbitmq-env").is_file() && script.is_file()).then_some(script)
    }

    fn epmd_of(erlang: &Path) -> Option<PathBuf> {
        let erts = versions(erlang, "erts-", "bin").into_iter();
        erts.map(|folder| folder.join("epmd")).find(|program| program.is_file())
    }
}

impl User {
    /// The user `postgres`, else `nobody`.
    pub(super) fn find(passwd: &Path) -> Option<Self> {
        let passwd = std::fs::read_to_string(passwd).ok()?;
        ["postgres", "nobody"].into_iter().find_map(|name| Self::named(name, &passwd))
    }

    fn named(name: &str, passwd: &str) -> Option<Self> {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some(Self { uid: ids.next()?.parse().ok()?, gid: ids.next()?.parse().ok()? })
    }
}

/// A `PATH` for servers: this process's own and the folders that ordinary users lack.
pub(super) fn search_path() -> OsString {
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path_variable).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    std::env::join_paths(folders).unwrap_or(path_variable)
}

/// The file that `name` in the search path leads to.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .and_then(|file| file.canonicalize().ok())
}

/// `parent/<prefix><version>/<below>`, newest version first.
fn versions(parent: &Path, prefix: &str, below: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?;
            let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>();
            Some((numbers.ok()?, entry.path().join(below)))
        })
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let passwd =
            "postgresql:x:7:8::/:/bin/sh\npostgres:x:101:104:PostgreSQL:/:/bin/sh\nbad:x\n";
        assert_eq!(User::named("postgres", passwd), Some(User { uid: 101, gid: 104 }));
        assert_eq!(User::named("bad", passwd), None);
        assert_eq!(User::named("nobody", passwd), None);
    }

    #[test]
    fn the_newest_version_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["9.6", "15", "17", "readme"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let found = versions(folder.path(), "", "bin");
        let expected = ["17/bin", "15/bin", "9.6/bin"].map(|path| folder.path().join(path));
        assert_eq!(found, expected);
    }
}
