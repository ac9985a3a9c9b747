//! The place of a span in its trace, as W3C Trace Context writes it.

use std::fmt::Write as _;

/// The version that this program writes.
const VERSION: &str = "00";
/// The length of a `traceparent` of that version.
const LENGTH: usize = 55;
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;
/// The longest `tracestate` that is passed on, in bytes.
const MAX_STATE_BYTES: usize = 512;
/// The number of different values of the part of a trace's id that is random.
const RANDOM_VALUES: f64 = (1_u64 << 56) as f64;

/// A span's place in its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// Whether the trace is recorded.
    pub sampled: bool,
    /// What other systems say about the trace; passed on as it is.
    pub state: Option<String>,
}

impl TraceContext {
    /// Reads a `traceparent` with its `tracestate`. `None`: it is not valid, and counts as absent.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let bytes = traceparent.as_bytes();
        // A later version may have further fields, behind a dash.
        let fits = bytes.len() == LENGTH
            || bytes.len() > LENGTH && bytes[LENGTH] == b'-' && !traceparent.starts_with(VERSION);
        if !fits || [2, 35, 52].iter().any(|&place| bytes[place] != b'-') {
            return None;
        }
        let [version] = hex(&bytes[..2])?;
        let (trace_id, span_id) = (hex(&bytes[3..35])?, hex(&bytes[36..52])?);
        let [flags]: [u8; 1] = hex(&bytes[53..55])?;
        if version == 0xff || trace_id == [0; 16] || span_id == [0; 8] {
            return None;
        }
        let fits = |state: &&str| {
            (1..=MAX_STATE_BYTES).contains(&state.len())
                && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let state = tracestate.filter(fits).map(str::to_owned);
        Some(Self { trace_id, span_id, sampled: flags & SAMPLED != 0, state })
    }

    /// Returns the `traceparent`.
    pub fn traceparent(&self) -> String {
        let mut text = String::with_capacity(LENGTH);
        text.push_str(VERSION);
        for part in [&self.trace_id[..], &self.span_id[..], &[u8::from(self.sampled)]] {
            text.push('-');
            for byte in part {
                // Writing to a String cannot fail.
                let _ = write!(text, "{byte:02x}");
            }
        }
        text
    }
}

/// Reads lowercase hexadecimal digits, the only ones that the standard allows.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// Returns whether a trace is within the share `ratio` of all traces. It looks at the last seven bytes of the id only: the
/// others of a UUID are not random.
pub(super) fn is_within(trace_id: [u8; 16], ratio: f64) -> bool {
    let mut random = [0; 8];
    random[1..].copy_from_slice(&trace_id[9..]);
    u64::from_be_bytes(random) as f64 >= (1.0 - ratio) * RANDOM_VALUES
}

#[cfg(test)]
mod tests {
    use uuid::{NoContext, Timestamp, Uuid};

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_read_is_written_again() {
        let context = TraceContext::parse(PARENT, Some("vendor=1")).unwrap();
        assert_eq!(context.traceparent(), PARENT);
        assert!(context.sampled);
        assert_eq!(context.state.as_deref(), Some("vendor=1"));
        let off = PARENT.replace("-01", "-00");
        assert!(!TraceContext::parse(&off, None).unwrap().sampled);
    }

    #[test]
    fn what_is_not_a_traceparent_counts_as_absent() {
        for text in [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT.replace("00-", "ff-"),
            &PARENT.replace("b7ad6b7169203331", "0000000000000000"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &PARENT.replace('-', "_"),
            &format!("{PARENT}-x"),
            &format!("{}é", &PARENT[..53]),
        ] {
            assert_eq!(TraceContext::parse(text, None), None, "{text}");
        }
        let later = format!("01{}-more", &PARENT[2..]);
        assert!(TraceContext::parse(&later, None).is_some());
        assert_eq!(TraceContext::parse(PARENT, Some("a=\r\n")).unwrap().state, None);
    }

    #[test]
    fn the_share_of_recorded_traces_is_the_ratio_for_ids_of_executions_too() {
        // Ids of executions have fixed bits in the ninth byte, and begin with the time.
        let at = |second: u64| Timestamp::from_unix(NoContext, 1_800_000_000 + second, 0);
        let ids: Vec<[u8; 16]> =
            (0..2_000).map(|second| *Uuid::new_v7(at(second)).as_bytes()).collect();
        for (ratio, least, most) in
            [(0.0, 0, 0), (0.1, 100, 300), (0.5, 850, 1_150), (1.0, 2_000, 2_000)]
        {
            let count = ids.iter().filter(|id| is_within(**id, ratio)).count();
            assert!((least..=most).contains(&count), "{ratio}: {count}");
        }
    }
}
