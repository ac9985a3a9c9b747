//! The ledger: what tasks really did, kept outside of the platform.
//!
//! Every task is the same shell script. It appends a line when it begins and one when it ends, and
//! holds a lock of its idempotency key in between. The kernel releases the lock when the last process
//! of the run is gone, however it went; so a run that finds the lock held overlaps with a run that is
//! alive, on this one host without any doubt. Appends of short lines are atomic.
//!
//! A file named like the task's job says how long the task takes and how it ends, so that it can
//! be changed while the platform runs.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::effects;

/// How tasks of a job behave from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskBehavior {
    /// Half a second, then success.
    Well,
    /// The first attempt fails at once; later ones succeed.
    FailsFirst,
    /// Every attempt fails at once, and trying again cannot help.
    Fails,
    /// The first attempt takes so many seconds; later ones half a second.
    Takes(u32),
    /// The same, but only where the victim runs it: the peer stays free for the next attempt.
    TakesVictim(u32),
}

/// Which worker runs a task, as its catalogue says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// The one that is struck.
    Victim,
    /// The one that is not.
    Peer,
}

impl Runner {
    const fn word(self) -> &'static str {
        match self {
            Self::Victim => "victim",
            Self::Peer => "peer",
        }
    }
}

impl TaskBehavior {
    /// Seconds of the first attempt, at the peer and at the victim, and its exit status; then
    /// seconds and exit status of later ones.
    fn words(self) -> String {
        match self {
            Self::Well => "0.5 0.5 0 0.5 0".to_owned(),
            Self::FailsFirst => "0 0 1 0.5 0".to_owned(),
            Self::Fails => "0 0 65 0 65".to_owned(),
            Self::Takes(seconds) => format!("{seconds} {seconds} 0 0.5 0"),
            Self::TakesVictim(seconds) => format!("0.5 {seconds} 0 0.5 0"),
        }
    }
}

/// A line of the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A task began.
    Begin {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
        /// The execution.
        execution: Uuid,
    },
    /// A task came to its end.
    End {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
        /// The execution.
        execution: Uuid,
    },
    /// A task has had the effect that must not happen twice, and has yet to end.
    Effect {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
        /// The execution.
        execution: Uuid,
    },
    /// A task found another run of its key alive.
    Overlap {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
    },
}

