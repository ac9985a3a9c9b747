//! YAML as a tree with lines, of bounded size and depth.
//!
//! The parser's events are taken one by one, so that nothing is recursive but the tree, whose depth is
//! bounded here. Anchors and aliases are refused: what they stand for is written elsewhere, can be
//! huge, and no manifest needs them. Values are texts; the reader decides what a text means.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::ImportError;

const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 200_000;
/// Of one map; each new one is compared with those before it.
const MAX_KEYS: usize = 1_000;

/// A value and where it begins.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) node: Node,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    /// A text, and whether it was written without quotes: `5` may be a number then, and `~` nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Value>),
    /// In the order of the text; no key twice.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The value of a key; `None` also where it is written as nothing.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Node::Map(fields) = &self.node else { return None };
        let (_, value) = fields.iter().find(|(name, _)| name == key)?;
        (!value.is_null()).then_some(value)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.node {
            Node::Scalar { text, .. } => Some(text),
            Node::List(_) | Node::Map(_) => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.node {
            Node::List(values) => Some(values),
            Node::Scalar { .. } | Node::Map(_) => None,
        }
    }

    pub(super) fn fields(&self) -> &[(String, Self)] {
        match &self.node {
            Node::Map(fields) => fields,
            Node::Scalar { .. } | Node::List(_) => &[],
        }
    }

    fn is_null(&self) -> bool {
        matches!(&self.node, Node::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// The documents of a text. One that is empty is none.
///
/// # Errors
///
/// [`ImportError::Malformed`] with the place of the first mistake.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, ImportError> {
    let mut tree = Tree::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| malformed(&error))?;
        let place = (span.start.line(), span.start.col() + 1);
        tree.take(event, place).map_err(|message| ImportError::Malformed {
            line: place.0,
            column: place.1,
            message,
        })?;
    }
    let nothing = |value: &Value| value.is_null();
    tree.documents.retain(|document| !nothing(document));
    Ok(tree.documents)
}

fn malformed(error: &ScanError) -> ImportError {
    let (line, column) = (error.marker().line(), error.marker().col() + 1);
    ImportError::Malformed { line, column, message: super::clip(error.info()) }
}

/// A list or map that is not at its end yet.
struct Open {
    value: Value,
    /// In a map, the key whose value comes next.
    key: Option<String>,
}

#[derive(Default)]
struct Tree {
    documents: Vec<Value>,
    open: Vec<Open>,
    nodes: usize,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, (line, _): (usize, usize)) -> Result<(), String> {
        match event {
            Event::Alias(_) => Err("aliases are not followed; write what it stands for".to_owned()),
            Event::Scalar(text, style, _, _) => {
                let plain = style == ScalarStyle::Plain;
                self.add(Value { line, node: Node::Scalar { text: text.into_owned(), plain } })
            }
            Event::SequenceStart(..) => self.begin(Value { line, node: Node::List(Vec::new()) }),
            Event::MappingStart(..) => self.begin(Value { line, node: Node::Map(Vec::new()) }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(done) => self.add(done.value),
                None => Ok(()),
            },
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, value: Value) -> Result<(), String> {
        if self.open.len() == MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        self.open.push(Open { value, key: None });
        Ok(())
    }

    fn add(&mut self, value: Value) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(format!("it has more than {MAX_NODES} values; split the file"));
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(value);
            return Ok(());
        };
        match &mut open.value.node {
            Node::List(values) => values.push(value),
            Node::Map(fields) => match open.key.take() {
                Some(key) => fields.push((key, value)),
                None => match value.node {
                    Node::Scalar { text, .. } => {
                        if fields.len() == MAX_KEYS {
                            return Err(format!("a map has more than {MAX_KEYS} keys"));
                        }
                        if fields.iter().any(|(name, _)| *name == text) {
                            return Err(format!(
                                "the key {} is there twice",
                                sexton_model::quoting::quoted(&text)
                            ));
                        }
                        open.key = Some(text);
                    }
                    Node::List(_) | Node::Map(_) => return Err("a key must be a text".to_owned()),
                },
            },
            Node::Scalar { .. } => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_tree_with_lines() {
        let documents =
            documents("a: 1\nb:\n  - x\n  - 'y z'\n---\n# only this\n---\nc: ~\n").unwrap();
        assert_eq!(documents.len(), 2);
        let list = documents[0].get("b").unwrap();
        assert_eq!(list.line, 3);
        assert_eq!(list.list().unwrap()[1].text(), Some("y z"));
        assert_eq!(documents[1].get("c"), None);
    }

    #[test]
    fn what_is_no_tree_of_bounded_size_is_refused_with_its_place() {
        let deep = "[".repeat(100);
        let many = format!("[{}]", "1,".repeat(MAX_NODES + 1));
        let keys: Vec<String> = (0..=MAX_KEYS).map(|key| format!("k{key}: 1")).collect();
        let keys = keys.join("\n");
        for (text, line, part) in [
            ("a: 1\na: 2\n", 2, "twice"),
            ("a: &x 1\nb: *x\n", 2, "aliases"),
            ("a: {\n", 2, ""),
            ("a: [1\nb: 2\n", 0, ""),
            (&*deep, 1, "deep"),
            (&*many, 1, "values"),
            (&*keys, MAX_KEYS + 1, "keys"),
            ("? [a]\n: b\n", 1, "key"),
            ("a: 'b\n", 0, ""),
        ] {
            let Err(ImportError::Malformed { line: found, message, .. }) = documents(text) else {
                panic!("{text:.40} was read")
            };
            assert!(line == 0 || found == line, "{text:.40}: line {found}: {message}");
            assert!(message.contains(part), "{text:.40}: {message}");
        }
    }
}
