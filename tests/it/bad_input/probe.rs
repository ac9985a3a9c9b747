//! What a running program reveals: readiness, log, memory, processor time.

use std::time::Duration;

use serde_json::Value;
use sexton_tests::platform::{Platform, Program};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Ticks of `/proc/<pid>/stat` in a second, on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// The body of `/readyz`; `None` while the program does not answer.
pub(crate) async fn readiness(program: &Program) -> Option<Value> {
    let log = program.log();
    let (_, after) = log.split_once("health is answered on http://")?;
    let address = &after[..after.find(|c: char| c == '/' || c.is_whitespace())?];
    let asking = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request =
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let report: Value = serde_json::from_str(body).ok()?;
        assert_eq!(report["ready"] == true, head.starts_with("HTTP/1.1 200 "), "{answer}");
        Some(report)
    };
    timeout(Duration::from_secs(5), asking).await.ok()?
}

/// The first answer of `/readyz`.
pub(crate) async fn first_readiness(program: &Program) -> Value {
    let asking = async {
        loop {
            match readiness(program).await {
                Some(report) => return report,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    timeout(super::DEADLINE, asking).await.unwrap()
}

/// Waits until `/readyz` fails because of this condition, for a reason that contains these words.
/// Returns the whole answer.
pub(crate) async fn not_ready(
    platform: &Platform,
    program: &Program,
    condition: &str,
    words: &[&str],
) -> String {
    let what = format!("{} is not ready: {condition}, {words:?}", program.name());
    let check = async || {
        assert!(program.ended().is_none(), "{} has ended\n{}", program.name(), program.log());
        let report = readiness(program).await?;
        let conditions = report["conditions"].as_array()?;
        let bad = conditions.iter().find(|it| it["name"] == condition && it["ready"] == false)?;
        assert_eq!(report["ready"], false);
        let reason = bad["reason"].as_str()?;
        words.iter().all(|word| reason.contains(word)).then(|| report.to_string())
    };
    platform.eventually(&what, super::DEADLINE, check).await
}

/// The number of lines in a program's log.
pub(crate) fn lines(program: &Program) -> usize {
    program.log().lines().count()
}

/// The number of lines in a program's log that contain `text`.
pub(crate) fn lines_with(program: &Program, text: &str) -> usize {
    program.log().lines().filter(|line| line.contains(text)).count()
}

/// Fails if the program has ended or has ever panicked.
pub(crate) fn assert_sound(program: &Program) {
    let log = program.log();
    assert!(!log.contains("panicked"), "{} panicked\n{log}", program.name());
    assert!(program.ended().is_none(), "{} has ended\n{log}", program.name());
}

/// Resident memory now, in bytes.
pub(crate) fn resident(program: &Program) -> u64 {
    status(program, "VmRSS:")
}

/// The peak of resident memory, in bytes.
pub(crate) fn peak(program: &Program) -> u64 {
    status(program, "VmHWM:")
}

fn status(program: &Program, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The processor time of the program, without its tasks.
pub(crate) fn processor_time(program: &Program) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", program.pid())).unwrap();
    // The second field is the program's name in parentheses, which may contain spaces.
    let (_, fields) = text.rsplit_once(") ").unwrap();
    let numbers: Vec<u64> =
        fields.split(' ').skip(11).take(2).map(|field| field.parse().unwrap()).collect();
    Duration::from_millis((numbers[0] + numbers[1]) * 1000 / TICKS_PER_SECOND)
}
