//! Splits the broker's bytes into frames, from pieces of any size.

use super::flaw::{FIXED_BYTES, PropertiesFlaw, UNREADABLE_HEADER, check};
use super::methods;

/// The largest content header that passes, however large the agreed frames.
pub const MAX_PROPERTIES_BYTES: usize = 128 * 1024 - FRAME_BYTES;

/// Type, channel and size before the payload, and the end mark after it.
const FRAME_BYTES: usize = HEAD_BYTES + 1;
const HEAD_BYTES: usize = 7;
const END: u8 = 0xce;

const METHOD: u8 = 1;
const CONTENT_HEADER: u8 = 2;
const CLASS_BASIC: [u8; 2] = [0, 60];

/// The property flag for headers.
const HEADERS: u16 = 1 << 13;

/// The filter's position within the frames of one connection.
#[derive(Debug)]
pub struct FrameFilter {
    /// The largest payload of a content header that passes.
    limit: usize,
    /// The bytes of the current frame that are held back until it can be judged, including its head.
    held: Vec<u8>,
    /// Number of missing bytes of the current frame, including its end mark; 0 between frames and within a head.
    left: usize,
    action: FrameAction,
}

/// The treatment of the missing bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameAction {
    /// They pass.
    Pass,
    /// They are held back until the frame is complete.
    Judge,
    /// They are dropped, because the frame was replaced.
    Drop,
}

impl FrameFilter {
    /// Starts a connection whose client requests frames of at most `frame_max` bytes; 0: of any size.
    pub fn new(frame_max: u32) -> Self {
        let mut filter = Self {
            limit: MAX_PROPERTIES_BYTES,
            held: Vec::new(),
            left: 0,
            action: FrameAction::Pass,
        };
        filter.negotiate_frame_max(frame_max);
        filter
    }

    /// Negotiates like the client library: the lower of both sides' limits, 0 being none. The broker sends a content
    /// header in one frame, whatever the limit; to the library a larger one is a protocol error that ends the
    /// connection.
    fn negotiate_frame_max(&mut self, frame_max: u32) {
        if frame_max != 0 {
            self.limit = self.limit.min((frame_max as usize).saturating_sub(FRAME_BYTES));
        }
    }

