//! Documents of which each long run writes its own section: `docs/internals/reliability.md` has the summaries,
//! `tests/long-runs.md` the whole records.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// What the document begins with if it is not there yet.
const HEADER: &str = "\
# Reliability

What long runs of this code have shown, for people who decide whether to trust it. `make torture`, `make soak` and `make
bench-refusals` write the sections. The [guarantees](../reference/guarantees.md) state the promises, [proof](proof.md) shows
them for the protocol.
";

/// Puts `text` between the markers of the section `name`, and leaves the rest as it is. A document
/// without markers gets them at its end; one that is missing is begun.
///
/// # Errors
///
/// The document cannot be read or written, or has the section's opening marker and no closing one.
pub fn write(document: &Path, name: &str, text: &str) -> Result<()> {
    let before = match fs::read_to_string(document) {
        Ok(before) => before,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => HEADER.to_owned(),
        Err(error) => return Err(error).with_context(|| document.display().to_string()),
    };
    fs::write(document, placed(&before, name, text)?)
        .with_context(|| format!("write {}", document.display()))
}

fn placed(document: &str, name: &str, text: &str) -> Result<String> {
    let (opening, closing) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let inside = format!("{opening}\n{}\n{closing}", text.trim());
    let Some((before, rest)) = document.split_once(&opening) else {
        return Ok(format!("{}\n\n{inside}\n", document.trim_end()));
    };
    let Some((_, after)) = rest.split_once(&closing) else {
        bail!("the document has {opening}, but no {closing} after it");
    };
    Ok(format!("{before}{inside}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_takes_the_place_of_the_one_before_and_nothing_else_changes() {
        let text = "# A\n<!-- torture -->\nx\n<!-- /torture -->\n\n<!-- soak -->\nold\n<!-- /soak -->\n\nend\n";
        let expected = text.replace("old", "new");
        assert_eq!(placed(text, "soak", "\nnew\n").unwrap(), expected);
        assert_eq!(placed(&expected, "soak", "new").unwrap(), expected);
    }

    #[test]
    fn a_document_without_markers_gets_them_at_its_end() {
        assert_eq!(
            placed("# A\n", "soak", "s").unwrap(),
            "# A\n\n<!-- soak -->\ns\n<!-- /soak -->\n"
        );
        assert!(placed("<!-- soak -->", "soak", "s").is_err());
    }
}
