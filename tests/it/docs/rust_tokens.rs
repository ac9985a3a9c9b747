//! Splits Rust source into names, comments and string literals, each with its line.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// An identifier or a keyword.
    Name,
    /// A comment, with its slashes.
    Comment,
    /// A string literal of any kind, with its quotes.
    Text,
}

/// A token, and the line of its beginning, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// Returns the names, comments and string literals of a source in their order.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = if rest.starts_with("//") {
            (Some(TokenKind::Comment), rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Some(TokenKind::Comment), block_comment_length(rest))
        } else if let Some(length) = string_length(rest) {
            (Some(TokenKind::Text), length)
        } else if is_name_character(first) {
            let end = rest.find(|character| !is_name_character(character)).unwrap_or(rest.len());
            (Some(TokenKind::Name).filter(|_| !first.is_ascii_digit()), end)
        } else if first == '\'' {
            (None, character_length(rest))
        } else {
            (None, first.len_utf8())
        };
        let (text, after) = rest.split_at(length);
        found.extend(kind.map(|kind| Token { kind, text, line }));
        line += text.matches('\n').count();
        rest = after;
    }
    found
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the string literal at the beginning, if there is one: `"…"`, `b"…"`, `c"…"`, `r#"…"#`.
fn string_length(rest: &str) -> Option<usize> {
    let after_prefix = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - after_prefix.len();
    if let Some(raw) = after_prefix.strip_prefix('r') {
        let opened = raw.trim_start_matches('#').strip_prefix('"')?;
        let closing = format!("\"{}", "#".repeat(raw.len() - opened.len() - 1));
        let begin = rest.len() - opened.len();
        return Some(opened.find(&closing).map_or(rest.len(), |at| begin + at + closing.len()));
    }
    let opened = after_prefix.strip_prefix('"').filter(|_| prefix < 2)?;
    let mut is_escaped = false;
    let end = opened.find(|character| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    Some(end.map_or(rest.len(), |at| rest.len() - opened.len() + at + 1))
}

/// The length of a character literal; of a lifetime, that of its quote.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let begin = at + escaped.len_utf8();
            rest[begin..].find('\'').map_or(rest.len(), |end| begin + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[test]
fn names_comments_and_strings_are_distinguished() {
    let source = concat!(
        "/// `a`\nlet name: &'static str = r#\"text \"#; /* x /* y */\n z */ call(b\"\\\"q\", '\"', '\\'');\n",
        "done"
    );
    let found: Vec<_> =
        tokens(source).into_iter().map(|token| (token.kind, token.text, token.line)).collect();
    let (name, comment, text) = (TokenKind::Name, TokenKind::Comment, TokenKind::Text);
    assert_eq!(
        found,
        [
            (comment, "/// `a`", 1),
            (name, "let", 2),
            (name, "name", 2),
            (name, "static", 2),
            (name, "str", 2),
            (text, "r#\"text \"#", 2),
            (comment, "/* x /* y */\n z */", 2),
            (name, "call", 3),
            (text, "b\"\\\"q\"", 3),
            (name, "done", 4),
        ]
    );
}
