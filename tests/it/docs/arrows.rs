//! Arrows only point down: between crates by their levels, and inside a crate there is no circle between folders.
//!
//! The modules of a crate are read from its files, and what each uses from its `use` lines and its paths. Two modules
//! beside each other, one of which has a folder of its own, may not use one another, directly or in a circle; what a module
//! and the modules inside it use of one another is one part's own matter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{files, text};

/// Each crate's folder and its level. A crate uses crates of lower levels only.
const LEVELS: [(&str, u8); 14] = [
    ("client/rust", 0),
    ("guard", 1),
    ("shared/model", 0),
    ("shared/tls", 0),
    ("shared/store", 1),
    ("shared/broker", 1),
    ("shared/outbound", 1),
    ("shared/service", 1),
    ("shared/engine", 2),
    ("shared/operations", 2),
    ("scheduler", 3),
    ("worker", 3),
    ("server", 3),
    ("console", 4),
];

/// A module by its path from the crate's root, which is empty.
type Module = Vec<String>;

/// The package of a crate's folder.
fn package(folder: &str) -> String {
    let name = match folder {
        "client/rust" => "client",
        other => other.rsplit('/').next().unwrap_or(other),
    };
    format!("sexton-{name}")
}

#[test]
fn crates_use_only_crates_of_lower_levels() {
    let level_of: BTreeMap<String, u8> =
        LEVELS.iter().map(|(folder, level)| (package(folder), *level)).collect();
    let mut arrows = 0;
    for manifest in files("Cargo.toml") {
        let folder = manifest.parent().and_then(Path::to_str).unwrap_or_default();
        let known = LEVELS.iter().find(|(known, _)| *known == folder);
        assert!(known.is_some() || !folder.starts_with("shared/"), "give {folder} a level");
        let Some((_, level)) = known else { continue };
        let source = text(&manifest);
        let dependencies = source.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if let Some(used) = level_of.get(name) {
                arrows += 1;
                assert!(used < level, "{folder} (level {level}) uses {name} (level {used})");
            }
        }
    }
    assert!(arrows >= 12, "only {arrows} arrows between crates were found");
}

#[test]
fn no_modules_of_different_folders_use_one_another_in_a_circle() {
    let mut arrows = 0;
    for (folder, _) in LEVELS {
        let modules = modules_of(folder);
        let edges = sibling_edges(&modules);
        arrows += edges.values().map(BTreeSet::len).sum::<usize>();
        for circle in circles(&edges) {
            // Files side by side in one folder are one part.
            let has_folder = circle.iter().any(|module| is_folder(&modules, module));
            let uses: Vec<String> = circle
                .iter()
                .flat_map(|from| edges.get(from).into_iter().flatten().map(move |to| (from, to)))
                .filter(|(_, to)| circle.contains(*to))
                .map(|(from, to)| format!("{} uses {}", from.join("::"), to.join("::")))
                .collect();
            assert!(!has_folder, "a circle in {folder}: {uses:#?}");
        }
    }
    assert!(arrows > 300, "only {arrows} uses between modules were found");
}

/// The modules of a crate, with what they say; unit tests left out.
fn modules_of(folder: &str) -> BTreeMap<Module, String> {
    let source = Path::new(folder).join("src");
    let mut modules = BTreeMap::new();
    for file in files(".rs").into_iter().filter(|file| file.starts_with(&source)) {
        let path = file.strip_prefix(&source).expect("filtered by it").with_extension("");
        let mut module: Module =
            path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
            module.pop();
        }
        let is_judged = !matches!(module.first().map(String::as_str), Some("main" | "bin"))
            && !module.iter().any(|part| part == "tests");
        if is_judged {
            modules.insert(module, code_of(&text(&file)));
        }
    }
    modules
}