/// A ledger and the script that writes it.
#[derive(Clone, Debug)]
pub struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    /// Prepares one in `folder`, which must exist.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let ledger = Self { folder: folder.to_owned() };
        for part in ["locks", "moods"] {
            std::fs::create_dir_all(folder.join(part))?;
        }
        std::fs::write(ledger.file(), "")?;
        std::fs::write(folder.join("moods/any"), TaskBehavior::Well.words())?;
        std::fs::write(ledger.script(), ledger.text())?;
        std::fs::write(folder.join("verify.sh"), ledger.verify_text())?;
        for runner in [Runner::Victim, Runner::Peer] {
            let (script, word) = (ledger.script(), runner.word());
            let (script, verify) = (script.display(), ledger.folder.join("verify.sh"));
            let text = format!(
                "[tasks.work]\ncommand = [\"/bin/sh\", \"{script}\", \"{word}\"]\n\
                 [tasks.charge]\ncommand = [\"/bin/sh\", \"{script}\", \"{word}\", \"charge\"]\n\
                 [tasks.charged]\ncommand = [\"/bin/sh\", \"{}\"]\n{}",
                verify.display(),
                effects::CATALOGUE
            );
            std::fs::write(ledger.catalogue(runner), text)?;
        }
        Ok(ledger)
    }

    /// The file of a worker's catalogue: the task type `work` is the script, `statement` a statement.
    pub fn catalogue(&self, runner: Runner) -> PathBuf {
        self.folder.join(runner.word()).with_extension("toml")
    }

    /// Says how the tasks of a job behave from now on; until then they are [`TaskBehavior::Well`].
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn behavior(&self, job: &str, behavior: TaskBehavior) -> io::Result<()> {
        // A task that reads at this moment finds the old words or the new ones, never half of them.
        let draft = self.folder.join("mood.draft");
        std::fs::write(&draft, behavior.words())?;
        std::fs::rename(draft, self.folder.join("moods").join(job))
    }

    /// Says how many seconds a question takes from now on.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn question_takes(&self, seconds: u32) -> io::Result<()> {
        std::fs::write(self.folder.join("moods/question"), format!("{seconds}\n"))
    }

    /// All that was written so far.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&self) -> io::Result<Vec<Entry>> {
        let text = std::fs::read_to_string(self.file())?;
        Ok(text.lines().filter_map(entry).collect())
    }

    /// The file that tasks write.
    pub fn file(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    fn script(&self) -> PathBuf {
        self.folder.join("task.sh")
    }

    /// Built-in commands but for two: thousands of these run.
    fn text(&self) -> String {
        format!(
            r#"#!/bin/sh
cd '{folder}' || exit 75
key=$SEXTON_IDEMPOTENCY_KEY
exec 9>>"locks/$key" || exit 75
flock -n 9 || echo "overlap $SEXTON_ATTEMPT $SEXTON_EXECUTION_ID $key" >>ledger
echo "begin $SEXTON_ATTEMPT $SEXTON_EXECUTION_ID $key" >>ledger
mood=moods/$SEXTON_JOB
[ -e "$mood" ] || mood=moods/any
read -r seconds of_victim status later later_status <"$mood"
[ "$1" = peer ] || seconds=$of_victim
[ "$SEXTON_ATTEMPT" = 1 ] || {{ seconds=$later; status=$later_status; }}
echo "said by $key"
[ "$seconds" = 0 ] || sleep "$seconds"
case $2$status$SEXTON_EXECUTION_KEY in
charge65no*) ;;
charge*) echo "effect $SEXTON_ATTEMPT $SEXTON_EXECUTION_ID $key" >>ledger ;;
esac
echo "end $SEXTON_ATTEMPT $SEXTON_EXECUTION_ID $key" >>ledger
exit "$status"
"#,
            folder = self.folder.display()
        )
    }
}

