//! A crontab becomes a platform: the two files of an import, run by the real programs.

use sexton_tests::platform::Platform;

use super::FINAL_TIMEOUT;

/// An entry that writes its environment down, and one that fails.
fn crontab(out: &str) -> String {
    format!(
        "GREETING=\"good day\"\n\
         DATABASE_URL=postgres://shop\n\
         0 3 * * * root echo \"$0|$SHELL|$PATH|$GREETING|$DATABASE_URL\" > {out}/env; cat > {out}/stdin; \
         date +\\%Y > {out}/year%Hello%there\n\
         0 4 * * * root cat > {out}/nothing; exit 3\n"
    )
}

async fn ended(platform: &Platform, job: &str) -> (String, i64) {
    let answer = platform.sexton_json(&["jobs", "trigger", job]).await;
    let id = answer["id"].as_str().unwrap().to_owned();
    platform
        .eventually(&format!("{job} has ended"), FINAL_TIMEOUT, async || {
            let row = platform.sexton_json(&["executions", "show", &id]).await;
            let state = row["state"].as_str().unwrap().to_owned();
            let attempts = row["attempts"].as_array().unwrap().len() as i64;
            matches!(state.as_str(), "succeeded" | "failed").then_some((state, attempts))
        })
        .await
}

#[tokio::test]
async fn an_imported_crontab_and_its_catalogue_start_a_platform_that_runs_commands_as_cron_does() {
    let mut platform = Platform::new().await.unwrap();
    let folder = platform.folder();
    std::fs::create_dir(folder.join("cron.d")).unwrap();
    let file = folder.join("cron.d/probe");
    std::fs::write(&file, crontab(folder.to_str().unwrap())).unwrap();
    let tasks = folder.join("tasks.toml");
    let [file, tasks] = [&file, &tasks].map(|path| path.to_str().unwrap());
    let imported = platform.sexton(&["jobs", "import", "crontab", file, "--tasks", tasks]).await;
    assert!(imported.status.success(), "{imported}");
    platform.apply(&imported.stdout).await.unwrap();
    let mut catalogue = std::fs::read_to_string(tasks).unwrap();
    if !rustix::process::geteuid().is_root() {
        // Only root can run a task as another user.
        catalogue = catalogue.replace("user = \"root\"\n", "");
    }
    platform.catalogue(&catalogue);
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    assert_eq!(ended(&platform, "probe.cat").await, ("succeeded".to_owned(), 1));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("env"), "/bin/sh|/bin/sh|/usr/bin:/bin|good day|postgres://shop\n");
    assert_eq!(read("stdin"), "Hello\nthere\n");
    assert_eq!(read("year").trim().len(), 4);
    // Cron retries nothing, and gives a command no input.
    assert_eq!(ended(&platform, "probe.cat-0-4").await, ("failed".to_owned(), 1));
    assert_eq!(read("nothing"), "");
}
