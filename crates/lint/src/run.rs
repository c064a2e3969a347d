//! A whole run over paths: discovery, checking in parallel, fixing, rendering. The command line
//! calls this and prints what comes back; nothing here prints or exits.

use std::io::Read;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::check::inspect;
use crate::configuration::Configuration;
use crate::encoding::{self, Encoding};
use crate::finding::{Finding, Problem};
use crate::render::{self, Format};
use crate::selection::Selection;
use crate::source::Source;
use crate::{discover, fix, notebook, unified_diff};

/// Walking and dropping a syntax tree recurse; this holds `nesting::DEEPEST` levels many times
/// over.
const STACK_BYTES: usize = 64 << 20;

/// What a run is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Only these rules; empty for the configured or default ones.
    pub select: Vec<String>,
    /// Without these rules, besides the configured ones.
    pub ignore: Vec<String>,
    /// The pedantic rules too.
    pub pedantic: bool,
    /// How findings are written.
    pub format: Format,
    /// Counts instead of findings.
    pub statistics: bool,
    /// Write safe edits into the files.
    pub fix: bool,
    /// Show safe edits instead of findings.
    pub diff: bool,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What belongs on standard output.
    pub output: String,
    /// What belongs on standard error.
    pub errors: String,
    /// 0 clean, 1 findings, 2 something could not be checked.
    pub status: u8,
}

/// The result for one file.
struct Checked {
    source: Option<Source>,
    findings: Vec<Finding>,
    problems: Vec<Problem>,
    diff: String,
    fixed: usize,
}

/// Runs; the error is a wrong option, a wrong configuration, or a failure to start.
pub fn run(options: &Options) -> Result<Outcome, String> {
    let first = options.paths.first().map_or(Path::new("."), |path| path.as_path());
    let from = if first == Path::new("-") { Path::new(".") } else { first };
    let configuration = Configuration::nearest(from)?;
    let selection = selection(options, &configuration)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| format!("no threads to work with: {error}"))?;
    let here = [PathBuf::from(".")];
    let paths: &[PathBuf] = if options.paths.is_empty() { &here } else { &options.paths };
    let (files, mut problems) = discover::files(&without_input(paths), &configuration);
    let mut checked: Vec<Checked> = pool
        .install(|| files.par_iter().map(|path| check_file(path, options, &selection)).collect());
    if paths.iter().any(|path| path == Path::new("-")) {
        checked.push(pool.install(|| check_input(options, &selection)));
    }
    problems.extend(checked.iter().flat_map(|file| file.problems.iter().cloned()));
    Ok(outcome(options, &checked, &problems))
}

fn without_input(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| *path != Path::new("-")).cloned().collect()
}

fn selection(options: &Options, configuration: &Configuration) -> Result<Selection, String> {
    let select = if options.select.is_empty() { &configuration.select } else { &options.select };
    let ignore = [&configuration.ignore[..], &options.ignore[..]].concat();
    Selection::new(options.pedantic || configuration.pedantic).select(select)?.ignore(&ignore)
}

fn check_file(path: &Path, options: &Options, selection: &Selection) -> Checked {
    let name = path.to_string_lossy();
    let name = name.strip_prefix("./").unwrap_or(&name);
    let read = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"));
    let source = read
        .and_then(encoding::decode)
        .and_then(|(text, encoding)| Ok((source_of(path, name, text)?, encoding)));
    match source {
        Ok((source, encoding)) => check_source(source, options, selection, Some((path, encoding))),
        Err(message) => Checked::failed(Problem::whole(name, message)),
    }
}

/// The text as what its file's name says that it is.
fn source_of(path: &Path, name: &str, text: String) -> Result<Source, String> {
    match path.extension() {
        Some(extension) if extension == "ipynb" => notebook::read(name, text),
        _ => Ok(Source::python(name, text)),
    }
}

fn check_input(options: &Options, selection: &Selection) -> Checked {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let text = read
        .map_err(|error| format!("cannot be read: {error}"))
        .and_then(|_| encoding::decode(bytes));
    match text {
        Ok((text, _)) => check_source(Source::python("-", text), options, selection, None),
        Err(message) => Checked::failed(Problem::whole("-", message)),
    }
}

impl Checked {
    fn failed(problem: Problem) -> Checked {
        let (findings, problems) = (Vec::new(), vec![problem]);
        Checked { source: None, findings, problems, diff: String::new(), fixed: 0 }
    }
}

fn check_source(
    source: Source,
    options: &Options,
    selection: &Selection,
    file: Option<(&Path, Encoding)>,
) -> Checked {
    let (mut findings, mut problems) = inspect(&source, selection);
    let (mut diff, mut fixed, mut source) = (String::new(), 0, source);
    if (options.fix || options.diff)
        && findings.iter().any(Finding::fixable)
        && let Some((text, count)) = fix::fixed(&source, selection)
    {
        if options.diff {
            diff = unified_diff::unified_diff(source.path(), source.file_text(), &text);
        } else if let Some((path, encoding)) = file {
            match written(path, source.path(), text, encoding) {
                Ok(new) => {
                    (findings, problems) = inspect(&new, selection);
                    (source, fixed) = (new, count);
                }
                Err(message) => problems.push(Problem::whole(source.path(), message)),
            }
        }
    }
    let keep = !findings.is_empty();
    Checked { source: keep.then_some(source), findings, problems, diff, fixed }
}

/// Writes a file's new text in the encoding that it had.
fn written(path: &Path, name: &str, text: String, encoding: Encoding) -> Result<Source, String> {
    let refuse = |why: &str| format!("cannot be written: {why}");
    let bytes = encoding::encode(&text, encoding)
        .ok_or_else(|| refuse("a fix holds a character that its encoding has not"))?;
    std::fs::write(path, bytes).map_err(|error| refuse(&error.to_string()))?;
    source_of(path, name, text)
}

fn outcome(options: &Options, checked: &[Checked], problems: &[Problem]) -> Outcome {
    let found: Vec<(&Source, &Finding)> = checked
        .iter()
        .filter_map(|file| file.source.as_ref().map(|source| (source, &file.findings)))
        .flat_map(|(source, findings)| findings.iter().map(move |finding| (source, finding)))
        .collect();
    let fixed: usize = checked.iter().map(|file| file.fixed).sum();
    let mut output = if options.diff {
        checked.iter().map(|file| file.diff.as_str()).collect()
    } else if options.statistics {
        render::statistics(&found, options.format)
    } else {
        render::findings(&found, problems, options.format)
    };
    if fixed > 0 && options.format == Format::Text && !options.statistics {
        output.push_str(&format!("{fixed} fixed\n"));
    }
    let errors = problems.iter().map(|problem| format!("error: {problem}\n")).collect();
    let status = match (problems.is_empty(), found.is_empty()) {
        (false, _) => 2,
        (true, false) => 1,
        (true, true) => 0,
    };
    Outcome { output, errors, status }
}
