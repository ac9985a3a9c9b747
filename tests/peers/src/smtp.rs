//! A small SMTP server over real sockets, which replies as a test wants it to.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::in_time;

/// What the server does otherwise than it should; `verb` is the command that it does so at, empty for
/// its greeting, and a full stop for the end of the mail.
#[derive(Clone, Default)]
pub(super) struct Script {
    verb: Option<&'static str>,
    act: Act,
}

#[derive(Clone, Default)]
enum Act {
    Reply(&'static str),
    Endless,
    #[default]
    Hang,
}

impl Script {
    pub(super) fn replying(verb: &'static str, reply: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Reply(reply) }
    }

    pub(super) fn hanging(verb: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Hang }
    }

    pub(super) fn endless(verb: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Endless }
    }
}

pub(super) struct Server {
    pub(super) port: u16,
    heard: mpsc::UnboundedReceiver<String>,
    listening: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Said by the server itself when the other side has closed the connection.
const GONE: &str = "(gone)";

impl Server {
    pub(super) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, heard) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script.clone(), sender.clone()));
            }
        });
        Self { port, heard, listening: listening.abort_handle() }
    }

    /// All lines of one connection.
    pub(super) async fn conversation(&mut self) -> String {
        let mut said = String::new();
        loop {
            let line = in_time(self.heard.recv()).await.unwrap();
            if line == GONE {
                return said;
            }
            said.push_str(&line);
            said.push('\n');
        }
    }

    pub(super) async fn gone(&mut self) {
        self.conversation().await;
    }

    pub(super) async fn hears(&mut self, verb: &str) {
        while !in_time(self.heard.recv()).await.unwrap().starts_with(verb) {}
    }

    pub(super) fn saw_nothing(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }
}

async fn serve(stream: TcpStream, script: Script, heard: mpsc::UnboundedSender<String>) {
    let mut stream = BufReader::new(stream);
    // The other side may go at any time, and the test may have ended.
    let _ = converse(&mut stream, &script, &heard).await;
    let _ = heard.send(GONE.to_owned());
}

async fn converse(
    stream: &mut BufReader<TcpStream>,
    script: &Script,
    heard: &mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    reply(stream, script, "", "220 here").await?;
    let mut in_mail = false;
    let mut line = String::new();
    while stream
        .read_line({
            line.clear();
            &mut line
        })
        .await?
        > 0
    {
        let text = line.trim_end_matches(['\r', '\n']);
        let _ = heard.send(text.to_owned());
        if in_mail {
            if text == "." {
                in_mail = false;
                reply(stream, script, ".", "250 queued as 77").await?;
            }
            continue;
        }
        let verb = text.split([' ', ':']).next().unwrap_or_default().to_owned();
        let usual = match verb.as_str() {
            "EHLO" => "250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
            "MAIL" | "RCPT" => "250 fine",
            "DATA" => "354 go on",
            "QUIT" => "221 bye",
            _ => "500 what?",
        };
        in_mail = reply(stream, script, &verb, usual).await? && verb == "DATA";
        if verb == "QUIT" {
            break;
        }
    }
    Ok(())
}

/// Replies as usual or as the script has it; whether it was as usual.
async fn reply(
    stream: &mut BufReader<TcpStream>,
    script: &Script,
    verb: &str,
    usual: &str,
) -> std::io::Result<bool> {
    if script.verb != Some(verb) {
        stream.write_all(format!("{usual}\r\n").as_bytes()).await?;
        return Ok(true);
    }
    match script.act {
        Act::Reply(text) => stream.write_all(format!("{text}\r\n").as_bytes()).await?,
        Act::Endless => loop {
            stream.write_all(&[b'x'; 4096]).await?;
        },
        Act::Hang => {
            let mut byte = [0];
            while stream.read(&mut byte).await? > 0 {}
        }
    }
    Ok(false)
}
