//! The house rule behind "every byte has an origin": no line of the runtime's own may be taken for
//! the user's. A function that asks for its caller's line is `#[track_caller]`, or the line would
//! be its own; and a public method that may allocate passes the caller's line on, by
//! `#[track_caller]` or by taking a `Site`. What runs in somebody else's name asks for
//! `Site::in_force()`.

/// Where methods of tensors are.
const METHODS: [&str; 2] = ["crates/tensor/src/api/", "crates/tensor/src/autograd/"];

/// One function as the rule sees it.
struct Function<'a> {
    line: usize,
    name: &'a str,
    is_public: bool,
    tracks_caller: bool,
    signature: String,
    asks_for_caller: bool,
}

/// Adds what breaks the rule in one file of the tensor crate.
pub(crate) fn check(path: &str, text: &str, broken: &mut Vec<String>) {
    if !path.starts_with("crates/tensor/src/") {
        return;
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    for function in functions(code) {
        let mut say = |message: &str| {
            broken.push(format!("{path}:{}: `{}` {message}", function.line, function.name));
        };
        if function.tracks_caller {
            continue;
        }
        if function.asks_for_caller {
            say("asks for its caller's line without `#[track_caller]`, and gets its own");
        }
        let is_method = METHODS.iter().any(|folder| path.starts_with(folder));
        let fallible = function.signature.contains("-> Result<");
        if is_method && function.is_public && fallible && !function.signature.contains(": Site") {
            say("may allocate, and passes no line on: add `#[track_caller]`");
        }
    }
}

/// The functions of a formatted file: a body ends with a brace in the column of its first line.
fn functions(code: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((before, after)) = split_at_fn(line) else { continue };
        let name =
            after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let closes = |line: &&str| {
            line.len() > indent && line[..=indent].trim_end() == format!("{}}}", " ".repeat(indent))
        };
        let opens = (at..lines.len()).find(|&i| {
            lines[i].ends_with('{') || lines[i].ends_with(';') || lines[i].ends_with('}')
        });
        let Some(opens) = opens else { continue };
        let ends = if lines[opens].ends_with('{') {
            (opens..lines.len()).find(|&i| closes(&lines[i])).unwrap_or(opens)
        } else {
            opens
        };
        let attributes =
            lines[..at].iter().rev().take_while(|line| line.trim().starts_with(['#', '/']));
        found.push(Function {
            line: at + 1,
            name,
            is_public: before.trim() == "pub" || before.trim() == "pub unsafe",
            tracks_caller: attributes.into_iter().any(|line| line.trim() == "#[track_caller]"),
            signature: lines[at..=opens].join(" "),
            asks_for_caller: lines[opens..=ends].iter().any(|line| line.contains("Site::caller()")),
        });
    }
    found
}

/// What stands before and after the `fn` of a function's first line.
fn split_at_fn(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["", "pub", "pub(crate)", "pub(super)", "const", "unsafe"];
    before.split_whitespace().all(|word| words.contains(&word)).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<String> {
        let mut broken = Vec::new();
        check(path, text, &mut broken);
        broken
    }

    #[test]
    fn a_method_without_the_callers_line_breaks_a_rule() {
        let method =
            "impl Tensor {\n    pub fn a(&self) -> Result<Tensor> {\n        b()\n    }\n}\n";
        assert_eq!(broken("crates/tensor/src/api/a.rs", method).len(), 1);
        assert!(broken("crates/tensor/src/launch.rs", method).is_empty(), "no method of tensors");
        let tracked = method.replace("    pub fn", "    #[track_caller]\n    pub fn");
        assert!(broken("crates/tensor/src/api/a.rs", &tracked).is_empty());
        let given = method.replace("&self", "&self, site: Site");
        assert!(broken("crates/tensor/src/api/a.rs", &given).is_empty());
    }

    #[test]
    fn asking_for_the_caller_without_passing_it_on_breaks_a_rule() {
        let text = "fn a() {\n    b(Site::caller());\n}\n\n#[track_caller]\nfn c() {\n    b(Site::caller());\n}\n";
        let found = broken("crates/tensor/src/x.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/tensor/src/x.rs:1: `a`"));
    }
}
