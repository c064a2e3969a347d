//! A unified diff of two texts, for `--diff`. Lines are matched from both ends and, in between,
//! greedily by the nearest equal line: enough for small edits, and never wrong, only sometimes
//! longer than needed.

use std::fmt::Write as _;

const CONTEXT: usize = 3;
/// How far ahead an equal line is looked for.
const REACH: usize = 200;

/// One line of the comparison.
enum Step<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The differences in the form that `patch` reads; empty if there are none.
///
/// ```
/// let diff = plimsoll_lint::unified_diff("x.py", "a\nb\n", "a\nc\n");
/// assert_eq!(diff, "--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
/// ```
pub fn unified_diff(path: &str, old: &str, new: &str) -> String {
    let steps = compare(old, new);
    let changed: Vec<usize> =
        (0..steps.len()).filter(|at| !matches!(steps[*at], Step::Same(_))).collect();
    let mut text = String::new();
    let mut next = 0;
    while next < changed.len() {
        let first = changed[next];
        let mut last = first;
        while next < changed.len() && changed[next] <= last + 2 * CONTEXT + 1 {
            last = changed[next];
            next += 1;
        }
        let from = first.saturating_sub(CONTEXT);
        let to = (last + CONTEXT + 1).min(steps.len());
        if text.is_empty() {
            let _ = writeln!(text, "--- {path}\n+++ {path}");
        }
        hunk(&mut text, &steps, from, to);
    }
    text
}

fn hunk(text: &mut String, steps: &[Step<'_>], from: usize, to: usize) {
    let count = |range: &[Step<'_>], old: bool| {
        let counts = |step: &&Step<'_>| match step {
            Step::Same(_) => true,
            Step::Gone(_) => old,
            Step::New(_) => !old,
        };
        range.iter().filter(counts).count()
    };
    let (old_start, new_start) =
        (count(&steps[..from], true) + 1, count(&steps[..from], false) + 1);
    let (old_count, new_count) = (count(&steps[from..to], true), count(&steps[from..to], false));
    let _ = writeln!(text, "@@ -{old_start},{old_count} +{new_start},{new_count} @@");
    for step in &steps[from..to] {
        let (mark, line) = match step {
            Step::Same(line) => (' ', line),
            Step::Gone(line) => ('-', line),
            Step::New(line) => ('+', line),
        };
        let _ = write!(text, "{mark}{line}");
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn compare<'a>(old: &'a str, new: &'a str) -> Vec<Step<'a>> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let (mut steps, mut i, mut j) = (Vec::new(), 0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            steps.push(Step::Same(old[i]));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        // The nearest pair of equal lines ahead, by the sum of both distances.
        let ahead = (1..REACH).find_map(|distance| {
            (0..=distance).find_map(|a| {
                let b = distance - a;
                let equal = old.get(i + a).is_some_and(|line| new.get(j + b) == Some(line));
                equal.then_some((a, b))
            })
        });
        let (a, b) = ahead.unwrap_or((old.len() - i, new.len() - j));
        steps.extend(old[i..i + a].iter().map(|line| Step::Gone(line)));
        steps.extend(new[j..j + b].iter().map(|line| Step::New(line)));
        (i, j) = (i + a, j + b);
    }
    steps.extend(old[i..].iter().map(|line| Step::Gone(line)));
    steps.extend(new[j..].iter().map(|line| Step::New(line)));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_changes_get_their_own_hunks() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("5\n", "five\n");
        let diff = unified_diff("x", &old, &new);
        // 5, 15, 25 and 35 changed: ten lines apart, so each alone.
        assert_eq!(diff.matches("@@ ").count(), 4, "{diff}");
        assert!(unified_diff("x", &old, &old).is_empty());
    }

    #[test]
    fn a_missing_last_newline_is_said() {
        assert!(unified_diff("x", "a", "b").contains("-a\n\\ No newline at end of file\n+b\n"));
    }
}
