//! What is told of something that grows, and the report of a watch as text of 80 columns.

use std::fmt;

use plimsoll_core::ByteSize;

use crate::causes::Cause;
use crate::growth::LEAST_STEPS;
use crate::kind::GrowthKind;

const WIDTH: usize = 80;
const INDENT: usize = 13;

/// Something that grows from step to step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// Bytes that each judged step leaves behind, on average.
    pub bytes_per_step: u64,
    /// How many things.
    pub objects_per_step: f64,
    /// The lines that make it, `train.rs:17`, the one with the most bytes first.
    pub lines: Vec<String>,
    /// The module that it is made in; empty outside of all.
    pub module: String,
    /// As what it stays.
    pub kind: GrowthKind,
    /// Who holds it, from the program inwards.
    pub held_by: String,
    /// Why, and what to do.
    pub cause: Cause,
    /// Whether it had grown for long enough when it was last judged.
    pub is_verdict: bool,
}

impl Finding {
    /// One that grows by so much at these lines.
    #[must_use]
    pub fn new(kind: GrowthKind, cause: Cause, held_by: String) -> Finding {
        Finding {
            bytes_per_step: 0,
            objects_per_step: 0.0,
            lines: Vec::new(),
            module: String::new(),
            kind,
            held_by,
            cause,
            is_verdict: false,
        }
    }

    /// The line that makes most of it.
    pub fn line(&self) -> &str {
        self.lines.first().map_or("unknown line", String::as_str)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let noun = if self.kind == GrowthKind::Nodes { "node" } else { "storage" };
        let count = format!("{:.2}", self.objects_per_step);
        let count = count.trim_end_matches('0').trim_end_matches('.');
        let plural = if count == "1" { "" } else { "s" };
        let size = ByteSize(usize::try_from(self.bytes_per_step).unwrap_or(usize::MAX));
        writeln!(f, "  {verb} {size} a step ({count} {noun}{plural})")?;
        let others = self.lines.get(1..).filter(|others| !others.is_empty());
        let others = others.map_or(String::new(), |others| format!(" (and {})", others.join(", ")));
        row(f, "line", &format!("{}{others}", self.line()))?;
        if !self.module.is_empty() {
            row(f, "module", &self.module)?;
        }
        row(f, "kind", self.kind.words())?;
        row(f, "held by", &self.held_by)?;
        row(f, "cause", self.cause.name)?;
        row(f, "remedy", self.cause.remedy)
    }
}

/// One row, its text wrapped beside its name.
fn row(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    let mut line = format!("    {name:<8}");
    for word in text.split_whitespace() {
        let used = line.chars().count();
        if used + 1 + word.chars().count() > WIDTH && used > INDENT {
            writeln!(f, "{line}")?;
            line = " ".repeat(INDENT - 1);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(f, "{line}")
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, if self.is_verdict { "grows" } else { "growing so far:" })
    }
}

/// What a watch has found when it ended, or so far.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeakReport {
    /// What grows, the largest first.
    pub findings: Vec<Finding>,
    /// Steps that were watched.
    pub steps: u64,
    /// Whether the watch has ended; what grows is told as "so far" otherwise.
    pub is_final: bool,
}

impl LeakReport {
    /// The report of a watch of `steps` steps.
    pub fn new(findings: Vec<Finding>, steps: u64, is_final: bool) -> LeakReport {
        LeakReport { findings, steps, is_final }
    }

    /// What counts as a leak: it had grown for long enough when the watch ended.
    pub fn verdicts(&self) -> impl Iterator<Item = &Finding> {
        let is_final = self.is_final;
        self.findings.iter().filter(move |finding| is_final && finding.is_verdict)
    }

    /// Whether nothing leaks, as far as could be judged.
    pub fn is_clean(&self) -> bool {
        self.verdicts().next().is_none()
    }
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.verdicts().count();
        let steps = if self.steps == 1 { "step" } else { "steps" };
        write!(f, "watch: {} {steps}; ", self.steps)?;
        match (self.is_final, count) {
            (false, _) => writeln!(f, "{} growing so far", self.findings.len())?,
            (true, 1) => writeln!(f, "1 finding")?,
            (true, _) => writeln!(f, "{count} findings")?,
        }
        for finding in &self.findings {
            let verb = match (self.is_final, finding.is_verdict) {
                (false, _) => "growing so far:",
                (true, true) => "grows",
                (true, false) => "note: grew",
            };
            finding.write(f, verb)?;
        }
        if self.is_final && self.steps < LEAST_STEPS {
            writeln!(f, "  note: too few steps to judge; {LEAST_STEPS} are needed")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes;

    #[test]
    fn a_report_is_eighty_columns_and_names_everything() {
        let mut finding = Finding::new(
            GrowthKind::Activation,
            causes::RESULTS,
            "35 tensors made by linear at src/train.rs:9 -> grad_fn AddmmBackward0".to_string(),
        );
        finding.bytes_per_step = 16_486;
        finding.objects_per_step = 3.0;
        finding.lines = vec!["src/train.rs:9".to_string(), "src/train.rs:8".to_string()];
        finding.is_verdict = true;
        let report = LeakReport::new(vec![finding.clone()], 40, true);
        let text = report.to_string();
        assert!(
            text.starts_with("watch: 40 steps; 1 finding\n  grows 16.10 KiB a step (3 storages)")
        );
        assert!(text.contains("\n    line     src/train.rs:9 (and src/train.rs:8)\n"), "{text}");
        assert!(text.contains("\n    kind     activation kept by a graph\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(!report.is_clean());
        let so_far = LeakReport::new(vec![finding], 40, false);
        assert!(so_far.to_string().contains("growing so far: 16.10 KiB") && so_far.is_clean());
        let short = LeakReport::new(Vec::new(), 4, true).to_string();
        assert_eq!(
            short,
            "watch: 4 steps; 0 findings\n  note: too few steps to judge; 10 are needed\n"
        );
    }
}
