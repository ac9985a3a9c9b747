//! Checks whether the client library can parse a content header from the broker.

/// Header: why the filter removed the message's properties.
pub const UNREADABLE_HEADER: &str = "sexton-unreadable";

/// Deepest nesting that passes; the broker's own `x-death` needs three.
const MAX_DEPTH: usize = 32;

/// Class, weight and size of the body, before the properties.
pub(super) const FIXED_BYTES: usize = 12;

/// A flaw of properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertiesFlaw {
    /// Nested too deeply.
    TooDeep,
    /// A text that must be UTF-8 is not.
    NotUtf8,
    /// Larger than [`super::MAX_PROPERTIES_BYTES`].
    TooLarge,
    /// Malformed: truncated, an unknown type, or with surplus bytes.
    Malformed,
}

impl PropertiesFlaw {
    pub(crate) const ALL: [Self; 4] =
        [Self::TooDeep, Self::NotUtf8, Self::TooLarge, Self::Malformed];

    /// Returns a fragment for people; also the value of [`UNREADABLE_HEADER`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooDeep => "a header is nested too deeply",
            Self::NotUtf8 => "a text among them is not UTF-8",
            Self::TooLarge => "they are too large",
            Self::Malformed => "they are not as AMQP 0-9-1 has them",
        }
    }

    /// The inverse of [`Self::as_str`]; for any other text, [`PropertiesFlaw::Malformed`]: publishers can write that
    /// header, too.
    pub fn named(text: &str) -> Self {
        Self::ALL.into_iter().find(|flaw| flaw.as_str() == text).unwrap_or(Self::Malformed)
    }
}

/// Checks the payload of a content header of the class `basic`.
///
/// # Errors
///
/// The first flaw.
pub(super) fn check(payload: &[u8]) -> Result<(), PropertiesFlaw> {
    let mut remaining = Reader(payload);
    remaining.take(FIXED_BYTES)?;
    let flags = u16::from_be_bytes(remaining.array()?);
    let has = |bit: u16| flags & (1 << bit) != 0;
    // In the order of the protocol: content type and encoding, headers, delivery mode, priority,
    // correlation id, reply-to, expiration, message id, timestamp, type, user, app and cluster id.
    for bit in (2..16).rev().filter(|bit| has(*bit)) {
        match bit {
            13 => remaining.table(MAX_DEPTH)?,
            12 | 11 => drop(remaining.take(1)?),
            6 => drop(remaining.take(8)?),
            _ => remaining.short_text()?,
        }
    }
    // The last two bits name no property.
    if has(0) || has(1) || !remaining.0.is_empty() {
        Err(PropertiesFlaw::Malformed)
    } else {
        Ok(())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], PropertiesFlaw> {
        let (taken, remaining) = self.0.split_at_checked(bytes).ok_or(PropertiesFlaw::Malformed)?;
        self.0 = remaining;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PropertiesFlaw> {
        let (taken, remaining) = self.0.split_first_chunk().ok_or(PropertiesFlaw::Malformed)?;
        self.0 = remaining;
        Ok(*taken)
    }

    fn long(&mut self) -> Result<Self, PropertiesFlaw> {
        let bytes = u32::from_be_bytes(self.array()?);
        Ok(Self(self.take(bytes as usize)?))
    }

    fn short_text(&mut self) -> Result<(), PropertiesFlaw> {
        let [bytes] = self.array()?;
        let text = self.take(usize::from(bytes))?;
        if std::str::from_utf8(text).is_ok() { Ok(()) } else { Err(PropertiesFlaw::NotUtf8) }
    }

    fn table(&mut self, depth: usize) -> Result<(), PropertiesFlaw> {
        let mut inside = self.long()?;
        while !inside.0.is_empty() {
            inside.short_text()?;
            inside.value(depth)?;
        }
        Ok(())
    }

    /// Checks a value. The types are those of the client library, which are RabbitMQ's. `depth` bounds the recursion.
    fn value(&mut self, depth: usize) -> Result<(), PropertiesFlaw> {
        let [kind] = self.array()?;
        let bytes = match kind {
            b'V' => 0,
            b't' | b'b' | b'B' => 1,
            b's' | b'U' | b'u' => 2,
            b'I' | b'i' | b'f' => 4,
            b'D' => 5,
            b'L' | b'l' | b'd' | b'T' => 8,
            b'S' | b'x' => return self.long().map(drop),
            b'F' | b'A' if depth == 0 => return Err(PropertiesFlaw::TooDeep),
            b'F' => return self.table(depth - 1),
            b'A' => {
                let mut inside = self.long()?;
                while !inside.0.is_empty() {
                    inside.value(depth - 1)?;
                }
                return Ok(());
            }
            _ => return Err(PropertiesFlaw::Malformed),
        };
        self.take(bytes).map(drop)
    }
}
