//! Every program of `examples/` does what its header says: each is run here as a user runs it, and
//! its output is read.

#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../examples/largest_batch.rs"]
mod largest_batch;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../examples/out_of_memory.rs"]
mod out_of_memory;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../examples/peaks_of_a_region.rs"]
mod peaks_of_a_region;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../examples/read_a_snapshot.rs"]
mod read_a_snapshot;
#[allow(dead_code, reason = "a program's `main` is for its own process")]
#[path = "../examples/train_classifier.rs"]
mod train_classifier;

use std::error::Error;

fn said(run: impl FnOnce(&mut Vec<u8>) -> Result<(), Box<dyn Error>>) -> String {
    let mut out = Vec::new();
    run(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The number after `word` in the first line that has it.
fn number_after(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no `{word}` in\n{text}"));
    let number = rest.split_whitespace().next().unwrap().trim_end_matches([':', ',']);
    number.parse().unwrap_or_else(|_| panic!("no number after `{word}` in\n{text}"))
}

#[test]
fn the_classifier_learns_and_tells_its_memory() {
    let text = said(train_classifier::run);
    assert!(number_after(&text, "step 100  loss") < 0.1, "{text}");
    let right: f64 =
        text.split(" % are right").next().unwrap().rsplit('\n').next().unwrap().parse().unwrap();
    assert!(right > 98.0, "{text}");
    for word in ["by kind", "parameter", "by line", "examples/train_classifier.rs:"] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}

/// Each tensor of the program has exactly one MiB, so its peaks can be told in the head.
#[test]
fn peaks_are_those_of_their_regions() {
    let text = said(peaks_of_a_region::run);
    assert_eq!(number_after(&text, "before "), 2048.0, "{text}");
    // The product and its exponential; the sum's 512 bytes are cut off.
    assert_eq!(number_after(&text, "forward "), 2048.0, "{text}");
    // exp saves its result, and the product has saved x, which is held anyway.
    assert_eq!(number_after(&text, "held "), 1024.0, "{text}");
    let backward = number_after(&text, "backward ");
    assert!(backward >= 2048.0, "{text}");
    assert_eq!(number_after(&text, "the step "), backward.max(2048.0), "{text}");
    assert_eq!(number_after(&text, "after "), 1024.0, "{text}");
}

#[test]
fn running_out_of_memory_is_explained_and_survived() {
    let text = said(out_of_memory::run);
    for word in ["65536 rows at once do not fit", "asked for", "in use", "what helps"] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    let total = number_after(&text, "the sum is");
    let each = f64::from(1f32.exp()) - 1.0;
    let expected = each * 65_536.0 * 64.0;
    assert!((total / expected - 1.0).abs() < 1e-6, "{total} against {expected}");
    assert!(number_after(&text, "with ") < 65_536.0, "{text}");
}

#[test]
fn the_dry_run_finds_the_batch_that_just_fits() {
    let text = said(largest_batch::run);
    let fits = number_after(&text, "dry run:");
    assert!(fits > 1000.0, "{text}");
    assert!(text.contains(&format!("real run: {fits} rows: done")), "{text}");
    assert!(text.contains(&format!("real run: {} rows: out of memory", fits + 1.0)), "{text}");
}

#[test]
fn a_snapshot_is_read_and_its_leak_named() {
    let text = said(|out| read_a_snapshot::run(out, None));
    assert!(text.contains("leak"), "{text}");
    assert!(text.contains("examples/read_a_snapshot.rs:"), "{text}");
    let missing = read_a_snapshot::run(&mut Vec::new(), Some("nowhere.pickle".into()));
    assert!(missing.unwrap_err().to_string().contains("nowhere.pickle"));
}
