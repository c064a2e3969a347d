//! `plimsoll train --watch`: training does not leak, and says so.

use std::process::Command;

fn train(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = std::env::temp_dir().join(format!("plimsoll-watch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = folder.join(format!("{}.txt", arguments.len()));
    let words = (0..600u32).map(|n| format!("{} is word {n}. ", n * n % 97));
    std::fs::write(&text, words.collect::<String>()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["train", "--sample", "0", "--batch", "2", "--context", "16", "--layers", "1"]);
    command.args(["--width", "16", "--heads", "2", "--vocabulary", "300", "--data"]);
    let done = command.arg(&text).args(arguments).output().unwrap();
    std::fs::remove_file(text).unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_clean_run_has_a_clean_verdict() {
    let (status, said) = train(&["--steps", "30", "--watch", "--fail"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.trim_end().ends_with("watch: 30 steps; 0 findings"), "{said}");
    assert!(!said.contains("growing so far"), "{said}");
}

#[test]
fn too_few_steps_are_told_as_such() {
    let (status, said) = train(&["--steps", "4", "--watch"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("too few steps to judge; 10 are needed"), "{said}");
}

#[test]
fn a_status_needs_a_watch() {
    let (status, said) = train(&["--steps", "4", "--fail"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--watch"), "{said}");
}
