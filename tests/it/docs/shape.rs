//! The shape of the source, and the pages derived from it.

use std::path::Path;

use sexton_model::state::diagram;

use super::{between, blocks, files, text};

/// A file that is longer holds more than one concept.
const MAX_LINES: usize = 400;

#[test]
fn no_source_file_is_too_long_to_be_read() {
    let sources = files(".rs");
    assert!(sources.len() > 100, "only {} files were found", sources.len());
    for source in sources {
        let lines = text(&source).lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines; split it", source.display());
    }
}

/// The folders of production code, and the one file there that opens connections to the broker.
const PROGRAMS: [&str; 4] = ["shared", "scheduler", "worker", "console"];
const SCREEN: &str = "shared/broker/src/frame_filter/stream.rs";

#[test]
fn every_connection_of_a_program_to_the_broker_is_screened() {
    let opens = |source: &Path| {
        // The name of the database's connection type ends in the same word.
        text(source).replace("PgConnection::", "").contains("Connection::connect")
    };
    let sources = files(".rs").into_iter();
    let ours = sources.filter(|file| PROGRAMS.iter().any(|folder| file.starts_with(folder)));
    let opening: Vec<_> = ours.filter(|file| opens(file)).collect();
    assert_eq!(opening, [Path::new(SCREEN)], "open it with sexton_broker's own connect");
}

#[test]
fn the_picture_of_the_states_is_drawn_from_the_model() {
    let document = text("docs/internals/architecture.md");
    let pictures = blocks(between(&document, "states"), "mermaid");
    assert_eq!(pictures, [diagram()], "replace the block between the markers");
}
