//! Offers pings at a rate that no answer slows down.
//!
//! Each ping has an instant at which it is to be sent, and its latency counts from there: if an answer is late, the ping that had to
//! wait for its connection is late as well, and the wait is counted. A connection carries one request at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// Between the last connection and the first ping.
const NOTICE: Duration = Duration::from_millis(200);
/// How long the last answers may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Bytes of an answer; a longer one ends the measurement.
const MAX_ANSWER_BYTES: usize = 4_096;
/// How most answers begin and end, so that they need no reading.
const RECORDED: (&[u8], &[u8]) = (b"HTTP/1.1 200 ", b"\r\n\r\nOK");

/// What is offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) per_second: u32,
    pub(super) time: Duration,
    pub(super) connections: usize,
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// From the instant at which each ping was to be sent to its answer, in milliseconds; only of answers with 200.
    pub(super) recorded: Vec<f64>,
    /// How many had another status.
    pub(super) others: BTreeMap<u16, u64>,
    /// From the first ping to the last answer.
    pub(super) took: Duration,
}

/// Offers pings of these checks in turn.
pub(super) async fn offer(address: &str, checks: &[String], load: Load) -> Result<Answers> {
    let request = |check: &String| {
        let head =
            format!("GET /ping/{check} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: curl/8\r\n\r\n");
        head.into_bytes()
    };
    let requests: Arc<[Vec<u8>]> = checks.iter().map(request).collect();
    let mut streams = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let begin = Instant::now() + NOTICE;
    let mut senders: JoinSet<Result<Answers>> = streams
        .into_iter()
        .enumerate()
        .map(|(number, stream)| send(stream, number, Arc::clone(&requests), begin, load))
        .collect();
    let mut all = Answers::default();
    let gather = async {
        while let Some(answers) = senders.join_next().await {
            let answers = answers??;
            all.recorded.extend(answers.recorded);
            for (status, count) in answers.others {
                *all.others.entry(status).or_default() += count;
            }
        }
        anyhow::Ok(())
    };
    timeout(load.time + PATIENCE, gather).await.context("some pings were not answered")??;
    all.took = begin.elapsed();
    Ok(all)
}

/// Sends every ping of one connection when it is due, or as soon as the answer before has come.
async fn send(
    mut stream: TcpStream,
    first: usize,
    requests: Arc<[Vec<u8>]>,
    begin: Instant,
    load: Load,
) -> Result<Answers> {
    let count = (f64::from(load.per_second) * load.time.as_secs_f64()) as usize;
    let mut answers = Answers::default();
    let mut buffer = vec![0; MAX_ANSWER_BYTES];
    for number in (first..count).step_by(load.connections) {
        let due = begin + Duration::from_secs_f64(number as f64 / f64::from(load.per_second));
        sleep_until(due).await;
        stream.write_all(&requests[number % requests.len()]).await?;
        match status(&mut stream, &mut buffer).await? {
            200 => answers.recorded.push(due.elapsed().as_secs_f64() * 1000.0),
            other => *answers.others.entry(other).or_default() += 1,
        }
    }
    Ok(answers)
}

/// Reads one answer, and returns its status.
async fn status(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<u16> {
    let mut length = 0;
    loop {
        ensure!(length < buffer.len(), "an answer is too long");
        match stream.read(&mut buffer[length..]).await? {
            0 => bail!("the server closed a connection before it answered"),
            read => length += read,
        }
        let answer = &buffer[..length];
        if answer.starts_with(RECORDED.0) && answer.ends_with(RECORDED.1) {
            return Ok(200);
        }
        if let Some(status) = whole(&String::from_utf8_lossy(answer)) {
            return Ok(status);
        }
    }
}

/// The status of an answer that is whole.
fn whole(answer: &str) -> Option<u16> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let (_, length) = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    if body.len() < length.parse::<usize>().ok()? {
        return None;
    }
    head.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let answer =
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nContent-Length: 4\r\n\r\nlate";
        assert_eq!(whole(answer), Some(429));
        assert_eq!(whole(&answer[..answer.len() - 1]), None);
        assert_eq!(whole(&answer[..40]), None);
    }
}
