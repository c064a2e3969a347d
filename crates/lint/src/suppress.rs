//! Ignore comments: `# plimsoll: ignore[graph-kept, PLM002]` on a line of the finding, `# plimsoll:
//! ignore` for every rule, and `# plimsoll: ignore-file` (with or without rules) anywhere for the
//! whole file.

use std::collections::HashMap;

use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_text_size::Ranged;

use crate::finding::Finding;
use crate::rules::find;
use crate::source::Source;

/// What a comment silences; `None` is every rule.
#[derive(Debug)]
struct Ignored {
    rules: Option<Vec<&'static str>>,
    whole_file: bool,
}

impl Ignored {
    fn covers(&self, rule: &str) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.contains(&rule))
    }
}

/// The findings that no comment silences.
pub(crate) fn kept(source: &Source, tokens: &Tokens, findings: Vec<Finding>) -> Vec<Finding> {
    if findings.is_empty() || !source.text().contains("plimsoll:") {
        return findings;
    }
    let mut by_line: HashMap<usize, Vec<Ignored>> = HashMap::new();
    let mut in_file = Vec::new();
    for token in tokens.iter().filter(|token| token.kind() == TokenKind::Comment) {
        let Some(ignored) = read(&source.text()[token.range().to_std_range()]) else { continue };
        match ignored.whole_file {
            true => in_file.push(ignored),
            false => by_line.entry(source.line_index(token.start())).or_default().push(ignored),
        }
    }
    let silenced = |finding: &Finding| {
        let lines =
            source.line_index(finding.range.start())..=source.line_index(finding.range.end());
        let on_lines = lines.filter_map(|line| by_line.get(&line)).flatten();
        in_file.iter().chain(on_lines).any(|ignored| ignored.covers(finding.rule))
    };
    findings.into_iter().filter(|finding| !silenced(finding)).collect()
}

fn read(comment: &str) -> Option<Ignored> {
    let (_, rest) = comment.split_once("plimsoll:")?;
    let rest = rest.trim_start().strip_prefix("ignore")?;
    let (rest, whole_file) = match rest.strip_prefix("-file") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let rules = rest.trim_start().strip_prefix('[').map(|list| {
        let list = list.split(']').next().unwrap_or_default();
        list.split(',').filter_map(|name| find(name.trim()).map(|rule| rule.name)).collect()
    });
    Some(Ignored { rules, whole_file })
}

#[cfg(test)]
mod tests {
    use crate::{Selection, Source, check};

    fn rules(text: &str) -> Vec<&'static str> {
        let found = check(&Source::python("x.py", text), &Selection::default()).unwrap();
        found.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn comments_silence_what_they_name() {
        let line = "import torch\nx = torch.zeros(9, 9).cuda()";
        assert_eq!(rules(line), ["create-then-move"]);
        assert!(rules(&format!("{line}  # plimsoll: ignore")).is_empty());
        assert!(rules(&format!("{line}  # plimsoll: ignore[create-then-move]")).is_empty());
        assert!(
            rules(&format!("{line}  # why not  # plimsoll: ignore[graph-kept, PLM014]")).is_empty()
        );
        assert_eq!(rules(&format!("{line}  # plimsoll: ignore[graph-kept]")), ["create-then-move"]);
        assert_eq!(rules(&format!("{line}\ny = '# plimsoll: ignore-file'")), ["create-then-move"]);
        assert!(rules(&format!("# plimsoll: ignore-file[create-then-move]\n{line}")).is_empty());
    }

    #[test]
    fn any_line_of_the_finding_will_do() {
        let text = "import torch\nx = torch.zeros(\n    9, 9  # plimsoll: ignore\n).cuda()";
        assert!(rules(text).is_empty());
    }
}
