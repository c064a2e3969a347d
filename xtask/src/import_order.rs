//! The order of imports: `docs/architecture.md` lists the modules of a crate, and each may import
//! only from those before it. The list is a fenced block with the words `imports CRATE`. A line
//! `folder: a b c` orders the files of a folder too; a folder without such a line is one place.
//! Modules of one line in parentheses are a knot: types that are made of each other.
//! Today's breaches are in the ratchets; tests may import what they like.

use std::collections::{BTreeMap, BTreeSet};

const MAP: &str = "docs/architecture.md";

/// Pairs of modules, by crate, whose import goes against the order. A module that the order lacks
/// breaks a rule at once.
pub(crate) fn breaches(
    files: &[(String, String)],
    broken: &mut Vec<String>,
) -> BTreeMap<String, Vec<String>> {
    let map = files.iter().find(|(path, _)| path == MAP).map_or("", |(_, text)| text);
    let mut found = BTreeMap::new();
    for (name, order) in orders(map) {
        let folder = format!("crates/{name}/src/");
        let sources: Vec<(&str, &str)> = files
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(&folder)?, text.as_str())))
            .filter(|(path, _)| path.ends_with(".rs"))
            .collect();
        let modules = sources.iter().map(|(path, _)| order.module_of(path));
        for module in modules.collect::<BTreeSet<_>>() {
            if module != "lib" && order.at(&module).is_none() {
                broken.push(format!("{folder}{module}: {MAP} has no place for it in the imports"));
            }
        }
        found.insert(name.to_string(), against(&order, &sources));
    }
    found
}

/// The modules of a crate, what comes first first: `launch`, or `book/event` in a folder whose
/// files are ordered; with the line that each stands in, if that is a knot.
struct Order(Vec<(String, Option<usize>)>);

/// The crates that have an order.
fn orders(map: &str) -> Vec<(&str, Order)> {
    let blocks = map.split("```imports ").skip(1);
    let named = blocks.filter_map(|block| block.split_once('\n'));
    named
        .map(|(name, rest)| {
            let list = rest.split("```").next().unwrap_or_default();
            (name.trim(), Order(list.lines().enumerate().flat_map(listed).collect()))
        })
        .collect()
}

/// The modules of one line. The folder itself, which is its `mod.rs`, stands behind its files.
fn listed((number, line): (usize, &str)) -> Vec<(String, Option<usize>)> {
    if let Some(knot) = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return knot.split_whitespace().map(|name| (name.to_string(), Some(number))).collect();
    }
    let Some((folder, files)) = line.split_once(':') else {
        return line.split_whitespace().map(|name| (name.to_string(), None)).collect();
    };
    let files = files.split_whitespace().map(|file| (format!("{folder}/{file}"), None));
    files.chain([(folder.to_string(), None)]).collect()
}

impl Order {
    fn at(&self, module: &str) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == module)
    }

    /// Whether the modules at two places are of one knot.
    fn are_tied(&self, one: usize, other: usize) -> bool {
        self.0[one].1.is_some() && self.0[one].1 == self.0[other].1
    }

    /// Whether the files of a folder have places of their own.
    fn has_files_of(&self, folder: &str) -> bool {
        let inside = |known: &str| known.strip_prefix(folder).is_some_and(|r| r.starts_with('/'));
        self.0.iter().any(|(known, _)| inside(known))
    }

    /// `ops/reduce.rs` -> `ops`, `launch.rs` -> `launch`, `book/event.rs` -> `book/event` where the
    /// files of `book` are ordered.
    fn module_of(&self, path: &str) -> String {
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let mut parts = path.split('/');
        let first = parts.next().unwrap_or_default();
        match parts.next() {
            Some(second) if self.has_files_of(first) => format!("{first}/{second}"),
            _ => first.to_string(),
        }
    }
}

/// Each import against the order once, as `module -> imported`.
fn against(order: &Order, sources: &[(&str, &str)]) -> Vec<String> {
    let root = sources.iter().find(|(path, _)| *path == "lib.rs").map_or("", |(_, text)| text);
    let mut pairs = BTreeSet::new();
    for (path, text) in sources {
        let module = order.module_of(path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for path in imported(code) {
            // What the root exports counts as the module that it comes from.
            let first = path.split('/').next().unwrap_or_default();
            let known = order.at(first).is_some() || order.has_files_of(first);
            let from = if known { Some(path.clone()) } else { exporter(root, first) };
            let Some(from) = from.map(|path| order.module_of(&path)) else { continue };
            // A name that no file of a folder has is the folder's own.
            let from = match order.at(&from) {
                Some(_) => from,
                None => from.split('/').next().unwrap_or_default().to_string(),
            };
            if let (Some(own), Some(other)) = (order.at(&module), order.at(&from))
                && other > own
                && !order.are_tied(own, other)
            {
                pairs.insert(format!("{module} -> {from}"));
            }
        }
    }
    pairs.into_iter().collect()
}

/// The first two names after each `crate::`, as `book/event`, those in braces too; comments left
/// out.
fn imported(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let line = code[..start].rsplit('\n').next().unwrap_or_default();
        let rest = &code[start + "crate::".len()..];
        if line.trim_start().starts_with("//") || line.ends_with('$') {
            continue;
        }
        names.extend(paths(rest, 2));
    }
    names
}

