//! A record of effects outside the platform: what the tasks really did, whatever the rows say.
//!
//! The task appends a line when it begins and one when it ends. Each run holds a lock of its
//! idempotency key, which its child processes inherit: as long as any process of a run lives,
//! another run of the same key finds the lock taken and records that. Appends of short lines are
//! atomic.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use sexton_tests::platform::Platform;

/// What the tasks of one idempotency key did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) begun: usize,
    pub(crate) ended: usize,
}

pub(crate) struct Ledger {
    file: PathBuf,
    script: PathBuf,
}

impl Ledger {
    /// `body` is shell between the begin and the end line; `$SEXTON_ATTEMPT` and the like are set.
    pub(crate) fn new(platform: &Platform, body: &str) -> Self {
        let folder = platform.folder();
        let (file, script) = (folder.join("ledger"), folder.join("task.sh"));
        std::fs::write(&file, "").unwrap();
        let text = format!(
            "#!/bin/sh
key=$(echo \"$SEXTON_IDEMPOTENCY_KEY\" | tr -c 'a-zA-Z0-9\\n' _)
exec 9>>\"{folder}/holder.$key\"
flock -n 9 || echo \"overlap $key $SEXTON_ATTEMPT\" >> {ledger}
echo \"begin $key $SEXTON_ATTEMPT $$\" >> {ledger}
{body}
echo \"end $key $SEXTON_ATTEMPT\" >> {ledger}
",
            folder = folder.display(),
            ledger = file.display()
        );
        std::fs::write(&script, text).unwrap();
        Self { file, script }
    }

    /// A catalogue whose task type `work` is the script.
    pub(crate) fn catalogue(&self) -> String {
        format!("[tasks.work]\ncommand = [\"/bin/sh\", \"{}\"]\n", self.script.display())
    }

    pub(crate) fn lines(&self, first_word: &str) -> Vec<String> {
        std::fs::read_to_string(&self.file)
            .unwrap()
            .lines()
            .filter(|line| line.split(' ').next() == Some(first_word))
            .map(str::to_owned)
            .collect()
    }

    /// How often the tasks of each key began and ended.
    pub(crate) fn runs(&self) -> BTreeMap<String, Runs> {
        let mut runs: BTreeMap<String, Runs> = BTreeMap::new();
        let key = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
        for line in self.lines("begin") {
            runs.entry(key(&line)).or_default().begun += 1;
        }
        for line in self.lines("end") {
            runs.entry(key(&line)).or_default().ended += 1;
        }
        runs
    }

    /// The runs of the only key.
    pub(crate) fn only(&self) -> Runs {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_values().next().unwrap()
    }

    /// Panics if an attempt was begun twice.
    pub(crate) fn each_attempt_once(&self) {
        let mut begun = HashSet::new();
        for line in self.lines("begin") {
            let attempt = line.rsplit_once(' ').map(|(attempt, _)| attempt.to_owned());
            assert!(begun.insert(attempt.unwrap()), "begun twice: {line}");
        }
    }

    /// The keys of these lines, each once.
    pub(crate) fn keys(&self, first_word: &str) -> HashSet<String> {
        let key = |line: &String| line.split(' ').nth(1).unwrap().to_owned();
        self.lines(first_word).iter().map(key).collect()
    }

    /// Panics if two runs of one key were alive at once.
    pub(crate) fn no_overlap(&self) {
        assert_eq!(self.lines("overlap"), Vec::<String>::new());
    }
}
