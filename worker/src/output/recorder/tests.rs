//! Goal: the parts taken while a task writes, and the final part, are together its output, even if some parts
//! are lost. Method: properties over random output in random parts, of which some are lost.

use proptest::prelude::*;

use super::*;

/// The first limit reached is that of bytes or that of lines.
const SMALL: [OutputLimits; 2] = [
    OutputLimits { part_bytes: 64, part_lines: 5, line_bytes: 16 },
    OutputLimits { part_bytes: 64, part_lines: 100, line_bytes: 16 },
];

fn pushed(recorder: &Recorder, pieces: &[(Stream, &str)]) -> Vec<String> {
    for (stream, text) in pieces {
        recorder.push(*stream, DateTime::UNIX_EPOCH, text.as_bytes());
    }
    recorder.finish().lines.into_iter().map(|line| line.text).collect()
}

/// The table's contents after these parts were written, in this order.
#[derive(Default)]
struct Table(std::collections::BTreeMap<i64, Chunk>);

impl Table {
    fn write(&mut self, part: &OutputPart) {
        if let Some((above, below)) = part.superseded {
            self.0.retain(|&first, _| first <= above || first >= below);
        }
        for chunk in &part.chunks {
            self.0.entry(chunk.first_line).or_insert_with(|| Chunk::clone(chunk));
        }
    }
}

/// The result of storing one part.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Stored,
    /// Stored, without a confirmation.
    Unanswered,
    Lost,
}

proptest! {
    #[test]
    fn parts_and_end_are_the_output_whatever_became_of_the_parts(
        steps in prop::collection::vec(
            (prop::collection::vec("[a-zäß€]{0,5}", 0..12),
             prop::sample::select(vec![Fate::Stored, Fate::Unanswered, Fate::Lost])),
            0..12),
        limits in prop::sample::select(SMALL.to_vec()),
    ) {
        let recorder = Recorder::new(limits, None);
        let (mut table, mut all) = (Table::default(), Vec::new());
        for (lines, fate) in &steps {
            for line in lines {
                recorder.push(Stream::Stdout, DateTime::UNIX_EPOCH, format!("{line}\n").as_bytes());
                all.push(line.clone());
            }
            let part = recorder.part();
            if !matches!(fate, Fate::Lost) {
                table.write(&part);
            }
            if matches!(fate, Fate::Stored) {
                recorder.stored(&part);
            }
        }
        table.write(&recorder.final_part());
        let output = Output::of(table.0.values()).unwrap();
        let texts: Vec<_> = output.lines.iter().map(|line| line.text.clone()).collect();
        let (head, tail) = texts.split_at(output.head_lines);
        prop_assert_eq!(head, &all[..head.len()]);
        prop_assert_eq!(tail, &all[all.len() - tail.len()..]);
        prop_assert_eq!(texts.len() as u64 + output.dropped_lines, all.len() as u64);
        let written: usize = all.iter().map(|line| line.len() + 1).sum();
        let kept_bytes: usize = texts.iter().map(|line| line.len() + 1).sum();
        prop_assert_eq!(kept_bytes as u64 + output.dropped_bytes, written as u64);
        // The head, and a tail of once to twice its length.
        prop_assert!(kept_bytes <= 3 * limits.part_bytes && texts.len() <= 3 * limits.part_lines, "{}", kept_bytes);
        prop_assert!(output.dropped_lines == 0 || tail.len() >= limits.part_lines
            || tail.iter().map(|line| line.len() + 1).sum::<usize>() > limits.part_bytes - 16);
    }
}

#[test]
fn a_part_is_returned_again_until_it_is_stored() {
    let recorder = Recorder::default();
    recorder.push(Stream::Stdout, DateTime::UNIX_EPOCH, b"one\n::progress 10\n");
    let part = recorder.part();
    assert_eq!((part.chunks.len(), part.progress.is_some()), (1, true));
    recorder.push(Stream::Stdout, DateTime::UNIX_EPOCH, b"two\n");
    assert_eq!(recorder.part(), part);
    recorder.stored(&part);
    let next = recorder.part();
    assert_eq!((next.chunks[0].first_line, next.progress.as_ref()), (2, None));
    recorder.stored(&next);
    assert!(recorder.part().is_empty() && recorder.final_part().is_empty());
}

