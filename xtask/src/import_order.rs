//! The order of imports: `docs/architecture.md` lists the modules of a crate, and each may import
//! only from those before it. The list is a fenced block with the words `imports CRATE`. Today's
//! breaches are in the ratchets; tests may import what they like.

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
        for module in sources.iter().map(|(path, _)| module_of(path)).collect::<BTreeSet<_>>() {
            if module != "lib" && !order.contains(&module) {
                broken.push(format!("{folder}{module}: {MAP} has no place for it in the imports"));
            }
        }
        found.insert(name.to_string(), against(&order, &sources));
    }
    found
}

/// The crates that have an order, and their modules, what comes first first.
fn orders(map: &str) -> Vec<(&str, Vec<&str>)> {
    let blocks = map.split("```imports ").skip(1);
    let named = blocks.filter_map(|block| block.split_once('\n'));
    named
        .map(|(name, rest)| {
            let list = rest.split("```").next().unwrap_or_default();
            (name.trim(), list.split_whitespace().collect())
        })
        .collect()
}

/// `ops/unary.rs` -> `ops`, `launch.rs` -> `launch`.
fn module_of(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Each import against the order once, as `module -> imported`.
fn against(order: &[&str], sources: &[(&str, &str)]) -> Vec<String> {
    let root = sources.iter().find(|(path, _)| *path == "lib.rs").map_or("", |(_, text)| text);
    let at = |module: &str| order.iter().position(|known| *known == module);
    let mut pairs = BTreeSet::new();
    for (path, text) in sources {
        let module = module_of(path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for name in imported(code) {
            // What the root exports counts as the module that it comes from.
            let from = if at(name).is_some() { name } else { exporter(root, name).unwrap_or(name) };
            if let (Some(own), Some(other)) = (at(module), at(from))
                && other > own
            {
                pairs.insert(format!("{module} -> {from}"));
            }
        }
    }
    pairs.into_iter().collect()
}

/// The first name after each `crate::`, those in braces too; comments left out.
fn imported(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let line = code[..start].rsplit('\n').next().unwrap_or_default();
        let rest = &code[start + "crate::".len()..];
        if line.trim_start().starts_with("//") || line.ends_with('$') {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.push(word(rest)),
        }
    }
    names
}

/// The first names of a list in braces, without those in inner braces.
fn first_names(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut names) = (0usize, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.push(word(list[start..at].trim_start()));
                if letter == '}' {
                    break;
                }
                start = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The module that the root exports `name` from.
fn exporter<'a>(root: &'a str, name: &str) -> Option<&'a str> {
    let exports = root.split("use ").skip(1).filter_map(|rest| rest.split(';').next());
    let names = |list: &str| {
        list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == name)
    };
    exports.filter_map(|export| export.split_once("::")).find(|(_, list)| names(list)).map(|e| e.0)
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
