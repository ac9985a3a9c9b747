//! Encodes what a guard must start. A guard started in advance receives it later, over the socket.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

/// Largest setup, in bytes. The kernel's limit for arguments and variables is a few megabytes as well.
pub(crate) const SETUP_MAX_BYTES: usize = 16 * 1024 * 1024;

/// A program with its arguments, directory and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Its working directory; `None`: the worker's.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl Setup {
    /// Encodes the setup: the directory (empty if there is none), the number of words, the words, and each
    /// variable as `NAME=value`, all ended by a NUL; then a line end, so that people can read a trace of the
    /// socket.
    ///
    /// `None`: no process can be started with it, because it contains a NUL or is larger than
    /// [`SETUP_MAX_BYTES`].
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(1024);
        let mut whole = true;
        let mut add = |parts: &[&[u8]]| {
            for part in parts {
                whole &= !part.contains(&0);
                bytes.extend_from_slice(part);
            }
            bytes.push(0);
        };
        let directory = self.directory.as_ref().map_or(OsStr::new(""), |path| path.as_os_str());
        add(&[directory.as_bytes()]);
        add(&[(1 + self.arguments.len()).to_string().as_bytes()]);
        add(&[self.program.as_bytes()]);
        for word in &self.arguments {
            add(&[word.as_bytes()]);
        }
        for (name, value) in &self.environment {
            add(&[name.as_bytes(), b"=", value.as_bytes()]);
        }
        bytes.push(b'\n');
        (whole && bytes.len() <= SETUP_MAX_BYTES).then_some(bytes)
    }

    /// Decodes the output of [`encode`](Self::encode); `None` if it is invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.strip_suffix(b"\0\n")?.split(|&byte| byte == 0);
        let directory = Some(parts.next()?).filter(|path| !path.is_empty());
        let words: usize = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let owned = |part: &[u8]| OsString::from_vec(part.to_vec());
        let program = owned(parts.next()?);
        let arguments: Vec<_> = parts.by_ref().take(words.checked_sub(1)?).map(owned).collect();
        if arguments.len() + 1 != words {
            return None;
        }
        let variable = |part: &[u8]| {
            // A name is not empty, so a `=` at the beginning belongs to it.
            let end = part.iter().skip(1).position(|&byte| byte == b'=')? + 1;
            Some((owned(&part[..end]), owned(&part[end + 1..])))
        };
        let environment = parts.map(variable).collect::<Option<_>>()?;
        let directory = directory.map(|path| PathBuf::from(owned(path)));
        Some(Self { directory, program, arguments, environment })
    }

    /// Returns the value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let named = self.environment.iter().rev().find(|(known, _)| known == name);
        named.map(|(_, value)| value.as_os_str())
    }

    /// Returns the command with its words and variables, and none of this process's.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(1u8.., 0..20).prop_map(OsString::from_vec)
    }

    prop_compose! {
        fn setups()(
            directory in prop::option::of("/[a-z]{0,10}"),
            program in text(),
            arguments in prop::collection::vec(text(), 0..5),
            environment in prop::collection::vec(("[A-Z_]{1,8}", text()), 0..5),
        ) -> Setup {
            let environment = environment.into_iter().map(|(name, value)| (name.into(), value));
            let directory = directory.map(PathBuf::from);
            Setup { directory, program, arguments, environment: environment.collect() }
        }
    }

    proptest! {
        #[test]
        fn a_setup_comes_back_from_its_bytes(setup in setups()) {
            let bytes = setup.encode().unwrap();
            prop_assert_eq!(Setup::decode(&bytes), Some(setup));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Setup::decode(&bytes);
        }
    }

    #[test]
    fn what_no_process_can_be_started_with_is_refused() {
        let setup = Setup {
            directory: None,
            program: "/bin/true".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        assert_eq!(setup.encode().unwrap(), b"\x001\0/bin/true\0\n");
        let nul = Setup { arguments: vec!["a\0b".into()], ..setup.clone() };
        assert_eq!(nul.encode(), None);
        let large = Setup { arguments: vec!["x".repeat(SETUP_MAX_BYTES).into()], ..setup };
        assert_eq!(large.encode(), None);
        for damaged in
            [&b""[..], b"\n", b"\0\n", b"\x000\0a\0\n", b"\x002\0a\0\n", b"\x001\0a\0B\0\n"]
        {
            assert_eq!(Setup::decode(damaged), None, "{damaged:?}");
        }
    }
}