    /// Takes received bytes, and adds those that pass to `out`.
    pub fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.left == 0 {
                let wanted = HEAD_BYTES - self.held.len();
                let (head, remaining) = bytes.split_at(bytes.len().min(wanted));
                self.held.extend_from_slice(head);
                bytes = remaining;
                if head.len() == wanted {
                    self.begin(out);
                }
                continue;
            }
            let (part, remaining) = bytes.split_at(bytes.len().min(self.left));
            bytes = remaining;
            self.left -= part.len();
            match self.action {
                FrameAction::Pass => out.extend_from_slice(part),
                FrameAction::Drop => self.keep_fixed_part(part),
                FrameAction::Judge => self.held.extend_from_slice(part),
            }
            if self.left == 0 {
                self.end(out);
            }
        }
    }

    /// Handles a complete frame head.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let [kind, _, _, ref size @ ..] = self.held[..] else { return };
        let size = size.iter().fold(0_usize, |size, byte| size << 8 | usize::from(*byte));
        self.left = size + 1;
        self.action = match kind {
            CONTENT_HEADER if size > self.limit => FrameAction::Drop,
            CONTENT_HEADER => FrameAction::Judge,
            METHOD if size <= methods::MAX_BYTES => FrameAction::Judge,
            _ => FrameAction::Pass,
        };
        if self.action == FrameAction::Pass {
            out.append(&mut self.held);
        }
    }

    /// Keeps the part of a dropped frame that its replacement needs.
    fn keep_fixed_part(&mut self, part: &[u8]) {
        let wanted = (HEAD_BYTES + FIXED_BYTES).saturating_sub(self.held.len());
        self.held.extend_from_slice(&part[..part.len().min(wanted)]);
    }

    /// Handles a frame's end.
    fn end(&mut self, out: &mut Vec<u8>) {
        match (self.action, self.held.first()) {
            (FrameAction::Drop, _) => self.replace(PropertiesFlaw::TooLarge),
            (FrameAction::Judge, Some(&METHOD)) => {
                let method = &mut self.held[HEAD_BYTES..];
                methods::replace_invalid_texts(method);
                if let Some(frame_max) = methods::proposed_frame_max(method) {
                    self.negotiate_frame_max(frame_max);
                }
            }
            (FrameAction::Judge, _) => self.judge(),
            (FrameAction::Pass, _) => {}
        }
        out.append(&mut self.held);
        self.action = FrameAction::Pass;
    }

    fn judge(&mut self) {
        let payload = &self.held[HEAD_BYTES..self.held.len() - 1];
        // Only messages have properties of publishers; and a payload without a size has no body.
        if payload.len() >= FIXED_BYTES
            && payload.starts_with(&CLASS_BASIC)
            && let Err(flaw) = check(payload)
        {
            self.replace(flaw);
        }
    }

    /// Replaces the held properties by ones that only contain `flaw`.
    fn replace(&mut self, flaw: PropertiesFlaw) {
        let text = flaw.as_str().as_bytes();
        let mut table = vec![UNREADABLE_HEADER.len() as u8];
        table.extend_from_slice(UNREADABLE_HEADER.as_bytes());
        table.push(b'S');
        table.extend_from_slice(&(text.len() as u32).to_be_bytes());
        table.extend_from_slice(text);

        self.held.truncate(HEAD_BYTES + FIXED_BYTES);
        self.held.extend_from_slice(&HEADERS.to_be_bytes());
        self.held.extend_from_slice(&(table.len() as u32).to_be_bytes());
        self.held.extend_from_slice(&table);
        let size = (self.held.len() - HEAD_BYTES) as u32;
        self.held[3..HEAD_BYTES].copy_from_slice(&size.to_be_bytes());
        self.held.push(END);
    }
}

#[cfg(test)]
mod tests {
    use lapin::types::{AMQPValue, FieldTable};

    use super::*;

