//! Recognises parts that become placeholders as a whole: quoted parts, addresses, ids with hyphens, paths.
//!
//! Each looks ahead over a bounded number of bytes only, so that parsing stays linear.

/// How far a matcher looks ahead, in bytes.
const MAX_AHEAD: usize = 256;
/// File endings by which `main.py:42` is a place in a file rather than a host with a port.
const FILES: [&str; 20] = [
    "c", "cc", "cpp", "cs", "ex", "go", "h", "java", "js", "kt", "php", "pl", "py", "rb", "rs",
    "sh", "sql", "swift", "ts", "tsx",
];

/// Matches quoted parts. Remembers which kinds have no closing quote, so that no text is searched twice.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    unclosed: Vec<char>,
}

impl Quotes {
    /// Returns the length of the quoted part at the beginning, in bytes; `last` is the character written before it.
    pub(super) fn match_length(&mut self, remaining: &str, last: Option<char>) -> Option<usize> {
        let open = remaining.chars().next()?;
        let close = match open {
            '"' | '\'' | '`' => open,
            '“' => '”',
            '‘' => '’',
            '«' => '»',
            _ => return None,
        };
        // An apostrophe follows a letter.
        let apostrophe = matches!(open, '\'' | '`' | '‘');
        if (apostrophe && last.is_some_and(char::is_alphanumeric)) || self.unclosed.contains(&close)
        {
            return None;
        }
        let inside = &remaining[open.len_utf8()..];
        let end = inside
            .match_indices(close)
            .map(|(at, _)| at + close.len_utf8())
            .find(|end| !apostrophe || !inside[*end..].starts_with(char::is_alphabetic));
        if end.is_none() {
            self.unclosed.push(close);
        }
        Some(open.len_utf8() + end?)
    }
}

/// Returns the placeholder for the beginning, and how many bytes it replaces.
pub(super) fn match_placeholder(
    remaining: &str,
    last: Option<char>,
) -> Option<(&'static str, usize)> {
    let begins = last.is_none_or(|last| !last.is_alphanumeric() && !matches!(last, '>' | '_'));
    let ahead = &remaining.as_bytes()[..remaining.len().min(MAX_AHEAD)];
    let first = *ahead.first()?;
    if !begins || !first.is_ascii() || first.is_ascii_whitespace() {
        return None;
    }
    if let Some(length) = path(remaining, last) {
        return Some(("<path>", length));
    }
    if !(first.is_ascii_alphanumeric() || first == b':') {
        return None;
    }
    if let Some(length) = url(remaining) {
        return Some(("<url>", length));
    }
    if let Some(length) = email(ahead) {
        return Some(("<email>", length));
    }
    if let Some(length) = uuid(ahead) {
        return Some(("<n>", length));
    }
    let address = ipv4(ahead).or_else(|| ipv6(ahead)).or_else(|| host_and_port(ahead));
    address.map(|length| ("<addr>", length))
}

fn count(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

/// Returns whether the word goes on after `length` bytes.
fn word_continues(bytes: &[u8], length: usize) -> bool {
    bytes.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// Returns the length of a path or URL, without the sentence's punctuation after it.
fn token_length(remaining: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>()[]{},;|“”‘’«»".contains(c);
    let end = remaining.find(ends).unwrap_or(remaining.len());
    remaining[..end].trim_end_matches(['.', ':', '!', '?']).len()
}

fn url(remaining: &str) -> Option<usize> {
    let bytes = remaining.as_bytes();
    let scheme =
        count(&bytes[..bytes.len().min(20)], |b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !bytes[0].is_ascii_alphabetic() || !bytes[scheme..].starts_with(b"://") {
        return None;
    }
    let length = token_length(remaining);
    (length > scheme + 3).then_some(length)
}

/// Matches a path that begins at a root, at `.`, `..` or `~`, or on a drive. `and/or` does not.
fn path(remaining: &str, last: Option<char>) -> Option<usize> {
    if !last.is_none_or(|last| " (=[{,;:|".contains(last)) {
        return None;
    }
    let bytes = remaining.as_bytes();
    let drive = bytes[0].is_ascii_alphabetic()
        && (bytes[1..].starts_with(b":\\") || bytes[1..].starts_with(b":/"))
        && !bytes[1..].starts_with(b"://");
    let begins = ["/", "./", "../", "~/", "\\\\"].iter().any(|root| remaining.starts_with(root));
    let length = token_length(remaining);
    let named =
        remaining[..length].bytes().any(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80);
    ((drive || begins) && named).then_some(length)
}

fn email(bytes: &[u8]) -> Option<usize> {
    let of_local = |b: u8| b.is_ascii_alphanumeric() || b"._%+-".contains(&b);
    let local = count(&bytes[..bytes.len().min(65)], of_local);
    if bytes.get(local) != Some(&b'@') {
        return None;
    }
    let after = &bytes[local + 1..];
    let domain = count(after, |b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    let domain = after[..domain].iter().rposition(u8::is_ascii_alphanumeric)? + 1;
    Some(local + 1 + domain)
}

fn uuid(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (part, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if part > 0 {
            (bytes.get(at) == Some(&b'-')).then_some(())?;
            at += 1;
        }
        let of = bytes.get(at..at + digits)?;
        of.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += digits;
    }
    (!word_continues(bytes, at)).then_some(at)
}

fn ipv4(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for part in 0..4 {
        if part > 0 {
            (bytes.get(at) == Some(&b'.')).then_some(())?;
            at += 1;
        }
        let digits = count(&bytes[at..], |b| b.is_ascii_digit());
        (1..=3).contains(&digits).then_some(())?;
        at += digits;
    }
    let more = word_continues(bytes, at)
        || (bytes.get(at) == Some(&b'.') && word_continues(bytes, at + 1));
    (!more).then(|| at + port_length(&bytes[at..]))
}

/// Returns the length of a port or of a prefix length, in bytes.
fn port_length(bytes: &[u8]) -> usize {
    let digits = match bytes.first() {
        Some(b':' | b'/') => count(&bytes[1..], |b| b.is_ascii_digit()),
        _ => 0,
    };
    if (1..=5).contains(&digits) && !word_continues(bytes, digits + 1) { digits + 1 } else { 0 }
}

fn ipv6(bytes: &[u8]) -> Option<usize> {
    let length = count(bytes, |b| b.is_ascii_hexdigit() || b == b':');
    let length = if bytes[..length].ends_with(b"::") {
        length
    } else {
        bytes[..length].iter().rposition(u8::is_ascii_hexdigit)? + 1
    };
    let text = &bytes[..length];
    let colons = text.split(|byte| *byte == b':').count() - 1;
    let short = text.windows(2).any(|pair| pair == b"::");
    let digit = text.iter().any(u8::is_ascii_digit);
    let fits =
        length <= 45 && digit && (if short { (2..=7).contains(&colons) } else { colons == 7 });
    (fits && !word_continues(bytes, length)).then_some(length)
}

fn host_and_port(bytes: &[u8]) -> Option<usize> {
    let length = count(bytes, |b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    let host = &bytes[..length];
    let ending = host.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let file = FILES.iter().any(|known| known.as_bytes() == ending);
    let named = host == b"localhost" || (host.contains(&b'.') && !ending.is_empty() && !file);
    let port = port_length(&bytes[length..]);
    (named && port > 1 && bytes[length] == b':').then_some(length + port)
}
