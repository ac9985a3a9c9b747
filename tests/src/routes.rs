//! The routes of the pages, as their source has them.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A route whose path is a constant.
struct ConstantPath {
    name: &'static str,
    path: &'static str,
    /// Where it is declared.
    file: &'static str,
}

static CONSTANT_PATHS: [ConstantPath; 3] = [
    ConstantPath {
        name: "provider::PATH",
        path: "/log-in/oidc",
        file: "server/src/pages/log_in/provider.rs",
    },
    ConstantPath {
        name: "CALLBACK_PATH",
        path: "/log-in/oidc/callback",
        file: "server/src/access/provider/mod.rs",
    },
    ConstantPath {
        name: "set_up::PATH",
        path: "/set-up",
        file: "server/src/pages/log_in/set_up.rs",
    },
];

impl ConstantPath {
    /// Finds the constant by the expression in the source, and checks that it is declared with this path.
    fn find(expression: &str) -> Option<&'static str> {
        let found = CONSTANT_PATHS.iter().find(|it| it.name == expression)?;
        let declared = format!("PATH: &str = \"{}\"", found.path);
        let source = text(&Path::new(ROOT).join(found.file));
        assert!(source.contains(&declared), "{} has another path now", found.name);
        Some(found.path)
    }
}

/// The text of a file of the repository.
fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// All sources in a folder, and in those below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The arguments of a call: what stands before its closing parenthesis.
fn arguments(call: &str) -> &str {
    let mut depth = 1;
    for (at, character) in call.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &call[..at];
        }
    }
    panic!("a call without an end: {call}")
}

/// The paths of all routes of pages that answer a method, `get` or `post`.
///
/// # Panics
///
/// A route has a path that is neither a literal nor a constant that is listed here, or answers neither method.
pub fn routes(method: &str) -> Vec<String> {
    let mut found = Vec::new();
    for file in sources(&Path::new(ROOT).join("server/src/pages")) {
        for route in text(&file).split(".route(").skip(1) {
            let Some((path, handlers)) = arguments(route).split_once(',') else {
                panic!("{}: a route without handlers: {route}", file.display())
            };
            let path = path.trim();
            let literal = path.strip_prefix('"').and_then(|path| path.strip_suffix('"'));
            let known = literal.or_else(|| ConstantPath::find(path));
            let known = known.unwrap_or_else(|| {
                panic!("{}: the path {path} is no literal, and not listed here", file.display())
            });
            let answers = |method: &str| handlers.contains(&format!("{method}("));
            assert!(answers("get") || answers("post"), "{known} answers another method");
            if answers(method) {
                found.push(known.to_owned());
            }
        }
    }
    found.sort();
    found
}