/// The paths that `text` starts with, as far as `depth` names: `a::b::C` is `a/b` at depth 2, and
/// `a::{b::C, D}` is `a/b` and `a/D`.
fn paths(text: &str, depth: usize) -> Vec<String> {
    if let Some(list) = text.strip_prefix('{') {
        return branches(list).into_iter().flat_map(|branch| paths(branch, depth)).collect();
    }
    let name = word(text);
    if name.is_empty() {
        return Vec::new();
    }
    match text[name.len()..].strip_prefix("::") {
        Some(rest) if depth > 1 => match paths(rest, depth - 1) {
            inner if inner.is_empty() => vec![name.to_string()],
            inner => inner.into_iter().map(|path| format!("{name}/{path}")).collect(),
        },
        _ => vec![name.to_string()],
    }
}

/// The members of a list in braces, each with what is in its own braces.
fn branches(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0usize, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                found.push(list[start..at].trim_start());
                if letter == '}' {
                    break;
                }
                start = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The path that the root exports `name` from.
fn exporter(root: &str, name: &str) -> Option<String> {
    let exports = root.split("use ").skip(1).filter_map(|rest| rest.split(';').next());
    let names = |list: &str| {
        list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == name)
    };
    let export =
        exports.filter_map(|export| export.rsplit_once("::")).find(|(_, list)| names(list));
    export.map(|(path, _)| path.split_once("::{").map_or(path, |(path, _)| path).replace("::", "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lower: &str, upper: &str) -> (Vec<String>, Vec<String>) {
        let file = |path: &str, text: &str| (path.to_string(), text.to_string());
        let files = [
            file(MAP, "```imports tensor\nlower\nupper\n```\n"),
            file("crates/tensor/src/lib.rs", "pub use upper::{Tensor, Weak};\n"),
            file("crates/tensor/src/lower/mod.rs", lower),
            file("crates/tensor/src/upper.rs", upper),
        ];
        let mut broken = Vec::new();
        let breaches = breaches(&files, &mut broken).remove("tensor").unwrap();
        (breaches, broken)
    }

    #[test]
    fn only_imports_against_the_order_are_breaches() {
        assert_eq!(found("", "use crate::lower::x;\n"), (vec![], vec![]));
        let upward = vec!["lower -> upper".to_string()];
        assert_eq!(found("use crate::upper::x;\n", "").0, upward);
        assert_eq!(found("use crate::{lower::a, upper::{b, c}};\n", "").0, upward);
        assert_eq!(found("fn a() { crate::upper::b() }\n", "").0, upward);
        assert_eq!(found("use crate::Tensor;\n", "").0, upward, "exported by the root");
        assert_eq!(found("/// See `crate::upper`.\n", "").0, Vec::<String>::new());
        assert_eq!(found("#[cfg(test)]\nmod t { use crate::upper::x; }\n", "").0.len(), 0);
    }

    #[test]
    fn files_of_a_folder_can_have_an_order() {
        let file = |path: &str, text: &str| (path.to_string(), text.to_string());
        let files = [
            file(MAP, "```imports memory\nlow: a b\nhigh\n```\n"),
            file("crates/memory/src/lib.rs", "pub use low::b::{B, C};\n"),
            file("crates/memory/src/low/mod.rs", "use crate::low::a::X;\n"),
            file("crates/memory/src/low/a.rs", "use crate::low::b::Y;\nuse crate::B;\n"),
            file(
                "crates/memory/src/low/b.rs",
                "use crate::low::{a::X, own};\nuse crate::high::x;\n",
            ),
            file("crates/memory/src/high/file.rs", "use crate::low::b::Y;\n"),
        ];
        let breaches = breaches(&files, &mut Vec::new()).remove("memory").unwrap();
        assert_eq!(breaches, ["low/a -> low/b", "low/b -> high", "low/b -> low"]);
    }

    #[test]
    fn a_knot_may_import_itself_and_nothing_above() {
        let file = |path: &str, text: &str| (path.to_string(), text.to_string());
        let files = [
            file(MAP, "```imports tensor\n(a b)\nc\n```\n"),
            file("crates/tensor/src/a.rs", "use crate::b::X;\nuse crate::c::Y;\n"),
            file("crates/tensor/src/b.rs", "use crate::a::Z;\n"),
            file("crates/tensor/src/c.rs", "use crate::{a::Z, b::X};\n"),
        ];
        let breaches = breaches(&files, &mut Vec::new()).remove("tensor").unwrap();
        assert_eq!(breaches, ["a -> c"]);
    }

    #[test]
    fn a_module_without_a_place_is_told() {
        let files = [
            (MAP.to_string(), "```imports tensor\nlower\n```\n".to_string()),
            ("crates/tensor/src/new.rs".to_string(), String::new()),
        ];
        let mut broken = Vec::new();
        breaches(&files, &mut broken);
        assert!(broken[0].contains("crates/tensor/src/new"), "{broken:?}");
    }
}
