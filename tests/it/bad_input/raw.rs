//! A publisher that writes its frames itself: client libraries refuse to write what it sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use lapin::uri::AMQPUri;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const END: u8 = 0xce;

/// Publishes to `queue` with these property flags and these properties unchanged, and waits until
/// the broker has the message. Blocks.
pub(crate) fn publish(url: &str, queue: &str, flags: u16, properties: &[u8], body: &[u8]) {
    let mut wire = Wire::open(&url.parse().unwrap());
    wire.call(1, 20, 10, b"\0");
    wire.call(1, 85, 10, b"\0");
    let publish = [b"\0\0".as_slice(), &short(""), &short(queue), b"\0"].concat();
    wire.method(1, 60, 40, &publish);
    let size = (body.len() as u64).to_be_bytes();
    let header = [b"\0\x3c\0\0", &size[..], &flags.to_be_bytes(), properties].concat();
    wire.frame(HEADER, 1, &header);
    wire.frame(BODY, 1, body);
    // A broker that objects closes the channel instead.
    assert_eq!(wire.answer()[..4], [0, 60, 0, 80], "not confirmed");
}

struct Wire(TcpStream);

impl Wire {
    fn open(uri: &AMQPUri) -> Self {
        let stream = TcpStream::connect((uri.authority.host.as_str(), uri.authority.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut wire = Self(stream);
        wire.0.write_all(b"AMQP\0\0\x09\x01").unwrap();
        wire.answer();
        let user = &uri.authority.userinfo;
        let secret = format!("\0{}\0{}", user.username, user.password);
        let response = [&(secret.len() as u32).to_be_bytes()[..], secret.as_bytes()].concat();
        let start_ok =
            [b"\0\0\0\0".as_slice(), &short("PLAIN"), &response, &short("en_US")].concat();
        wire.method(0, 10, 11, &start_ok);
        // As the broker proposes, but without heartbeats, which nothing here would send.
        let tune = wire.answer();
        wire.method(0, 10, 31, &[&tune[4..10], b"\0\0"].concat());
        wire.call(0, 10, 40, &[short(&uri.vhost), short(""), vec![0]].concat());
        wire
    }

    /// Calls a method and expects its answer.
    fn call(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        self.method(channel, class, method, arguments);
        let answer = self.answer();
        let expected = [class.to_be_bytes(), (method + 1).to_be_bytes()].concat();
        assert_eq!(answer[..4], expected, "{answer:?}");
    }

    fn method(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        let payload = [&class.to_be_bytes()[..], &method.to_be_bytes(), arguments].concat();
        self.frame(METHOD, channel, &payload);
    }

    fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let size = (payload.len() as u32).to_be_bytes();
        let frame = [&[kind], &channel.to_be_bytes()[..], &size, payload, &[END]].concat();
        self.0.write_all(&frame).unwrap();
    }

    /// The payload of the next frame.
    fn answer(&mut self) -> Vec<u8> {
        let mut head = [0; 7];
        self.0.read_exact(&mut head).unwrap();
        let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
        let mut payload = vec![0; size as usize + 1];
        self.0.read_exact(&mut payload).unwrap();
        assert_eq!(payload.pop(), Some(END));
        payload
    }
}

fn short(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}