/// A file without comments, texts and its unit tests.
fn code_of(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    // A quotation mark as a character begins no text.
    let source = source.replace("'\"'", "' '");
    let mut code = String::with_capacity(source.len());
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                while let Some(inside) = characters.next().filter(|inside| *inside != '"') {
                    if inside == '\\' {
                        characters.next();
                    }
                }
            }
            '/' if characters.peek() == Some(&'/') => {
                while characters.next_if(|inside| *inside != '\n').is_some() {}
            }
            _ => code.push(character),
        }
    }
    code
}

fn is_folder(modules: &BTreeMap<Module, String>, module: &Module) -> bool {
    modules.keys().any(|other| other.len() > module.len() && other.starts_with(module))
}

/// Which modules use which, lifted to the two that stand beside each other.
fn sibling_edges(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (from, code) in modules {
        for path in paths(code) {
            let Some(to) = resolve(modules, from, &path) else { continue };
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if common < from.len() && common < to.len() {
                let (from, to) = (from[..=common].to_vec(), to[..=common].to_vec());
                edges.entry(from).or_default().insert(to);
            }
        }
    }
    edges
}

/// All paths of a file: those of its `use` lines, and those that begin with `crate` or `super`.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = String::new();
    for (index, part) in code.split("use ").enumerate() {
        // The first part comes before any `use`.
        match part.split_once(';').filter(|_| index > 0) {
            Some((tree, after)) if !tree.contains(['(', '=']) => {
                expand(&tree.split_whitespace().collect::<Vec<_>>().join(" "), "", &mut paths);
                rest.push_str(after);
            }
            _ => rest.push_str(part),
        }
    }
    let is_path = |character: char| character.is_alphanumeric() || "_:".contains(character);
    let words = rest.split(|character: char| !is_path(character));
    paths.extend(words.filter(|word| word.contains("::")).map(str::to_owned));
    paths
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expand(tree: &str, before: &str, paths: &mut Vec<String>) {
    let Some((stem, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        paths.push(format!("{before}{path}"));
        return;
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut start) = (0, 0);
    for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inside[start..at].trim();
                if !part.is_empty() {
                    expand(part, &format!("{before}{}", stem.trim()), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The module that a path leads into, as seen from `from`.
fn resolve(modules: &BTreeMap<Module, String>, from: &Module, path: &str) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut module = from.clone();
    match *parts.peek()? {
        "crate" => {
            parts.next();
            module.clear();
        }
        "self" => drop(parts.next()),
        "super" => {
            while parts.next_if_eq(&"super").is_some() {
                module.pop();
            }
        }
        child => {
            module.push(child.to_owned());
            if !modules.contains_key(&module) {
                return None;
            }
            parts.next();
        }
    }
    for part in parts {
        module.push(part.to_owned());
        if !modules.contains_key(&module) {
            module.pop();
            break;
        }
    }
    (module != *from).then_some(module)
}

/// The sets of modules that reach one another.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let mut seen: BTreeSet<Module> = BTreeSet::new();
        let mut next = vec![from.clone()];
        while let Some(module) = next.pop() {
            for to in edges.get(&module).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|module| (module, reach(module))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (module, from_here) in &reached {
        let circle: BTreeSet<Module> = from_here
            .iter()
            .filter(|other| reached.get(other).is_some_and(|there| there.contains(*module)))
            .cloned()
            .collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn a_circle_between_folders_is_found() {
    let code = |text: &str| code_of(text);
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    let modules = BTreeMap::from([
        (module("a"), String::new()),
        (module("a::x"), code("use crate::b::{self, y::Z};\n")),
        (module("b"), code("mod y;\n// use crate::c;\n")),
        (module("b::y"), code("fn f() { super::super::c::g(\"crate::a\") }\n")),
        (module("c"), code("use super::a::x as z;\n")),
    ]);
    let edges = sibling_edges(&modules);
    let all: BTreeSet<Module> = ["a", "b", "c"].map(module).into();
    assert_eq!(circles(&edges), [all]);
}
