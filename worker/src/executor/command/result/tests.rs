//! Goal: whatever a task does to its folder, only its own result is read, and the folder is removed.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::*;

/// Returns the path of a folder and the folder.
fn folder(user: Option<&TaskUser>) -> (PathBuf, ResultFolder) {
    let folder = ResultFolder::make(user).unwrap();
    (folder.folder.path().to_owned(), folder)
}

/// Creates nested folders, each with a file.
fn nested(top: &std::path::Path, depth: u32) {
    let open = |at: &OwnedFd| openat(at, "n", OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut at = openat(CWD, top, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&at, "n", Mode::RWXU).unwrap();
        at = open(&at);
        drop(openat(&at, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap());
    }
}

#[tokio::test]
async fn a_folder_goes_however_deep_and_wide_it_is() {
    let (path, folder) = folder(None);
    nested(&path, 3_000);
    for number in 0..1_000 {
        fs::write(path.join(number.to_string()), "x").unwrap();
        fs::create_dir_all(path.join(format!("{number}.d/x/y"))).unwrap();
    }
    // Not `close`, which waits within a limit only. The stack is small on purpose.
    let removed = Arc::clone(&folder.folder);
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    thread.spawn(move || removed.remove()).unwrap().join().unwrap().unwrap();
    assert!(!path.exists());
    folder.close(false).await.unwrap();
}

#[tokio::test]
async fn nothing_is_removed_through_a_link() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("kept");
    fs::write(&target, "x").unwrap();
    let (path, within) = folder(None);
    std::os::unix::fs::symlink(elsewhere.path(), path.join("link")).unwrap();
    within.close(false).await.unwrap();
    assert!(target.exists() && !path.exists());
}

#[tokio::test]
async fn a_folder_that_a_link_has_taken_the_place_of_is_still_the_one_that_is_read_and_emptied() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join(FILE_NAME);
    fs::write(&target, "\"of somebody else\"").unwrap();
    let (path, folder) = folder(None);
    let moved = path.with_extension("moved");
    fs::write(folder.file(), "7").unwrap();
    fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
    assert_eq!(folder.close(true).await, Ok(Some(7.into())));
    assert!(target.exists());
    fs::remove_file(&path).unwrap();
    // Removable only if it is empty.
    fs::remove_dir(&moved).unwrap();
}

#[tokio::test]
async fn a_file_of_another_user_is_no_result() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("nothing is tested: only root can run a task as another user");
        return;
    }
    let other = TaskUser { uid: 65534, gid: 65534, account: None };
    let (_, refused) = folder(Some(&other));
    fs::write(refused.file(), "7").unwrap();
    let Err(Outcome::Permanent { class, message }) = refused.close(true).await else {
        panic!("it was read");
    };
    let problem = "the result is a file of another user";
    assert_eq!((class.as_str(), message.as_str()), ("result_invalid", problem));
    let (_, read) = folder(Some(&other));
    fs::write(read.file(), "7").unwrap();
    std::os::unix::fs::chown(read.file(), Some(65534), None).unwrap();
    assert_eq!(read.close(true).await, Ok(Some(7.into())));
}
