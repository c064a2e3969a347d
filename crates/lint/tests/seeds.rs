//! The seed documents: each block that shows a wrong way beside a right one, with what must be
//! found on which line. Where a block that a document calls wrong is no mistake, nothing may fire;
//! where one that it calls right holds a mistake of its own, the finding is listed with its reason.
//! The blocks lie under `seeds/`, named by document and line.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_lint::{Selection, Source, check, find};

/// A block, and its findings with `--pedantic` as `line rule`.
struct Block {
    file: &'static str,
    /// The mistakes that the document means, at their lines.
    meant: &'static [(u32, &'static str)],
    /// Findings in lines that the document does not call wrong, each with the reason why they are
    /// right.
    also: &'static [(u32, &'static str, &'static str)],
    /// Why something that the document calls wrong is not found.
    no_mistake: &'static str,
}

const NO_CLEARING: &str = "the loop never clears gradients";
const HOST_FIRST: &str = "the buffer is made on the host and then copied";
const PEDANTIC: &str = "pedantic: says what it costs";

const BLOCKS: &[Block] = &[
    Block { file: "000_069.py", meant: &[(6, "missing-zero-grad")], also: &[], no_mistake: "" },
    Block {
        file: "000_096.py",
        meant: &[(5, "graph-kept")],
        also: &[(12, "sync-in-loop", PEDANTIC)],
        no_mistake: "",
    },
    Block {
        file: "000_124.py",
        meant: &[(4, "hidden-state-not-detached")],
        also: &[(6, "missing-zero-grad", NO_CLEARING), (15, "missing-zero-grad", NO_CLEARING)],
        no_mistake: "",
    },
    Block { file: "000_148.py", meant: &[(4, "eval-without-no-grad")], also: &[], no_mistake: "" },
    Block { file: "000_174.py", meant: &[(8, "closure-keeps-self")], also: &[], no_mistake: "" },
    Block {
        file: "000_211.py",
        meant: &[(15, "inplace-on-grad-leaf")],
        also: &[],
        no_mistake: "x = x + 1 allocates once and the cache serves it again",
    },
    Block {
        file: "000_237.py",
        meant: &[],
        also: &[],
        no_mistake: "t() + 1 is no slower than on a contiguous tensor",
    },
    Block { file: "000_262.py", meant: &[(5, "transfer-in-loop")], also: &[], no_mistake: "" },
    Block {
        file: "000_290.py",
        meant: &[],
        also: &[],
        no_mistake: "broadcasting makes only the result; the small operand has stride 0",
    },
    Block {
        file: "000_320.py",
        meant: &[(4, "allocation-in-loop"), (4, "create-then-move")],
        also: &[(8, "create-then-move", HOST_FIRST)],
        no_mistake: "",
    },
    Block {
        file: "000_376.py",
        meant: &[(8, "loss-outside-autocast")],
        also: &[(1, "deprecated-amp", PEDANTIC), (9, "missing-zero-grad", NO_CLEARING)],
        no_mistake: "",
    },
    Block { file: "000_409.py", meant: &[(4, "data-parallel-device")], also: &[], no_mistake: "" },
    Block { file: "000_509.py", meant: &[(5, "graph-kept")], also: &[], no_mistake: "" },
    Block {
        file: "000_528.py",
        meant: &[(4, "hidden-state-not-detached")],
        also: &[],
        no_mistake: "",
    },
    Block { file: "000_547.py", meant: &[(4, "eval-without-no-grad")], also: &[], no_mistake: "" },
    Block { file: "000_567.py", meant: &[(3, "round-trip-to-host")], also: &[], no_mistake: "" },
    Block {
        file: "000_585.py",
        meant: &[],
        also: &[],
        no_mistake: "a loop over a transposed tensor was no slower than over a contiguous one",
    },
    Block {
        file: "000_602.py",
        meant: &[(3, "allocation-in-loop"), (3, "create-then-move")],
        also: &[(7, "create-then-move", HOST_FIRST)],
        no_mistake: "",
    },
    Block {
        file: "000_744.py",
        meant: &[],
        also: &[(3, "deprecated-amp", PEDANTIC), (24, "set-to-none-default", PEDANTIC)],
        no_mistake: "",
    },
    Block {
        file: "001_131.py",
        meant: &[],
        also: &[],
        no_mistake: "x ** 2 saves its input, so y.add_(1) backpropagates",
    },
    Block { file: "001_204.py", meant: &[(5, "graph-kept")], also: &[], no_mistake: "" },
    Block { file: "001_220.py", meant: &[(3, "slice-keeps-storage")], also: &[], no_mistake: "" },
    Block { file: "002_158.py", meant: &[(6, "graph-kept")], also: &[], no_mistake: "" },
    Block { file: "002_170.py", meant: &[], also: &[], no_mistake: "" },
    Block { file: "002_236.py", meant: &[(3, "allocation-in-loop")], also: &[], no_mistake: "" },
    Block {
        file: "002_263.py",
        meant: &[],
        also: &[],
        no_mistake: "an index copies because its result must exist; out= refuses inputs that require gradients",
    },
    Block {
        file: "002_548.py",
        meant: &[(4, "delete-before-backward")],
        also: &[],
        no_mistake: "",
    },
    Block { file: "002_563.py", meant: &[(4, "empty-cache-in-loop")], also: &[], no_mistake: "" },
    Block { file: "002_577.py", meant: &[(5, "graph-kept")], also: &[], no_mistake: "" },
    Block { file: "002_592.py", meant: &[(4, "inplace-on-grad-leaf")], also: &[], no_mistake: "" },
    Block { file: "003_213.py", meant: &[(7, "reentrant-checkpoint")], also: &[], no_mistake: "" },
];