    /// Returns a content header frame on channel 5 of a message whose body has nine bytes.
    fn frame(flags: u16, properties: &[u8]) -> Vec<u8> {
        let mut payload = vec![0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        payload.extend_from_slice(&flags.to_be_bytes());
        payload.extend_from_slice(properties);
        let mut frame = vec![CONTENT_HEADER, 0, 5];
        frame.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        frame.extend_from_slice(&payload);
        frame.push(END);
        frame
    }

    fn screened(bytes: &[u8], piece: usize) -> Vec<u8> {
        let (mut filter, mut out) = (FrameFilter::new(0), Vec::new());
        bytes.chunks(piece).for_each(|piece| filter.take(piece, &mut out));
        out
    }

    /// Returns a header `a` of `depth` nested arrays.
    fn nested(depth: u32) -> Vec<u8> {
        let mut value = Vec::new();
        for level in 0..depth {
            value.push(b'A');
            value.extend_from_slice(&((depth - level - 1) * 5).to_be_bytes());
        }
        let mut table = (value.len() as u32 + 2).to_be_bytes().to_vec();
        table.extend_from_slice(&[1, b'a']);
        table.extend_from_slice(&value);
        table
    }

    #[test]
    fn what_can_be_read_passes_byte_for_byte_in_whatever_pieces() {
        let body = [3, 0, 5, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, END];
        let bytes = [&frame(HEADERS, &nested(32))[..], &body, &frame(1 << 7, b"\x02id")].concat();
        for piece in 1..=bytes.len() {
            assert_eq!(screened(&bytes, piece), bytes, "in pieces of {piece}");
        }
    }

    #[test]
    fn flawed_properties_give_way_to_the_flaw_and_the_body_stays() {
        let body = [3, 0, 5, 0, 0, 0, 1, 0xff, END];
        let large = vec![b'x'; MAX_PROPERTIES_BYTES];
        for (flags, properties, flaw) in [
            (HEADERS, &nested(33)[..], PropertiesFlaw::TooDeep),
            (HEADERS, &nested(26_000), PropertiesFlaw::TooDeep),
            (1 << 7, b"\x02i\xff", PropertiesFlaw::NotUtf8),
            (1 << 7, b"\x09id", PropertiesFlaw::Malformed),
            (HEADERS, b"\0\0\0\x03\x01a?", PropertiesFlaw::Malformed),
            (0, b"left over", PropertiesFlaw::Malformed),
            (0, &large, PropertiesFlaw::TooLarge),
        ] {
            let bytes = [&frame(flags, properties)[..], &body].concat();
            let out = screened(&bytes, 1_000);
            let (head, remaining) = out.split_at(HEAD_BYTES + FIXED_BYTES);
            assert_eq!(head[..3], [CONTENT_HEADER, 0, 5]);
            assert_eq!(head[7..], [0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], "the size of the body");
            assert!(remaining.ends_with(&body));
            let passed = String::from_utf8_lossy(remaining);
            assert!(passed.contains(flaw.as_str()), "{passed}");
            assert_eq!(screened(&out, 7), out, "what took its place is flawed itself");
        }
    }

    /// Returns the frame by which a broker proposes frames of at most `frame_max` bytes.
    fn tune(frame_max: u32) -> Vec<u8> {
        let size = frame_max.to_be_bytes();
        [&[METHOD, 0, 0, 0, 0, 0, 12, 0, 10, 0, 30, 7, 255], &size[..], &[0, 60, END]].concat()
    }

    #[test]
    fn a_header_passes_up_to_the_lower_of_what_both_sides_ask_for() {
        let largest = MAX_PROPERTIES_BYTES + FRAME_BYTES;
        for (requested, proposed_frame_max, agreed) in [
            (16_384, 131_072, 16_384),
            (131_072, 16_384, 16_384),
            (0, 16_384, 16_384),
            (16_384, 0, 16_384),
            (0, 0, largest),
            (u32::MAX, u32::MAX, largest),
        ] {
            for (bytes, passes) in [(agreed, true), (agreed + 1, false)] {
                // Around the text: frame, fixed part, flags, sizes, name and type.
                let text = vec![b'x'; bytes - FRAME_BYTES - FIXED_BYTES - 2 - 4 - 3 - 4];
                let entry = [&b"\x01aS"[..], &(text.len() as u32).to_be_bytes(), &text].concat();
                let table = [&(entry.len() as u32).to_be_bytes()[..], &entry].concat();
                let (tune, header) = (tune(proposed_frame_max), frame(HEADERS, &table));
                assert_eq!(header.len(), bytes);
                let (mut filter, mut out) = (FrameFilter::new(requested), Vec::new());
                filter.take(&[&tune[..], &header].concat(), &mut out);
                assert_eq!(&out[..tune.len()], tune);
                let passed = &out[tune.len()..];
                assert_eq!(passed == header, passes, "{requested}, {proposed_frame_max}: {bytes}");
                assert!(
                    passes
                        || String::from_utf8_lossy(passed)
                            .contains(PropertiesFlaw::TooLarge.as_str())
                );
            }
        }
    }

    #[test]
    fn a_flaw_that_a_publisher_names_is_one_of_ours() {
        assert_eq!(
            PropertiesFlaw::named(PropertiesFlaw::TooDeep.as_str()),
            PropertiesFlaw::TooDeep
        );
        assert_eq!(PropertiesFlaw::named("\u{1b}[2J"), PropertiesFlaw::Malformed);
        let mut table = FieldTable::default();
        table.insert(UNREADABLE_HEADER.into(), AMQPValue::LongString("x".into()));
        assert_eq!(table.inner().len(), 1);
    }
}
