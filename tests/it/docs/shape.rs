//! The shape of the source, and what is drawn from it.

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

#[test]
fn the_picture_of_the_states_is_drawn_from_the_model() {
    let document = text("docs/architecture.md");
    let pictures = blocks(between(&document, "states"), "mermaid");
    assert_eq!(pictures, [diagram()], "replace the block between the markers");
}
