//! Every file and function that the documentation names exists. Looked at are words in backticks
//! outside of fenced blocks: paths (`storage/claim.rs`, `ops/`, `lock.rs`), which may leave out
//! their beginning, and names with their owner (`dispatch::apply`, `Arena::allocate`). Bare names
//! are left alone: too many of them are ordinary words.

use std::collections::BTreeSet;

/// Endings of files that are always meant to be in the tree; others only if a folder stands before
/// them.
const SOURCES: &[&str] = &[".rs", ".cu", ".cuh", ".js"];
const OTHERS: &[&str] = &[".py", ".md", ".toml", ".css", ".html", ".json", ".pickle"];

/// Folders that are made, not kept.
const MADE: &[&str] = &["target/", "cubins/"];

/// Adds what the documentation names and the tree lacks.
pub(crate) fn check(files: &[(String, String)], broken: &mut Vec<String>) {
    let tree = Tree::of(files);
    let documents = files.iter().filter(|(path, _)| {
        let in_docs = path.starts_with("docs/") && !path.starts_with("docs/lint/");
        path.ends_with(".md") && (in_docs || !path.contains('/'))
    });
    for (path, text) in documents {
        for (line, word) in quoted(text) {
            if let Some(what) = tree.lacks(word) {
                broken.push(format!("{path}:{line}: `{word}`: {what}"));
            }
        }
    }
}

/// Words in backticks outside of fenced blocks, with the numbers of their lines.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut fenced) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            words.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word)));
        }
    }
    words
}

/// What can be named.
struct Tree<'a> {
    files: &'a [(String, String)],
    folders: BTreeSet<&'a str>,
}

impl<'a> Tree<'a> {
    fn of(files: &'a [(String, String)]) -> Tree<'a> {
        let ends = |path: &'a str| path.match_indices('/').map(move |(at, _)| &path[..at]);
        Tree { files, folders: files.iter().flat_map(|(path, _)| ends(path)).collect() }
    }

    /// Why `word` names something that is not there; nothing if it names something else.
    fn lacks(&self, word: &str) -> Option<String> {
        let word = word.trim_end_matches("()");
        if is_path(word) {
            let path = word.split(':').next().unwrap_or_default();
            return (!self.has_path(path)).then(|| "there is no such file or folder".to_string());
        }
        let (owner, name) = owned(word)?;
        let owners: Vec<&str> = self.sources().filter(|f| owns(*f, owner)).map(|f| f.1).collect();
        if owners.is_empty() {
            return Some(format!("there is no module or type `{owner}`"));
        }
        let known = owners.iter().any(|text| defines(text, name));
        (!known).then(|| format!("`{owner}` has no `{name}`"))
    }

    fn has_path(&self, path: &str) -> bool {
        let matches = |known: &str| {
            known.strip_suffix(path).is_some_and(|start| start.is_empty() || start.ends_with('/'))
        };
        match path.strip_suffix('/') {
            Some(folder) => self.folders.iter().any(|known| {
                known.strip_suffix(folder).is_some_and(|s| s.is_empty() || s.ends_with('/'))
            }),
            None => self.files.iter().any(|(known, _)| matches(known)),
        }
    }

    fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(|(path, _)| path.ends_with(".rs"))
    }
}

fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    if !word.chars().all(plain) || word.starts_with(['/', '-', '.']) || word.contains("://") {
        return false;
    }
    // NAME and the like stand for something else.
    let stands_for = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
    let path = word.split(':').next().unwrap_or_default();
    if path.split(['/', '.']).any(stands_for) || MADE.iter().any(|made| path.starts_with(made)) {
        return false;
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
    path.ends_with('/') || ends(SOURCES) || path.contains('/') && ends(OTHERS)
}

/// The last two parts of a name with an owner.
fn owned(word: &str) -> Option<(&str, &str)> {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let parts: Vec<&str> = word.split("::").collect();
    let [.., owner, name] = parts[..] else { return None };
    (parts.iter().all(|part| is_name(part)) && parts[0] != "std").then_some((owner, name))
}

/// Whether a source file is the module `owner`, holds it, or speaks of the type `owner`.
fn owns((path, text): (&str, &str), owner: &str) -> bool {
    let mut parts = path.trim_end_matches(".rs").rsplit('/');
    let stem = parts.next().unwrap_or_default();
    let folder = parts.next().unwrap_or_default();
    let is_module = stem == owner || stem == "mod" && folder == owner;
    let crate_name = owner.strip_prefix("plimsoll_").unwrap_or(owner);
    let is_crate = stem == "lib" && path.starts_with(&format!("crates/{crate_name}/src/"));
    is_module || is_crate || defines(text, owner) || implements(text, owner)
}

fn implements(text: &str, owner: &str) -> bool {
    let heads = text.lines().filter(|line| line.starts_with("impl"));
    heads.into_iter().any(|head| words(head).any(|word| word == owner))
}

/// Whether `name` is declared in the file, exported through it, or is a variant or field at a
/// line's start.
fn defines(text: &str, name: &str) -> bool {
    const DECLARES: &[&str] =
        &["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules"];
    text.lines().filter(|line| line.contains(name)).any(|line| {
        let line = line.trim_start();
        if line.starts_with("//") {
            return false;
        }
        let mut last = "";
        let declared = words(line).any(|word| {
            let hit = word == name && DECLARES.contains(&last);
            last = word;
            hit
        });
        let first = words(line).find(|word| !["pub", "crate"].contains(word));
        // A `use` over several lines has lines of names alone.
        let in_list = |c: char| c.is_alphanumeric() || "_, {}".contains(c);
        let exported = line.contains("use ") || line.chars().all(in_list);
        declared || first == Some(name) || exported && words(line).any(|word| word == name)
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<(String, String)> {
        let file = |path: &str, text: &str| (path.to_string(), text.to_string());
        vec![
            file("crates/tensor/src/storage/claim.rs", "//! Claims.\npub(crate) fn claim() {}\n"),
            file(
                "crates/memory/src/arena.rs",
                "pub struct Arena;\nimpl Arena {\n    pub fn allocate(&self) {}\n}\n",
            ),
            file("crates/memory/src/state.rs", "pub enum Event {\n    Alloc,\n}\n"),
        ]
    }

    #[test]
    fn what_exists_is_found() {
        let files = tree();
        let tree = Tree::of(&files);
        for word in [
            "storage/claim.rs",
            "claim.rs",
            "claim.rs:2",
            "tensor/src/storage/",
            "claim::claim",
            "Arena::allocate",
            "Arena::allocate()",
            "Event::Alloc",
            // No names of files or functions.
            "cargo xtask test",
            "train.py",
            "docs/lint/NAME.md",
            "target/debug/x.rs",
            "std::mem::drop",
            "plimsoll view",
        ] {
            assert_eq!(tree.lacks(word), None, "{word}");
        }
    }

    #[test]
    fn what_does_not_exist_is_told() {
        let files = tree();
        let tree = Tree::of(&files);
        for word in [
            "aim.rs",
            "storage/pin.rs",
            "pin/",
            "claim::drop",
            "Arena::free",
            "Area::allocate",
            "x/y.py",
        ] {
            assert!(tree.lacks(word).is_some(), "{word}");
        }
    }

    #[test]
    fn fenced_blocks_are_left_alone() {
        let text = "`a.rs` and `b`\n```\n`c.rs`\n```\n`d.rs`\n";
        assert_eq!(quoted(text), [(1, "a.rs"), (1, "b"), (5, "d.rs")]);
    }
}
