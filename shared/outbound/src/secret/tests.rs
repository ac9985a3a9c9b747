//! Goal: a secret is read as it is at present or not at all, and is never shown.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sexton_peers::{HangingDisk, in_time};

use super::*;

fn source() -> SecretSource {
    let variables = [("TOKEN", "hunter2"), ("NOTHING", "")];
    SecretSource::new(variables.into_iter().map(|(name, value)| (name.into(), value.into())))
}

async fn file(path: &Path) -> Result<String, String> {
    let read = source().read(&SecretRef::File(path.to_owned())).await;
    read.map(|secret| secret.expose().to_owned())
        .map_err(|error| error.to_string().replace(&path.display().to_string(), "PATH"))
}

#[tokio::test]
async fn a_secret_of_the_environment_is_read_and_never_shown() {
    let mut masks = Vec::new();
    let token = Value::Secret(SecretRef::Env("TOKEN".to_owned()));
    assert_eq!(source().text(&token, &mut masks).await.unwrap(), "hunter2");
    let plain = Value::Plain("open".to_owned());
    assert_eq!(source().text(&plain, &mut masks).await.unwrap(), "open");
    assert_eq!(masks.iter().map(Secret::expose).collect::<Vec<_>>(), ["hunter2"]);
    assert!(!format!("{masks:?} {token:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_missing_secret_is_named_by_its_reference() {
    for (name, why) in [("ABSENT", "is not set"), ("NOTHING", "is empty")] {
        let error = source().read(&SecretRef::Env(name.to_owned())).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the secret of the variable {name} {why}"));
    }
}

#[tokio::test]
async fn a_file_is_read_anew_each_time_without_its_line_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let missing = file(&path).await.unwrap_err();
    assert!(
        missing.starts_with("the secret in the file PATH cannot be read: No such"),
        "{missing}"
    );
    for (written, read) in [("one\n", "one"), ("two\r\n", "two"), ("three\n\n", "three\n")] {
        fs::write(&path, written).unwrap();
        assert_eq!(file(&path).await.unwrap(), read);
    }
}

#[tokio::test]
async fn what_is_no_secret_is_refused_without_waiting_and_without_being_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let problem = |reason: &str| Err(format!("the secret in the file PATH {reason}"));
    let longest = "x".repeat(SECRET_MAX_BYTES);
    fs::write(&path, format!("{longest}\n")).unwrap();
    assert_eq!(file(&path).await.as_deref(), Ok(longest.as_str()));
    fs::write(&path, format!("{longest}x\n")).unwrap();
    assert_eq!(file(&path).await, problem("is longer than 64 KiB"));
    fs::write(&path, [b'p', 0xff]).unwrap();
    assert_eq!(file(&path).await, problem("is not UTF-8"));
    fs::write(&path, "pass\0word").unwrap();
    assert_eq!(file(&path).await, problem("holds a NUL"));
    fs::write(&path, "\n").unwrap();
    assert_eq!(file(&path).await, problem("is empty"));
    assert_eq!(file(folder.path()).await, problem("cannot be read: it is no file"));
    // Nobody will ever write to this pipe.
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(file(&pipe).await, problem("cannot be read: it is no file"));
}

#[test]
fn a_disk_that_hangs_keeps_one_thread_however_many_attempts_ask() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        // Dropped before the runtime, which waits for its threads.
        let Some(disk) = HangingDisk::mount() else { return };
        let (source, secret) = (source(), SecretRef::File(disk.file()));
        for _ in 0..3 {
            let (source, secret) = (source.clone(), secret.clone());
            tokio::spawn(async move { source.read(&secret).await });
        }
        // By then each of them has begun its read.
        tokio::task::yield_now().await;
        in_time(tokio::task::spawn_blocking(|| ())).await.unwrap();
    });
}
