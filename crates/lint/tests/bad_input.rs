//! Whole runs over what people have on disk: broken files beside good ones, other encodings,
//! notebooks, links in a circle, deep nesting, and the options of a run. Nothing may panic or hang,
//! and one bad file must not hide the others.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_lint::{Format, Options, Outcome, run};

/// A folder of its own that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("plimsoll-lint-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, change: impl FnOnce(&mut Options)) -> Outcome {
        let mut options = Options { paths: vec![self.0.clone()], ..Options::default() };
        change(&mut options);
        run(&options).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const WRONG: &str = "import torch\nx = torch.zeros(8, 8).cuda()\n";

fn json(outcome: &Outcome) -> Vec<serde_json::Value> {
    serde_json::from_str(&outcome.output).unwrap()
}

#[test]
fn bad_files_are_named_and_good_ones_still_checked() {
    let folder = Folder::new("bad");
    folder.write("good.py", WRONG);
    folder.write("broken.py", "import torch\ndef f(:\n");
    folder.write("two.py", "import torch\nprint \"hello\"\n");
    folder.write("bytes.py", b"import torch\nx = '\xff\xfe'\n");
    folder.write("broken.ipynb", "{\"cells\": [");
    folder.write(
        "deep.py",
        format!("import torch\nx = {}1{}\n", "(".repeat(100_000), ")".repeat(100_000)),
    );
    folder.write("long.py", format!("import torch\nx = 1{}\n", " + 1".repeat(200_000)));
    folder.write("wide.py", format!("import torch\nx = [{}]\n", "1, ".repeat(200_000)));
    folder.write("empty.py", "");
    folder.write("nul.py", "import torch\n\0\n");
    let outcome = folder.run(|options| options.format = Format::Json);
    assert_eq!(outcome.status, 2);
    let found = json(&outcome);
    assert_eq!(found.len(), 1, "{}", outcome.output);
    assert!(found[0]["path"].as_str().unwrap().ends_with("good.py"));
    for (name, text) in [
        ("broken.py:2:7", "syntax error"),
        ("two.py:2:7", "Python 2"),
        ("bytes.py", "not UTF-8"),
        ("broken.ipynb", "not a notebook"),
        ("deep.py", "nested"),
        ("long.py", "nested"),
    ] {
        let line = outcome.errors.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.contains(text)), "{name}: {}", outcome.errors);
    }
    for fine in ["wide.py", "empty.py", "good.py"] {
        assert!(!outcome.errors.contains(fine), "{fine}: {}", outcome.errors);
    }
}

#[test]
fn a_missing_path_is_a_failure_and_a_clean_one_is_not() {
    let folder = Folder::new("missing");
    folder.write("clean.py", "import torch\n");
    assert_eq!(folder.run(|_| ()).status, 0);
    let outcome = folder.run(|options| options.paths.push(folder.0.join("absent.py")));
    assert_eq!(outcome.status, 2);
    assert!(outcome.errors.contains("absent.py"), "{}", outcome.errors);
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_end() {
    let folder = Folder::new("links");
    folder.write("a/x.py", WRONG);
    std::os::unix::fs::symlink(&folder.0, folder.0.join("a/up")).unwrap();
    std::os::unix::fs::symlink("self.py", folder.0.join("self.py")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("a/x.py"), folder.0.join("link.py")).unwrap();
    let outcome = folder.run(|options| options.format = Format::Json);
    // The file and the link to it; the circle is not entered.
    assert_eq!((outcome.status, json(&outcome).len()), (1, 2), "{}", outcome.output);
}

#[test]
fn encodings_that_python_reads_are_read() {
    let folder = Folder::new("encodings");
    folder.write(
        "latin.py",
        b"# -*- coding: latin-1 -*-\nimport torch\nname = '\xe9'; x = torch.zeros(8, 8).cuda()\n",
    );
    folder.write("mark.py", b"\xef\xbb\xbfimport torch\nx = torch.zeros(8, 8).cuda()\n");
    let found = json(&folder.run(|options| options.format = Format::Json));
    let places: Vec<_> = found
        .iter()
        .map(|f| (f["line"].as_u64().unwrap(), f["column"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(3, 17), (2, 5)]);
}

#[test]
fn objects_have_exactly_the_promised_keys() {
    let folder = Folder::new("keys");
    folder.write("x.py", WRONG);
    folder.write("n.ipynb", r#"{"cells": [{"cell_type": "code", "source": "import torch\nx = torch.zeros(8, 8).cuda()"}]}"#);
    let found = json(&folder.run(|options| options.format = Format::Json));
    let keys = |at: usize| found[at].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let plain = [
        "advice",
        "code",
        "column",
        "end_column",
        "end_line",
        "fixable",
        "line",
        "message",
        "path",
        "rule",
    ];
    let mut with_cell = plain.to_vec();
    with_cell.insert(1, "cell");
    assert_eq!(sorted(keys(0)), with_cell);
    assert_eq!(sorted(keys(1)), plain);
    assert_eq!((&found[0]["cell"], &found[0]["line"]), (&1.into(), &2.into()));
}

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort();
    keys
}

#[test]
fn text_shows_the_line_within_80_columns() {
    let folder = Folder::new("text");
    folder.write(
        "x.py",
        format!("import torch\nif True:\n    {} = torch.zeros(8, 8).cuda()\n", "long".repeat(30)),
    );
    let path = folder.0.join("x.py");
    let outcome = folder.run(|options| options.paths = vec![path]);
    let lines: Vec<&str> = outcome.output.lines().collect();
    assert!(lines[0].ends_with("x.py:3:128: create-then-move (PLM014)"), "{}", lines[0]);
    assert!(lines.iter().skip(1).all(|line| line.chars().count() <= 80), "{}", outcome.output);
    let marker = lines[2].find('^').unwrap();
    assert!(lines[1][marker..].starts_with("torch.zeros"), "{}", outcome.output);
    assert!(outcome.output.ends_with("1 found, 1 fixable with --fix\n"));
}

#[test]
fn annotations_and_sarif_are_well_formed() {
    let folder = Folder::new("formats");
    folder.write("x.py", WRONG);
    folder.write("bad.py", "def (\n");
    let github = folder.run(|options| options.format = Format::Github).output;
    assert!(
        github.contains("::error file=")
            && github.contains(",line=2,endLine=2,col=5,endColumn=29,title="),
        "{github}"
    );
    let sarif: serde_json::Value =
        serde_json::from_str(&folder.run(|options| options.format = Format::Sarif).output).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(run["results"][0]["ruleId"], "PLM014");
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "PLM014");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let region = &run["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (&region["startLine"], &region["startColumn"], &region["endColumn"]),
        (&2.into(), &5.into(), &29.into())
    );
}

#[test]
fn fixes_are_written_or_only_shown() {
    let folder = Folder::new("fix");
    let path = folder.write("x.py", WRONG);
    let shown = folder.run(|options| options.diff = true);
    assert!(
        shown
            .output
            .contains("-x = torch.zeros(8, 8).cuda()\n+x = torch.zeros(8, 8, device=\"cuda\")\n"),
        "{}",
        shown.output
    );
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), shown.status), (WRONG, 1));
    let written = folder.run(|options| options.fix = true);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "import torch\nx = torch.zeros(8, 8, device=\"cuda\")\n"
    );
    assert_eq!((written.status, written.output.as_str()), (0, "1 fixed\n"));
}

