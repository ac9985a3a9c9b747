//! Under which circumstances two counts of the same code are the same.
//!
//! Another compiler makes other code, another C library copies and allocates otherwise, and both look at
//! what the processor can do. A difference between such counts says nothing about a change.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// What a count depends on besides the code.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circumstances {
    /// As `rustc --version` says.
    pub rustc: String,
    /// For which the compiler compiles, such as `x86_64-unknown-linux-gnu`.
    pub target: String,
    /// As `getconf GNU_LIBC_VERSION` says; `unknown` with another C library.
    pub libc: String,
    /// As `valgrind --version` says: it decides which processor the program sees.
    pub valgrind: String,
    /// The widest vectors that libraries choose at run time.
    pub vectors: String,
}

impl Circumstances {
    /// Those of this machine.
    ///
    /// # Errors
    ///
    /// The compiler or valgrind cannot be asked.
    pub fn here() -> Result<Self> {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let told = run_program(&rustc, &["-vV"])?;
        let first = told.lines().next().unwrap_or_default().to_owned();
        let target = told.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            rustc: first,
            target: target.context("`rustc -vV` names no host")?.to_owned(),
            libc: run_program("getconf", &["GNU_LIBC_VERSION"])
                .unwrap_or_else(|_| "unknown".to_owned()),
            valgrind: run_program("valgrind", &["--version"])
                .context("ask valgrind; `sh bench/counts/valgrind.sh` installs it")?,
            vectors: vectors().to_owned(),
        })
    }

    /// With their names, in the order of the file.
    pub fn named(&self) -> [(&'static str, &str); 5] {
        [
            ("rustc", &self.rustc),
            ("target", &self.target),
            ("libc", &self.libc),
            ("valgrind", &self.valgrind),
            ("vectors", &self.vectors),
        ]
    }

    /// What is otherwise here than it was there, each as a line for people; none: the counts can be compared.
    pub fn differences(&self, there: &Self) -> Vec<String> {
        let pairs = self.named().into_iter().zip(there.named());
        let other = pairs.filter(|((_, here), (_, there))| here != there);
        other
            .map(|((name, here), (_, there))| format!("{name}: {there} then, {here} here"))
            .collect()
    }
}

fn run_program(program: &str, arguments: &[&str]) -> Result<String> {
    let asked =
        Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    if !asked.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), asked.status);
    }
    Ok(String::from_utf8_lossy(&asked.stdout).trim().to_owned())
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> &'static str {
    if std::arch::is_x86_feature_detected!("avx2") { "avx2" } else { "sse2" }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> &'static str {
    std::env::consts::ARCH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Circumstances {
        Circumstances {
            rustc: "rustc 1.95.0".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            libc: "glibc 2.36".to_owned(),
            valgrind: "valgrind-3.19.0".to_owned(),
            vectors: "avx2".to_owned(),
        }
    }

    #[test]
    fn each_differing_circumstance_is_named() {
        assert_eq!(some().differences(&some()), Vec::<String>::new());
        let newer = Circumstances { rustc: "rustc 1.96.0".to_owned(), ..some() };
        assert_eq!(newer.differences(&some()), ["rustc: rustc 1.95.0 then, rustc 1.96.0 here"]);
        let other =
            Circumstances { vectors: "sse2".to_owned(), libc: "unknown".to_owned(), ..some() };
        assert_eq!(other.differences(&some()).len(), 2);
    }
}
