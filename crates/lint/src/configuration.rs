//! `[tool.plimsoll.lint]` in the nearest `pyproject.toml`. An unknown key is an error: a setting
//! that does nothing is worse.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What a project sets for itself; the command line wins over it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Only these rules.
    pub select: Vec<String>,
    /// Without these rules.
    pub ignore: Vec<String>,
    /// The pedantic rules too.
    pub pedantic: bool,
    /// Files and folders to leave out: names, or paths from the file's folder, with `*` for any run
    /// of characters.
    pub exclude: Vec<String>,
    /// The folder of the file, from which `exclude` counts.
    #[serde(skip)]
    pub folder: PathBuf,
}

#[derive(Deserialize)]
struct Project {
    tool: Option<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    plimsoll: Option<Plimsoll>,
}

#[derive(Deserialize)]
struct Plimsoll {
    lint: Option<Configuration>,
}

impl Configuration {
    /// The settings in the nearest `pyproject.toml` that has some, from a folder upwards; the
    /// defaults if there is none.
    pub fn nearest(from: &Path) -> Result<Configuration, String> {
        let from = std::path::absolute(from).unwrap_or_else(|_| from.to_path_buf());
        for folder in from.ancestors() {
            let path = folder.join("pyproject.toml");
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            match Configuration::parse(&text) {
                Ok(Some(found)) => {
                    return Ok(Configuration { folder: folder.to_path_buf(), ..found });
                }
                Ok(None) => {}
                Err(message) => return Err(format!("{}: {message}", path.display())),
            }
        }
        Ok(Configuration { folder: from, ..Configuration::default() })
    }

    /// The settings in the text of a `pyproject.toml`, if it has any.
    ///
    /// ```
    /// use plimsoll_lint::Configuration;
    ///
    /// let text = "[tool.plimsoll.lint]\nignore = [\"create-then-move\"]\n";
    /// assert_eq!(Configuration::parse(text).unwrap().unwrap().ignore, ["create-then-move"]);
    /// ```
    pub fn parse(text: &str) -> Result<Option<Configuration>, String> {
        let project: Project = toml::from_str(text).map_err(|error| error.message().to_string())?;
        Ok(project.tool.and_then(|tool| tool.plimsoll).and_then(|plimsoll| plimsoll.lint))
    }

    /// Whether a path is left out.
    pub fn excludes(&self, path: &Path) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let full = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let inside = full.strip_prefix(&self.folder).unwrap_or(&full);
        let whole = inside.to_string_lossy().replace('\\', "/");
        self.exclude.iter().any(|pattern| {
            let pattern = pattern.trim_end_matches('/');
            let part = |part: &std::ffi::OsStr| matches(pattern, &part.to_string_lossy());
            inside.iter().any(part)
                || matches(pattern, &whole)
                || inside.ancestors().any(|folder| matches(pattern, &folder.to_string_lossy()))
        })
    }
}

/// `*` stands for any run of characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_and_other_tools_are_left_alone() {
        assert!(
            Configuration::parse("[tool.plimsoll.lint]\nselct = []").unwrap_err().contains("selct")
        );
        assert_eq!(Configuration::parse("[tool.ruff]\nx = 1").unwrap(), None);
        assert!(Configuration::parse("[tool").is_err());
    }

    #[test]
    fn patterns_match_names_and_paths() {
        let exclude = ["build", "*_pb2.py", "docs/old*"].map(String::from).to_vec();
        let configuration =
            Configuration { exclude, folder: "/p".into(), ..Configuration::default() };
        for out in ["/p/build/x.py", "/p/a/m_pb2.py", "/p/docs/old/x.py"] {
            assert!(configuration.excludes(Path::new(out)), "{out}");
        }
        for kept in ["/p/builder/x.py", "/p/docs/new.py"] {
            assert!(!configuration.excludes(Path::new(kept)), "{kept}");
        }
    }
}
