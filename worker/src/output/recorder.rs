//! Records a task's output: the executor pushes, the streaming and the settlement take.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use regex::Regex;
use serde_json::Value;
use sexton_model::output::{Chunk, Line, Output, Stream};
use sexton_model::progress::Progress;
use sexton_store::output::OutputPart;

use super::mask::{self, Values};
use super::{Capture, OutputLimits};

/// Longest extract that [`Recorder::last_line`] returns, in characters.
const LAST_LINE_MAX_CHARS: usize = 500;

/// The output of one running attempt. Cheap to clone; all clones share it.
///
/// An executor that runs under a [`TaskControl`](crate::executor::TaskControl) finds it there. The executor
/// adds the secrets first ([`mask`](Self::mask)), then pushes what it reads. Nothing here waits: what exceeds
/// the limits is dropped and counted.
#[derive(Clone, Debug)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    pattern: Option<Arc<Regex>>,
}

#[derive(Debug)]
struct Recording {
    capture: Capture,
    /// When the last piece was read.
    at: DateTime<Utc>,
    /// In the order of their addition; the matcher is built from all of them.
    secrets: Vec<Vec<u8>>,
    values: Option<Arc<Values>>,
    held_back: HeldBack,
    /// Chunks taken from the capture whose storage is not confirmed.
    taken: Vec<Arc<Chunk>>,
    /// The last lines among those taken, until newer ones arrive.
    words: LastLines,
    progress: Option<Progress>,
}

