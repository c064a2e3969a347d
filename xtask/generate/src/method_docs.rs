//! The first sentence of a Rust method's documentation, which is what Python says of it too. Read
//! from the sources: methods are written out or declared by an entry of a macro, with their names
//! spelled in both.

use std::collections::BTreeMap;
use std::path::Path;

use crate::root;

/// Where methods of tensors are declared, in these folders and those inside them.
const FOLDERS: [&str; 2] = ["crates/tensor/src/api", "crates/tensor/src/ops"];

/// The first sentence, without its full stop, of every documented method.
pub(crate) fn first_sentences() -> Result<BTreeMap<String, String>, String> {
    let mut sentences = BTreeMap::new();
    for folder in FOLDERS {
        read_folder(&root().join(folder), &mut sentences)?;
    }
    Ok(sentences)
}

fn read_folder(folder: &Path, sentences: &mut BTreeMap<String, String>) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, e))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_folder(&path, sentences)?;
        } else {
            let text = std::fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
            read(&text, sentences);
        }
    }
    Ok(())
}

fn read(text: &str, sentences: &mut BTreeMap<String, String>) {
    let mut doc: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.trim());
        } else if !line.starts_with("#[") {
            if let (Some(name), false) = (declared(line), doc.is_empty()) {
                sentences.entry(name.to_string()).or_insert_with(|| sentence(&doc));
            }
            doc.clear();
        }
    }
}

/// The method that a line declares: `pub fn exp(&self)`, or `exp, exp_, exp_out => ..` in a macro.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub fn ").unwrap_or(line);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, after) = rest.split_at(end);
    let is_declared = match rest.len() == line.len() {
        true => after.starts_with(',') || after.starts_with(" =>"),
        false => after.starts_with(['(', '<']),
    };
    (is_declared && !name.is_empty()).then_some(name)
}

/// The first sentence of the first paragraph, as plain text.
fn sentence(doc: &[&str]) -> String {
    let paragraph: Vec<&str> = doc.iter().take_while(|line| !line.is_empty()).copied().collect();
    let paragraph = paragraph.join(" ").replace("[`", "`").replace("`]", "`");
    let first = paragraph.split(". ").next().unwrap_or_default();
    first.trim_end_matches('.').replace("Tensor::", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_entries_of_macros_are_found() {
        let text = "
unary! {
    /// The exponential of
    /// each element. And more.
    ///
    /// ```
    /// let x = 1;
    /// ```
    exp, exp_, exp_out => EXP: FLOAT {
        saves: x,
    }
}
impl Tensor {
    /// As [`Tensor::exp`], of two.
    #[track_caller]
    pub fn pow<T>(&self) {}
    /// Not a method.
    let x = 1;
    pub fn undocumented(&self) {}
}";
        let mut found = BTreeMap::new();
        read(text, &mut found);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(
            found,
            [("exp", "The exponential of each element"), ("pow", "As `exp`, of two")]
        );
    }
}
