//! The watch of PyTorch's programs is Python that imports nothing of Plimsoll, so it has its words
//! written out: they are the same ones.

use plimsoll_watch::{GrowthKind, causes};

fn python(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/python/plimsoll/watch");
    let text =
        std::fs::read_to_string(format!("{folder}/{file}")).expect("the package is beside it");
    // Texts over several lines are literals that stand next to each other.
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim();
        match (joined.ends_with('"'), line.strip_prefix('"')) {
            (true, Some(rest)) => {
                joined.pop();
                joined.push_str(rest);
            }
            _ => {
                joined.push('\n');
                joined.push_str(line);
            }
        }
    }
    joined
}

#[test]
fn causes_and_remedies_are_those_of_the_watch() {
    let words = python("_findings.py");
    for cause in causes::ALL {
        for text in [cause.name, cause.remedy] {
            assert!(words.contains(&format!("\"{text}\"")), "the watch does not say: {text}");
        }
    }
}

#[test]
fn kinds_are_those_of_the_watch() {
    let words = python("_kinds.py");
    for kind in GrowthKind::ALL {
        assert!(words.contains(&format!("\"{kind}\"")), "the watch does not know: {kind}");
    }
}

#[test]
fn rules_are_those_of_the_watch() {
    let rules = python("_growth.py");
    let told = [
        ("WARM_UP_STEPS", plimsoll_watch::WARM_UP_STEPS),
        ("SETTLE_STEPS", plimsoll_watch::SETTLE_STEPS),
        ("TOLERATED_BYTES", plimsoll_watch::TOLERATED_BYTES),
    ];
    for (name, value) in told {
        assert!(rules.contains(&format!("\n{name} = {value}\n")), "{name} is not {value} there");
    }
}
