//! A task's output, line by line and as it is stored.

use std::hint::black_box;

use chrono::TimeDelta;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_model::progress;

use super::{Call, Case, at, call};

pub(super) const CASES: &[Case] = &[
    Case { name: "look at an ordinary line", prepare: ordinary },
    Case { name: "read a line of progress", prepare: progress },
    Case { name: "store 100 lines", prepare: store },
];

const WRITTEN: &str = "2026-03-20T07:00:01.250Z";
const LINE: &str =
    "2026-03-20 08:00:01 INFO  billing: invoice 184203 written to /var/lib/out/184203.pdf";

fn ordinary() -> Call {
    let now = at(WRITTEN);
    call(move || progress::parse(black_box(LINE), now))
}

fn progress() -> Call {
    let now = at(WRITTEN);
    call(move || progress::parse(black_box("::progress 42.5 records=1200 phase=render"), now))
}

fn store() -> Call {
    let lines: Vec<_> = (0..100)
        .map(|number| Line {
            at: at(WRITTEN) + TimeDelta::milliseconds(17 * number),
            stream: if number % 10 == 0 { Stream::Stderr } else { Stream::Stdout },
            text: LINE.to_owned(),
        })
        .collect();
    let bytes = lines.iter().map(|line| line.text.len() as i64 + 1).sum();
    call(move || Chunk::new(1, 0, bytes, black_box(&lines)))
}