#[test]
fn a_fix_changes_only_its_lines_of_a_notebook() {
    let folder = Folder::new("fix-notebook");
    let before = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 7,
   "metadata": {"tags": [ ]},
   "outputs": [{"data": {"image/png": "iVBORw0KGgo=\n"}, "text": "\u00e9 \ud83d\ude00"}],
   "source": [
    "import torch  # caf\u00e9\n",
    "%matplotlib inline\n",
    "x = torch.zeros(8, 8).cuda()"
   ]
  },
  { "cell_type": "markdown", "source": ["x = torch.zeros(8, 8).cuda()"] },
  {"cell_type": "code", "source": "def ("},
  {"cell_type": "code", "source": "y = torch.ones(8, 8).to(\"cuda\")\n"}
 ],
 "nbformat": 4
}
"#;
    let path = folder.write("n.ipynb", before);
    let shown = folder.run(|options| options.diff = true);
    let hunk = "-    \"x = torch.zeros(8, 8).cuda()\"\n+    \"x = torch.zeros(8, 8, device=\\\"cuda\\\")\"\n";
    assert!(shown.output.contains(hunk), "{}", shown.output);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let written = folder.run(|options| options.fix = true);
    // The broken cell is still a failure; nothing else is left.
    assert_eq!((written.status, written.output.as_str()), (2, "2 fixed\n"));
    let after = before
        .replace(
            "    \"x = torch.zeros(8, 8).cuda()\"",
            "    \"x = torch.zeros(8, 8, device=\\\"cuda\\\")\"",
        )
        .replace("ones(8, 8).to(\\\"cuda\\\")", "ones(8, 8, device=\\\"cuda\\\")");
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    assert_eq!(folder.run(|options| options.fix = true).output, "");
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
}

#[test]
fn a_fix_keeps_the_encoding_of_its_file() {
    let folder = Folder::new("fix-encoding");
    let latin: &[u8] = b"# coding: latin-1\nimport torch  # \xe9\nx = torch.zeros(8, 8).cuda()\n";
    let mark: &[u8] = b"\xef\xbb\xbfimport torch\r\nx = torch.zeros(8, 8).cuda()\r\n";
    let (latin, mark) = (folder.write("latin.py", latin), folder.write("mark.py", mark));
    folder.run(|options| options.fix = true);
    let new: &[u8] =
        b"# coding: latin-1\nimport torch  # \xe9\nx = torch.zeros(8, 8, device=\"cuda\")\n";
    assert_eq!(fs::read(latin).unwrap(), new);
    let new: &[u8] = b"\xef\xbb\xbfimport torch\r\nx = torch.zeros(8, 8, device=\"cuda\")\r\n";
    assert_eq!(fs::read(mark).unwrap(), new);
}

#[test]
fn a_project_sets_its_own_rules() {
    let folder = Folder::new("project");
    folder.write("x.py", WRONG);
    folder.write("old/x.py", WRONG);
    folder.write("pyproject.toml", "[tool.plimsoll.lint]\nexclude = [\"old\"]\n");
    assert_eq!(json(&folder.run(|options| options.format = Format::Json)).len(), 1);
    folder.write("pyproject.toml", "[tool.plimsoll.lint]\nignore = [\"create-then-move\"]\n");
    assert_eq!(folder.run(|_| ()).status, 0);
    folder.write("pyproject.toml", "[tool.plimsoll.lint]\nignroe = []\n");
    let options = Options { paths: vec![folder.0.clone()], ..Options::default() };
    assert!(run(&options).unwrap_err().contains("ignroe"));
    let options = Options {
        select: vec!["nonsense".into()],
        paths: vec![Path::new("/").into()],
        ..Options::default()
    };
    assert!(run(&options).unwrap_err().contains("nonsense"));
}

#[test]
fn statistics_count_by_rule() {
    let folder = Folder::new("statistics");
    folder.write("x.py", WRONG);
    folder.write("y.py", WRONG);
    let outcome = folder.run(|options| options.statistics = true);
    assert_eq!(outcome.output, "     2  PLM014  create-then-move\n     2  in all\n");
}