impl Ledger {
    /// Says whether the effect of the execution in question is in the ledger.
    fn verify_text(&self) -> String {
        format!(
            r#"#!/bin/sh
cd '{folder}' || exit 75
seconds=0
[ ! -e moods/question ] || read -r seconds <moods/question
[ "$seconds" = 0 ] || sleep "$seconds"
if grep -q "^effect [0-9]* [^ ]* $SEXTON_IDEMPOTENCY_KEY\$" ledger; then
    echo true
else
    echo false
fi >"$SEXTON_RESULT_FILE"
"#,
            folder = self.folder.display()
        )
    }
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.splitn(4, ' ');
    let (what, attempt) = (words.next()?, words.next()?.parse().ok()?);
    let (execution, key) = (words.next()?.parse().ok()?, words.next()?.to_owned());
    match what {
        "begin" => Some(Entry::Begin { key, attempt, execution }),
        "end" => Some(Entry::End { key, attempt, execution }),
        "effect" => Some(Entry::Effect { key, attempt, execution }),
        "overlap" => Some(Entry::Overlap { key, attempt }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process_group};

    use super::*;

    fn run(ledger: &Ledger, attempt: &str) -> Child {
        Command::new("/bin/sh")
            .args([ledger.script().into_os_string(), "victim".into()])
            .stdout(std::process::Stdio::null())
            .process_group(0)
            .env("SEXTON_IDEMPOTENCY_KEY", "a.b:every-2026")
            .env("SEXTON_EXECUTION_ID", Uuid::from_u128(1).to_string())
            .env("SEXTON_ATTEMPT", attempt)
            .env("SEXTON_JOB", "a.b")
            .spawn()
            .unwrap()
    }

    fn key() -> String {
        "a.b:every-2026".to_owned()
    }

    fn begin(attempt: i32) -> Entry {
        Entry::Begin { key: key(), attempt, execution: Uuid::from_u128(1) }
    }

    fn end(attempt: i32) -> Entry {
        Entry::End { key: key(), attempt, execution: Uuid::from_u128(1) }
    }

    fn wait_for(ledger: &Ledger, wanted: &Entry) {
        let until = Instant::now() + Duration::from_mins(1);
        while !ledger.read().unwrap().contains(wanted) {
            assert!(Instant::now() < until, "{wanted:?} is missing in {:?}", ledger.read());
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_run_reports_only_a_concurrent_run() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path()).unwrap();
        ledger.behavior("a.b", TaskBehavior::TakesVictim(60)).unwrap();
        let mut slow = run(&ledger, "1");
        wait_for(&ledger, &begin(1));
        ledger.behavior("a.b", TaskBehavior::Fails).unwrap();
        assert_eq!(run(&ledger, "2").wait().unwrap().code(), Some(65));
        let overlap = Entry::Overlap { key: key(), attempt: 2 };
        let expected = vec![begin(1), overlap, begin(2), end(2)];
        assert_eq!(ledger.read().unwrap(), expected);

        // The shell alone: its `sleep` holds the lock as well and must not be taken for gone.
        slow.kill().unwrap();
        slow.wait().unwrap();
        run(&ledger, "3").wait().unwrap();
        assert!(ledger.read().unwrap().contains(&Entry::Overlap { key: key(), attempt: 3 }));
        let group = Pid::from_raw(slow.id().cast_signed()).unwrap();
        kill_process_group(group, Signal::KILL).unwrap();
    }

    #[test]
    fn a_charge_has_its_effect_before_it_ends_and_a_failing_charge_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path()).unwrap();
        ledger.behavior("a.b", TaskBehavior::Fails).unwrap();
        let ask_about = |key: &str| {
            let result = folder.path().join("result");
            let ended = Command::new("/bin/sh")
                .arg(folder.path().join("verify.sh"))
                .env("SEXTON_IDEMPOTENCY_KEY", key)
                .env("SEXTON_RESULT_FILE", &result)
                .status()
                .unwrap();
            assert!(ended.success());
            std::fs::read_to_string(result).unwrap()
        };
        for (execution_key, happened) in [("yes-1", "true\n"), ("no-1", "false\n")] {
            let key = format!("a.b:{execution_key}");
            let ended = Command::new("/bin/sh")
                .args([ledger.script().into_os_string(), "victim".into(), "charge".into()])
                .stdout(std::process::Stdio::null())
                .env("SEXTON_IDEMPOTENCY_KEY", &key)
                .env("SEXTON_EXECUTION_KEY", execution_key)
                .env("SEXTON_EXECUTION_ID", Uuid::from_u128(1).to_string())
                .env("SEXTON_ATTEMPT", "1")
                .env("SEXTON_JOB", "a.b")
                .status()
                .unwrap();
            assert_eq!((ended.code(), ask_about(&key).as_str()), (Some(65), happened));
        }
        let effects = ledger.read().unwrap();
        let effects = effects.iter().filter(|entry| matches!(entry, Entry::Effect { .. }));
        assert_eq!(effects.count(), 1);
    }

    #[test]
    fn a_task_follows_its_configured_behavior() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path()).unwrap();
        ledger.behavior("a.b", TaskBehavior::FailsFirst).unwrap();
        assert_eq!(run(&ledger, "1").wait().unwrap().code(), Some(1));
        assert_eq!(run(&ledger, "2").wait().unwrap().code(), Some(0));
        ledger.behavior("a.b", TaskBehavior::Well).unwrap();
        assert_eq!(run(&ledger, "1").wait().unwrap().code(), Some(0));
    }
}