#[test]
fn a_value_is_masked_over_two_reads_and_over_the_limit_of_a_line() {
    let recorder = Recorder::default();
    recorder.mask(["s3cret-token"]);
    let split =
        [(Stream::Stdout, "key=s3cret"), (Stream::Stderr, "s3cret-"), (Stream::Stdout, "-token\n")];
    assert_eq!(pushed(&recorder, &split), ["key=***", "***"]);
    let recorder = Recorder::default();
    recorder.mask(["s3cret-token"]);
    let line = "x".repeat(OutputLimits::default().line_bytes - 6) + "s3cret-token";
    let output = pushed(&recorder, &[(Stream::Stdout, &line)]).concat();
    assert!(output.ends_with("x***"), "{}", &output[output.len() - 20..]);
}

#[test]
fn secrets_that_are_added_one_after_the_other_are_all_masked() {
    let recorder = Recorder::default();
    recorder.mask(["first-1"]);
    recorder.mask(["second-2"]);
    assert_eq!(pushed(&recorder, &[(Stream::Stdout, "first-1 second-2\n")]), ["*** ***"]);
}

#[test]
fn last_words_are_masked_before_they_are_cut() {
    let pattern = Regex::new("token-[0-9]{4}").ok().map(Arc::new);
    let recorder = Recorder::new(OutputLimits::default(), pattern);
    // The limit cuts through a match.
    let output = "x".repeat(LAST_LINE_MAX_CHARS - 8) + " token-4711\n";
    recorder.push(Stream::Stderr, DateTime::UNIX_EPOCH, output.as_bytes());
    let words = recorder.last_line().unwrap();
    assert!(words.ends_with("x ***"), "{}", &words[words.len() - 20..]);
}

#[test]
fn the_pattern_is_masked_in_lines_words_progress_and_messages() {
    let pattern = Regex::new("[0-9]{4}").ok().map(Arc::new);
    let recorder = Recorder::new(OutputLimits::default(), pattern);
    let output = b"::progress 5 card=1234x n=51234 1234=5\ncard 1234\n567";
    recorder.push(Stream::Stdout, DateTime::UNIX_EPOCH, output);
    recorder.push(Stream::Stderr, DateTime::UNIX_EPOCH, b"no 9876\n \n");
    assert_eq!(recorder.last_line().as_deref(), Some("no ***"));
    let part = recorder.part();
    let values = serde_json::json!({"card": "***x", "n": "***4", "***": 5});
    assert_eq!(part.progress.as_ref().map(|progress| &progress["values"]), Some(&values));
    recorder.stored(&part);
    assert_eq!(recorder.last_line().as_deref(), Some("no ***"), "also when it is taken");
    let lines: Vec<_> = part.chunks[0].read().unwrap().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["card ***", "no ***", " "]);
    assert_eq!(recorder.masked("refused: 1234"), "refused: ***");
    let result = serde_json::json!({"card 1234": ["1234", 1234, {"n": null}], "x": "as it is"});
    let masked = serde_json::json!({"card ***": ["***", "***", {"n": null}], "x": "as it is"});
    assert_eq!(recorder.masked_result(result), masked);
}

#[test]
fn last_words_prefer_stderr_and_pass_over_silence() {
    let recorder = Recorder::default();
    assert_eq!(recorder.last_line(), None);
    recorder.push(Stream::Stderr, DateTime::UNIX_EPOCH, b"disk full\n  \n");
    recorder.push(Stream::Stdout, DateTime::UNIX_EPOCH, b"bye\n");
    assert_eq!(recorder.last_line().as_deref(), Some("disk full"));
}

#[test]
fn only_what_is_exactly_a_progress_line_is_none_of_the_output() {
    let recorder = Recorder::default();
    let output = "::progress 1\n::progress 200\n::progress 40 records=1200\r\n::progress x\nx";
    assert_eq!(
        pushed(&recorder, &[(Stream::Stdout, output), (Stream::Stderr, "::progress 3\n")]),
        ["::progress 200", "::progress x", "::progress 3", "x"]
    );
    let progress = recorder.final_part().progress.unwrap();
    assert_eq!(
        (&progress["percent"], &progress["values"]["records"]),
        (&40.0.into(), &1200.into())
    );
}

#[test]
fn what_looks_like_progress_is_output_if_it_is_not_the_task_that_says_it() {
    let recorder = Recorder::default();
    recorder.keep_progress_lines();
    assert_eq!(pushed(&recorder, &[(Stream::Stdout, "::progress 40\n")]), ["::progress 40"]);
    assert_eq!(recorder.final_part().progress, None);
}
