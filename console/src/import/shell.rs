//! A command of a shell as simple commands: enough to see what it runs and where it sleeps.
//!
//! No full grammar. [`Script::is_whole`] says whether every quote and bracket was closed; only then may
//! a part be taken out of the text. No text makes it panic, and its time is linear in the text.

use std::ops::Range;

/// Words that stand in front of a command and run nothing.
const KEYWORDS: [&str; 11] =
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "!"];
/// Words after which everything up to the next operator is no command.
const COMPOUND_KEYWORDS: [&str; 4] = ["for", "case", "select", "function"];

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Word {
    /// Without its quotes; what a shell puts in place of a `$` stays as it is written.
    pub(super) text: String,
    /// A shell runs something else to know it: `$(…)` or backquotes.
    pub(super) substituted: bool,
}

/// What ends a simple command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// `&&`
    And,
    /// `;` or the end of a line.
    Then,
    /// `||`, a pipe, `&`, a bracket.
    Other,
    /// The end of the text.
    Text,
}

/// A program and its arguments, up to the next operator. Redirections are not among its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    /// Its place in the text, with its operator.
    pub(super) at: Range<usize>,
    pub(super) end: End,
    /// It stands in brackets, or behind a keyword such as `if`.
    pub(super) nested: bool,
}

impl Simple {
    /// Whether it only looks whether something is there, and finds the same at any time of the day.
    pub(super) fn is_test(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let tests = matches!(
            &words[..],
            ["test" | "[" | "which" | "type", ..] | ["command", "-v" | "-V", ..]
        );
        tests && !self.words.iter().any(|word| word.substituted)
    }
}

/// The simple commands of a text, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    /// Whether every quote and bracket of a word was closed.
    pub(super) is_whole: bool,
}