#[test]
fn every_block_is_judged_as_it_deserves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    let mut wrong = Vec::new();
    for block in BLOCKS {
        let text = std::fs::read_to_string(folder.join(block.file)).unwrap();
        let findings = check(&Source::python(block.file, text), &Selection::new(true)).unwrap();
        let found: BTreeSet<(u32, &str)> = findings.iter().map(|f| (f.line, f.rule)).collect();
        let also = block.also.iter().map(|(line, rule, _)| (*line, *rule));
        let expected: BTreeSet<(u32, &str)> = block.meant.iter().copied().chain(also).collect();
        if found != expected {
            wrong.push(format!("{}: expected {expected:?}, found {found:?}", block.file));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_block_is_listed_and_every_exception_has_its_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let listed: BTreeSet<String> = BLOCKS.iter().map(|block| block.file.to_string()).collect();
    assert_eq!(files, listed);
    for block in BLOCKS {
        for (_, rule, reason) in block.also {
            assert!(find(rule).is_some() && !reason.is_empty(), "{}", block.file);
        }
        for (_, rule) in block.meant {
            assert!(find(rule).is_some(), "{rule}");
        }
        assert!(block.no_mistake.is_empty() || block.no_mistake.len() > 20);
    }
}

/// Blocks split at their comments, so that each half stands alone as the documents mean it: the
/// right half must be clean but for the listed exceptions.
#[test]
fn right_halves_alone_trigger_no_default_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    for block in BLOCKS {
        let text = std::fs::read_to_string(folder.join(block.file)).unwrap();
        let marks = ["✅", "# CORRECT", "# GOOD"];
        let Some(start) =
            text.lines().position(|line| marks.iter().any(|mark| line.contains(mark)))
        else {
            continue;
        };
        // The lines above stay as blank ones, so that numbers still fit.
        let imports = |line: &&str| line.starts_with("import ") || line.starts_with("from ");
        let head = text.lines().take(start).map(|line| if imports(&line) { line } else { "" });
        let right: Vec<&str> = head.chain(text.lines().skip(start)).collect();
        let source = Source::python(block.file, right.join("\n"));
        for finding in check(&source, &Selection::default()).unwrap() {
            let listed = block
                .also
                .iter()
                .any(|(line, rule, _)| (*line, *rule) == (finding.line, finding.rule));
            let meant = block.meant.contains(&(finding.line, finding.rule));
            assert!(listed || meant, "{}:{} {}", block.file, finding.line, finding.rule);
        }
    }
}