/// The end of each stream, which may be the beginning of a value.
#[derive(Debug, Default)]
struct HeldBack {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl HeldBack {
    fn of(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

/// The last line with text of each stream among the taken lines.
#[derive(Debug, Default)]
struct LastLines {
    stdout: Option<String>,
    stderr: Option<String>,
}

impl LastLines {
    fn of(&mut self, stream: Stream) -> &mut Option<String> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Recorder {
    /// Creates an empty recorder; `pattern` is masked in each line and in each message.
    pub fn new(limits: OutputLimits, pattern: Option<Arc<Regex>>) -> Self {
        let recording = Recording {
            capture: Capture::new(limits),
            at: DateTime::UNIX_EPOCH,
            secrets: Vec::new(),
            values: None,
            held_back: HeldBack::default(),
            taken: Vec::new(),
            words: LastLines::default(),
            progress: None,
        };
        Self { recording: Arc::new(Mutex::new(recording)), pattern }
    }

    /// Masks these values from now on, in addition to earlier ones: in pushed output, and in the messages of
    /// the attempt's end. Call it before the task starts with them.
    ///
    /// This also masks a value's lines, if it has several, and its form in JSON. Values of fewer than
    /// [`mask::MIN_VALUE_BYTES`] bytes are not masked: they occur in nearly every text.
    pub fn mask(&self, values: impl IntoIterator<Item = impl Into<Vec<u8>>>) {
        let mut recording = self.lock();
        recording.secrets.extend(values.into_iter().map(Into::into));
        recording.values = Values::new(&recording.secrets).map(Arc::new);
    }

    /// Treats progress lines as output from now on, because the writer is not the task.
    pub fn keep_progress_lines(&self) {
        self.lock().capture.keep_progress_lines();
    }

    /// Adds what was read from `stream` at the time `at`.
    pub fn push(&self, stream: Stream, at: DateTime<Utc>, bytes: &[u8]) {
        let recording = &mut *self.lock();
        recording.at = at;
        match recording.values.clone() {
            None => recording.capture.push(stream, at, bytes),
            Some(values) => {
                let mut masked = Vec::with_capacity(bytes.len());
                values.pass(recording.held_back.of(stream), bytes, &mut masked);
                recording.capture.push(stream, at, &masked);
            }
        }
    }

    /// Records the task's progress, which replaces the previous report. Its names and values are masked.
    pub fn progress(&self, mut progress: Progress) {
        mask_values(&mut progress, |text| self.masked(text));
        self.lock().progress = Some(progress);
    }

    /// Returns a text about the task, such as the reason of its failure, masked for storage.
    pub fn masked(&self, text: &str) -> String {
        let values = self.lock().values.clone();
        mask::message(values.as_deref(), self.pattern.as_deref(), text)
    }

    /// Returns the task's result, masked for storage: texts, numbers and the names of fields.
    pub(crate) fn masked_result(&self, result: Value) -> Value {
        let values = self.lock().values.clone();
        if values.is_none() && self.pattern.is_none() {
            return result;
        }
        mask::json(result, &|text| mask::message(values.as_deref(), self.pattern.as_deref(), text))
    }

    /// Returns the last line with text, of stderr if it has one, else of stdout: the likely cause of a failure.
    /// Masked, and at most 500 characters.
    pub fn last_line(&self) -> Option<String> {
        let recording = &mut *self.lock();
        let (capture, taken) = (&mut recording.capture, &mut recording.words);
        let words = [Stream::Stderr, Stream::Stdout]
            .into_iter()
            .find_map(|stream| capture.last_line(stream).or_else(|| taken.of(stream).clone()))?;
        Some(self.words(&words))
    }

    /// Returns the part to store now: what is new since the last part, or that part again until it is confirmed
    /// as [`stored`](Self::stored).
    pub(super) fn part(&self) -> OutputPart {
        let recording = &mut *self.lock();
        if recording.taken.is_empty() {
            self.take(recording);
        }
        recording.part()
    }

    /// Confirms that this part is stored.
    pub(super) fn stored(&self, part: &OutputPart) {
        let mut recording = self.lock();
        let stored = |chunk: &Arc<Chunk>| part.chunks.iter().any(|one| Arc::ptr_eq(one, chunk));
        recording.taken.retain(|chunk| !stored(chunk));
        if recording.part().progress == part.progress {
            recording.progress = None;
        }
    }

    /// Returns what must be stored with the end of the attempt: nothing follows.
    pub(crate) fn final_part(&self) -> OutputPart {
        let recording = &mut *self.lock();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut remainder = Vec::new();
            Values::finish(recording.held_back.of(stream), &mut remainder);
            recording.capture.push(stream, recording.at, &remainder);
        }
        recording.capture.end();
        self.take(recording);
        recording.part()
    }

    /// Returns the output, without what was stored while the task ran: nothing follows.
    pub fn finish(&self) -> Output {
        let part = self.final_part();
        // Only chunks made elsewhere can be unreadable.
        Output::of(part.chunks.iter().map(Arc::as_ref)).unwrap_or_default()
    }

    fn take(&self, recording: &mut Recording) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(words) = recording.capture.last_line(stream) {
                *recording.words.of(stream) = Some(self.words(&words));
            }
        }
        if let Some(mut progress) = recording.capture.take_progress() {
            mask_values(&mut progress, |text| self.without_pattern(text).into_owned());
            recording.progress = Some(progress);
        }
        let chunks = recording.capture.take(|line: &mut Line| {
            if let Cow::Owned(masked) = self.without_pattern(&line.text) {
                line.text = masked;
            }
        });
        recording.taken.extend(chunks.into_iter().map(Arc::new));
        if let Some((above, below)) = recording.capture.superseded() {
            recording.taken.retain(|chunk| chunk.first_line <= above || chunk.first_line >= below);
        }
    }

    fn without_pattern<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.pattern.as_deref().map_or(Cow::Borrowed(text), |pattern| mask::replace(pattern, text))
    }

    /// Masks the text before cutting it: the mask would not recognise a part of a match.
    fn words(&self, text: &str) -> String {
        self.without_pattern(text).trim().chars().take(LAST_LINE_MAX_CHARS).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        // No code under this lock panics half way; and lost output is no reason to fail a task.
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn part(&self) -> OutputPart {
        let chunks = self.taken.clone();
        let superseded = self.capture.superseded().filter(|_| !chunks.is_empty());
        let progress =
            self.progress.as_ref().and_then(|progress| serde_json::to_value(progress).ok());
        OutputPart { chunks, superseded, progress }
    }
}

fn mask_values(progress: &mut Progress, mask: impl Fn(&str) -> String) {
    let values = std::mem::take(&mut progress.values).into_iter();
    progress.values = values.map(|(name, value)| (mask(&name), mask::json(value, &mask))).collect();
}

impl Default for Recorder {
    /// Creates a recorder with the default limits and without a pattern.
    fn default() -> Self {
        Self::new(OutputLimits::default(), None)
    }
}

#[cfg(test)]
mod tests;