/// Reads a command.
pub(super) fn read(text: &str) -> Script {
    let mut reader = Reader {
        text,
        at: 0,
        script: Script { commands: Vec::new(), is_whole: true },
        words: Vec::new(),
        begin: None,
        skips: false,
        nested: false,
    };
    while reader.step() {}
    reader.finish(End::Text);
    reader.script
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    script: Script,
    words: Vec<Word>,
    /// Where the present command begins.
    begin: Option<usize>,
    /// Up to the next operator there is no command.
    skips: bool,
    nested: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn starts(&self, with: &str) -> bool {
        self.text[self.at..].starts_with(with)
    }

    /// Takes one blank, operator, redirection, comment or word.
    fn step(&mut self) -> bool {
        let Some(next) = self.peek() else { return false };
        match next {
            '\n' => self.operator(1, End::Then),
            c if c.is_whitespace() => self.at += c.len_utf8(),
            '#' => {
                let rest = &self.text[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            '&' if self.starts("&>") => self.redirection(),
            '&' if self.starts("&&") => self.operator(2, End::And),
            '|' if self.starts("||") => self.operator(2, End::Other),
            ';' if !self.starts(";;") => self.operator(1, End::Then),
            '&' | '|' | ';' => self.operator(1, End::Other),
            '(' | ')' => {
                self.nested = true;
                self.operator(1, End::Other);
            }
            '<' | '>' => self.redirection(),
            _ => self.word(),
        }
        true
    }

    fn operator(&mut self, bytes: usize, end: End) {
        self.at += bytes;
        self.finish(end);
        self.skips = false;
    }

    fn finish(&mut self, end: End) {
        let words = std::mem::take(&mut self.words);
        if let Some(begin) = self.begin.take() {
            let (at, nested) = (begin..self.at, self.nested);
            self.script.commands.push(Simple { words, at, end, nested });
        } else if let Some(last) = self.script.commands.last_mut()
            && end == End::Other
        {
            // `; &` and the like are no list that anything may be taken out of.
            last.end = End::Other;
        }
    }

    /// `>`, `2>&1`, `<<EOF` …: the operator and the word behind it.
    fn redirection(&mut self) {
        let operator = |c: char| matches!(c, '<' | '>' | '&' | '|');
        self.begin.get_or_insert(self.at);
        let rest = &self.text[self.at..];
        // What follows here-documents is not read.
        self.script.is_whole &= !rest.starts_with("<<");
        self.at += rest.find(|c| !operator(c)).unwrap_or(rest.len());
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !matches!(c, ' ' | '\t')).unwrap_or(rest.len());
        if self.peek().is_some_and(|c| !matches!(c, '\n' | ';' | '(' | ')') && !operator(c)) {
            self.text_of_word();
        }
    }

    fn word(&mut self) {
        let begin = self.at;
        let word = self.text_of_word();
        let plain = &self.text[begin..self.at];
        if self.skips {
            return;
        }
        // The number in `2>&1` belongs to the redirection.
        let number = plain.bytes().all(|byte| byte.is_ascii_digit());
        if number && matches!(self.peek(), Some('<' | '>')) {
            self.begin.get_or_insert(begin);
            return;
        }
        if self.words.is_empty() && self.begin.is_none() {
            if KEYWORDS.contains(&plain) || plain == "}" {
                self.nested = true;
                return;
            }
            if COMPOUND_KEYWORDS.contains(&plain) {
                (self.nested, self.skips) = (true, true);
                return;
            }
        }
        self.begin.get_or_insert(begin);
        self.words.push(word);
    }

    /// Up to the next blank or operator outside of quotes.
    fn text_of_word(&mut self) -> Word {
        let mut word = Word { text: String::new(), substituted: false };
        while let Some(next) = self.peek() {
            match next {
                c if c.is_whitespace() || matches!(c, '&' | '|' | ';' | '<' | '>' | '(' | ')') => {
                    break;
                }
                '\'' => {
                    let rest = &self.text[self.at + 1..];
                    let end = rest.find('\'');
                    self.script.is_whole &= end.is_some();
                    word.text.push_str(&rest[..end.unwrap_or(rest.len())]);
                    self.at += 1 + end.map_or(rest.len(), |end| end + 1);
                }
                '"' => self.double_quoted(&mut word),
                _ => self.unquoted(next, &mut word),
            }
        }
        word
    }

    fn double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        while let Some(next) = self.peek() {
            if next == '"' {
                self.at += 1;
                return;
            }
            self.unquoted(next, word);
        }
        self.script.is_whole = false;
    }

    /// A character that may be escaped, or begin a substitution.
    fn unquoted(&mut self, next: char, word: &mut Word) {
        let end = match next {
            '\\' => {
                self.at += 1;
                let Some(escaped) = self.peek() else {
                    self.script.is_whole = false;
                    return;
                };
                word.text.push(escaped);
                self.at += escaped.len_utf8();
                return;
            }
            '`' => {
                word.substituted = true;
                self.text[self.at + 1..].find('`').map(|end| self.at + 1 + end + 1)
            }
            '$' if self.starts("$(") => {
                word.substituted = true;
                self.closing('(', ')')
            }
            '$' if self.starts("${") => {
                word.substituted = true;
                self.closing('{', '}')
            }
            '$' if self.starts("$[") => self.closing('[', ']'),
            _ => Some(self.at + next.len_utf8()),
        };
        self.script.is_whole &= end.is_some();
        let end = end.unwrap_or(self.text.len());
        word.text.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    /// Behind the bracket that closes the one at the next character but one; quotes hide brackets.
    fn closing(&self, open: char, close: char) -> Option<usize> {
        let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
        for (offset, character) in self.text[self.at..].char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if character == '\\' && quote != Some('\'') {
                escaped = true;
            } else if let Some(quoting) = quote {
                if character == quoting {
                    quote = None;
                }
            } else if matches!(character, '\'' | '"') {
                quote = Some(character);
            } else if character == open {
                depth += 1;
            } else if character == close {
                depth -= 1;
                if depth == 0 {
                    return Some(self.at + offset + 1);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let join = |simple: &Simple| {
            let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
            words.join(" ")
        };
        read(text).commands.iter().map(join).collect()
    }

    #[test]
    fn a_command_is_its_simple_commands_without_keywords_and_redirections() {
        for (text, expected) in [
            ("a 'b c' \"d\\\"e\" f\\ g", &["a b c d\"e f g"][..]),
            ("a >/dev/null 2>&1 && b 2 > x; c | d & e", &["a", "b 2", "c", "d", "e"]),
            (
                "if [ -x /a ] && [ $(date +%d) -le 7 ]; then b; fi",
                &["[ -x /a ]", "[ $(date +%d) -le 7 ]", "b"],
            ),
            ("for i in 1 2; do x $i; done # and so on; y", &["x $i"]),
            ("{ a; } || ( cd / && b )", &["a", "cd /", "b"]),
            ("x=$({ a || b; } | sed 's/)//'); c &>y", &["x=$({ a || b; } | sed 's/)//')", "c"]),
            ("a `b c` ${d:-e f} $[ 1 + 2 ]", &["a `b c` ${d:-e f} $[ 1 + 2 ]"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
            assert!(read(text).is_whole, "{text}");
        }
    }

    #[test]
    fn the_place_of_a_command_reaches_to_the_end_of_its_operator() {
        let text = "a -b && c >d; e";
        let script = read(text);
        let places: Vec<&str> =
            script.commands.iter().map(|simple| &text[simple.at.clone()]).collect();
        assert_eq!(places, ["a -b &&", "c >d;", "e"]);
        let ends: Vec<End> = script.commands.iter().map(|simple| simple.end).collect();
        assert_eq!(ends, [End::And, End::Then, End::Text]);
    }

    #[test]
    fn what_is_not_closed_is_not_whole() {
        for text in ["'a", "\"a", "a $(b", "a `b", "${a", "a \\", "cat <<E", "é \"$("] {
            assert!(!read(text).is_whole, "{text}");
        }
    }
}
