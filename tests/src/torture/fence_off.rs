//! A build without a fence, in which torture must find a violation.
//!
//! The source is copied, the fence is removed in the copy, and the programs are built there:
//! nothing in the real source knows of this. One copy and one target folder serve all fences, so
//! that only differences are compiled again. Changed queries are checked against a live database.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use sexton_servers::{Durability, PostgresOptions, PostgresServer};
use sexton_store::{Store, StoreOptions};
use tokio::process::Command;

use super::fences::Fence;

/// Builds the programs without `fence` below `target`, a target folder; returns their folder.
///
/// # Errors
///
/// The source does not contain the fence's text, or the programs cannot be built without it.
pub async fn build(fence: &Fence, target: &Path) -> Result<PathBuf> {
    let (tree, built) = (target.join("fence-off/source"), target.join("fence-off/target"));
    copy(fence, &tree).await?;
    let options = PostgresOptions { durability: Durability::Fast, ..Default::default() };
    let server = PostgresServer::start_private(options).await?;
    let store = Store::open(&StoreOptions::new(server.url(), "sexton torture"))?;
    // With the real migrations, against which the statements are checked.
    store.migrate().await?;
    store.close().await;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let building = Command::new(cargo)
        .args(["build", "-q", "-p", "sexton-scheduler", "-p", "sexton-worker"])
        .args(["-p", "sexton-console", "--features", "sexton-service/fault-points"])
        .current_dir(&tree)
        .env("CARGO_TARGET_DIR", &built)
        .env("SQLX_OFFLINE", "false")
        .env("DATABASE_URL", server.url())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("run cargo")?;
    server.end().await?;
    ensure!(
        building.status.success(),
        "the programs cannot be built without the fence {}: {}",
        fence.name,
        String::from_utf8_lossy(&building.stderr)
    );
    Ok(built.join("debug"))
}

/// Makes `tree` a copy of the source without the fence. Unchanged files stay untouched, so that
/// they are not compiled again.
async fn copy(fence: &Fence, tree: &Path) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    for file in files(&root).await? {
        let (from, to) = (root.join(&file), tree.join(&file));
        let Ok(content) = std::fs::read(&from) else { continue };
        let content = match String::from_utf8(content) {
            Ok(text) => fence.taken_down(&file, &text)?.into_bytes(),
            Err(not_text) => not_text.into_bytes(),
        };
        if std::fs::read(&to).is_ok_and(|there| there == content) {
            continue;
        }
        let folder = to.parent().context("a file without a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        std::fs::write(&to, content).with_context(|| format!("write {}", to.display()))?;
    }
    Ok(())
}

/// The files of the source according to git; new files as well.
async fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let Output { status, stdout, stderr } = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .await
        .context("run git")?;
    let stderr_text = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "the files of the source cannot be listed: {stderr_text}");
    let names = String::from_utf8(stdout).context("a file's name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(PathBuf::from).collect())
}
