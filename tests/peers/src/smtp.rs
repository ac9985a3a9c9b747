//! A small SMTP server, which replies as a test wants it to.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::{Stream, in_time, tls};

/// What the server does otherwise than it should; `verb` is the command that it does so at, empty for
/// its greeting, and a full stop for the end of the mail.
#[derive(Debug, Clone, Copy, Default)]
pub struct Script {
    verb: Option<&'static str>,
    act: Act,
    encryption: Encryption,
    deaf_to_quit: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Act {
    Reply(&'static str),
    Endless,
    #[default]
    Hang,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Encryption {
    #[default]
    None,
    FromTheBeginning,
    Offered,
}

impl Script {
    /// Replies this to `verb`.
    pub fn replying(verb: &'static str, reply: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Reply(reply), ..Self::default() }
    }

    /// Is silent from `verb` on.
    pub fn hanging(verb: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Hang, ..Self::default() }
    }

    /// Replies to `verb` with a line that has no end.
    pub fn endless(verb: &'static str) -> Self {
        Self { verb: Some(verb), act: Act::Endless, ..Self::default() }
    }

    /// The same, and no reply to a QUIT.
    #[must_use]
    pub fn deaf_to_quit(self) -> Self {
        Self { deaf_to_quit: true, ..self }
    }

    /// The same over TLS.
    #[must_use]
    pub fn encrypted(self) -> Self {
        Self { encryption: Encryption::FromTheBeginning, ..self }
    }

    /// The same with an offer of STARTTLS; it takes neither a password nor a mail before.
    #[must_use]
    pub fn upgraded(self) -> Self {
        Self { encryption: Encryption::Offered, ..self }
    }
}

/// A server on a port of this host; it ends with this value.
#[derive(Debug)]
pub struct Server {
    /// Where it listens, at 127.0.0.1.
    pub port: u16,
    lines: mpsc::UnboundedReceiver<String>,
    listening: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Said by the server itself when the other side has closed the connection.
const GONE: &str = "(gone)";

/// Said by the server itself when the connection is encrypted from here on.
pub const ENCRYPTED: &str = "(encrypted)";

impl Server {
    /// Serves this script to everybody.
    pub async fn start(script: Script) -> Self {
        Self::start_in_turn(vec![script]).await
    }

    /// Serves the scripts in turn, one for each connection, and the last of them from then on.
    pub async fn start_in_turn(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, lines) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let script = scripts[number.min(scripts.len() - 1)];
                tokio::spawn(serve(stream, script, sender.clone()));
            }
        });
        Self { port, lines, listening: listening.abort_handle() }
    }

    /// All lines of one connection, to its end.
    ///
    /// # Panics
    ///
    /// As [`in_time`].
    pub async fn conversation(&mut self) -> String {
        let mut conversation = String::new();
        loop {
            let line = in_time(self.lines.recv()).await.unwrap();
            if line == GONE {
                return conversation;
            }
            conversation.push_str(&line);
            conversation.push('\n');
        }
    }

    /// Waits for the end of a connection, as [`conversation`](Self::conversation).
    pub async fn gone(&mut self) {
        self.conversation().await;
    }

    /// Waits for a line that begins with `verb`.
    ///
    /// # Panics
    ///
    /// As [`in_time`].
    pub async fn hears(&mut self, verb: &str) {
        while !in_time(self.lines.recv()).await.unwrap().starts_with(verb) {}
    }

    /// Whether nothing more was heard so far.
    pub fn received_nothing_more(&mut self) -> bool {
        self.lines.try_recv().is_err()
    }
}

async fn serve(stream: TcpStream, script: Script, lines: mpsc::UnboundedSender<String>) {
    // The other side may go at any time, and the test may have ended.
    let _ = converse(stream, script, &lines).await;
    let _ = lines.send(GONE.to_owned());
}

async fn converse(
    stream: TcpStream,
    script: Script,
    lines: &mpsc::UnboundedSender<String>,
) -> io::Result<()> {
    let mut encrypted = script.encryption == Encryption::FromTheBeginning;
    let mut stream: BufReader<Box<dyn Stream>> = BufReader::new(Box::new(stream));
    if encrypted {
        stream = over_tls(stream, lines).await?;
    }
    reply(&mut stream, script, "", "220 here").await?;
    let mut in_mail = false;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let text = line.trim_end_matches(['\r', '\n']);
        let _ = lines.send(text.to_owned());
        if in_mail {
            if text == "." {
                in_mail = false;
                reply(&mut stream, script, ".", "250 queued as 77").await?;
            }
            continue;
        }
        let verb = text.split([' ', ':']).next().unwrap_or_default().to_owned();
        let offers = script.encryption == Encryption::Offered && !encrypted;
        let usual = match verb.as_str() {
            "EHLO" if offers => "250-here\r\n250-8BITMIME\r\n250 STARTTLS",
            "EHLO" => "250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
            "STARTTLS" if offers => "220 go on",
            "AUTH" | "MAIL" if offers => "530 not without encryption",
            "AUTH" => "235 welcome",
            "MAIL" | "RCPT" => "250 fine",
            "DATA" => "354 go on",
            "QUIT" => "221 bye",
            _ => "500 what?",
        };
        let as_usual = reply(&mut stream, script, &verb, usual).await?;
        in_mail = as_usual && verb == "DATA";
        if as_usual && offers && verb == "STARTTLS" {
            stream = over_tls(stream, lines).await?;
            encrypted = true;
        }
        if verb == "QUIT" {
            return Ok(());
        }
    }
}

async fn over_tls(
    stream: BufReader<Box<dyn Stream>>,
    lines: &mpsc::UnboundedSender<String>,
) -> io::Result<BufReader<Box<dyn Stream>>> {
    let stream = tls::acceptor(&[]).accept(stream.into_inner()).await?;
    let _ = lines.send(ENCRYPTED.to_owned());
    Ok(BufReader::new(Box::new(stream)))
}

/// Replies as usual or as the script has it; whether it was as usual.
async fn reply(
    stream: &mut BufReader<Box<dyn Stream>>,
    script: Script,
    verb: &str,
    usual: &str,
) -> io::Result<bool> {
    if verb == "QUIT" && script.deaf_to_quit {
        return hang(stream).await;
    }
    let text = match script.act {
        _ if script.verb != Some(verb) => usual,
        Act::Reply(text) => text,
        Act::Endless => loop {
            stream.write_all(&[b'x'; 4096]).await?;
        },
        Act::Hang => return hang(stream).await,
    };
    stream.write_all(format!("{text}\r\n").as_bytes()).await?;
    stream.flush().await?;
    Ok(script.verb != Some(verb))
}

/// Says nothing until the other side goes.
async fn hang(stream: &mut BufReader<Box<dyn Stream>>) -> io::Result<bool> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    Ok(false)
}
