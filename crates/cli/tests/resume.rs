//! `plimsoll train` that is saved, killed and resumed: the losses are those of a run that nobody
//! disturbed, bit for bit, and what cannot be resumed says why.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_files::Checkpoint;
use plimsoll_tensor::Device;

/// A folder that goes with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("plimsoll-resume-{name}-{}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(folder));
        fs::create_dir_all(&scratch.0).unwrap();
        let words = (0..600u32).map(|n| format!("{} is word {n}. ", n * n % 97));
        fs::write(scratch.path("text"), words.collect::<String>()).unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `plimsoll train` with a small model, in which everything that a checkpoint must keep has its
    /// part: moments, the schedule, dropped elements, and batches over several epochs.
    fn train(&self, steps: u64) -> Command {
        let mut command = self.resumed();
        command.args(["--steps", &steps.to_string(), "--dropout", "0.1", "--accumulate", "2"]);
        command.args(["--batch", "4", "--context", "32", "--layers", "1", "--width", "32"]);
        command.args(["--heads", "2", "--learning-rate", "0.01", "--vocabulary", "300"]);
        command.arg("--data").arg(self.path("text"));
        command
    }

    /// The same without settings.
    fn resumed(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["train", "--sample", "0"]).stdin(Stdio::null());
        command
    }

    /// The losses in a file by step. A step may come twice; then it has the same loss.
    fn losses(&self, name: &str) -> BTreeMap<u64, u64> {
        let mut losses = BTreeMap::new();
        for line in fs::read_to_string(self.path(name)).unwrap_or_default().lines() {
            let (step, loss) = line.split_once(' ').expect("a step and a loss");
            let loss = loss.parse::<f64>().expect("a number").to_bits();
            let before = losses.insert(step.parse().expect("a step"), loss);
            assert!(before.is_none_or(|before| before == loss), "step {step} has two losses");
        }
        losses
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{said}{}", String::from_utf8_lossy(&stderr));
    said
}

fn fails(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{}{said}", String::from_utf8_lossy(&stdout));
    said
}

/// What a run says in the end of what it learnt.
fn validation(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("validation loss")).expect("it validates")
}

/// Numbers by chance (xorshift); which, a failure says.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Chance(now.as_nanos() as u64 | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Runs of one training, killed so many times, each second time while a save is under way; what
/// there is to find after each kill, and in the end.
fn killed(name: &str, kills: usize, steps: u64) {
    let scratch = Scratch::new(name);
    let begun = Instant::now();
    let said = succeeds(scratch.train(steps).arg("--losses").arg(scratch.path("whole")));
    let span = begun.elapsed();
    let whole = scratch.losses("whole");
    assert_eq!(whole.len() as u64, steps);

    let mut chance = Chance::new();
    let (file, beside) = (scratch.path("run.pt"), scratch.path(".run.pt.saving"));
    let (mut during_saves, mut done, mut runs) = (0, 0, 0);
    let run = |begun_before: bool| {
        let mut command = if begun_before { scratch.resumed() } else { scratch.train(steps) };
        if begun_before {
            command.arg("--resume").arg(&file);
        }
        command.arg("--save").arg(&file).args(["--save-every", "3"]);
        command.arg("--losses").arg(scratch.path("parts"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let mut count = 0;
    while count < kills {
        runs += 1;
        let mut child = run(file.exists()).spawn().unwrap();
        let moment = Duration::from_micros(chance.below(span.as_micros() as u64 / 2));
        let deadline = Instant::now() + moment;
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        // Then, every second time, wait for a save and strike in its midst.
        while count % 2 == 1 && !beside.exists() && child.try_wait().unwrap().is_none() {}
        std::thread::sleep(Duration::from_micros(chance.below(300) * (count % 2) as u64));
        child.kill().unwrap();
        let status = child.wait_with_output().unwrap();
        if status.status.code().is_some() {
            // It was through before the blow: the next one begins anew.
            let said = String::from_utf8_lossy(&status.stderr).into_owned();
            assert!(status.status.success(), "{said}");
            fs::remove_file(&file).unwrap();
            done = 0;
            continue;
        }
        count += 1;
        during_saves += usize::from(beside.exists());
        if file.exists() {
            let found = Checkpoint::load(&file, Device::cpu()).expect("a whole checkpoint").step;
            assert!(found >= done, "step {found} after {done}");
            done = found;
        }
        for (step, loss) in scratch.losses("parts") {
            assert_eq!(whole[&step], loss, "step {step} after {count} kills ({})", chance.0);
        }
    }
    if !file.exists() {
        succeeds(&mut run(false));
    }
    let again = succeeds(run(true).stdout(Stdio::piped()));
    assert_eq!(scratch.losses("parts"), whole);
    assert_eq!(validation(&again), validation(&said));
    assert!(!beside.exists(), "the last save took over what a kill had left");
    assert!(kills < 50 || during_saves > 0, "no kill came during a save");
    println!("{count} kills of {runs} runs, {during_saves} of them during a save, span {span:?}");
}

#[test]
fn killed_runs_go_on_with_the_same_losses() {
    match std::env::var("PLIMSOLL_KILLS").ok().and_then(|kills| kills.parse().ok()) {
        None => killed("few", 6, 40),
        // At length: `PLIMSOLL_KILLS=50 cargo nextest run -p plimsoll-cli --no-capture killed`.
        Some(kills) => killed("many", kills, 8 * kills as u64),
    }
}

#[test]
fn settings_come_from_the_file_and_every_conflict_is_listed() {
    let scratch = Scratch::new("settings");
    let file = scratch.path("run.pt");
    let whole = ["--losses", scratch.path("whole").to_str().unwrap()].map(String::from);
    let said = succeeds(scratch.train(9).args(&whole).arg("--save").arg(&file));
    // A run that is through is not begun again.
    let again = succeeds(scratch.resumed().arg("--resume").arg(&file));
    assert!(again.contains("9 of them are done"), "{again}");
    assert_eq!(validation(&again), validation(&said));

    let other = scratch.path("other");
    fs::write(&other, "another text, long enough for windows of this size. ".repeat(20)).unwrap();
    let mut wrong = scratch.resumed();
    wrong.args(["--batch", "5", "--dropout", "0.5", "--precision", "bfloat16", "--seed", "0"]);
    let said = fails(wrong.arg("--resume").arg(&file).arg("--data").arg(&other));
    for part in [
        "cannot resume",
        "--batch 5: the run has 4",
        "--dropout 0.5: the run has 0.1",
        "--precision bfloat16: the run has float32",
        "--data: the run learns another text",
        "leave these options out",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("--seed"), "{said}");
    let steps = fails(scratch.resumed().args(["--steps", "10"]).arg("--resume").arg(&file));
    assert!(steps.contains("--steps 10: the run has 9"), "{steps}");
}

#[test]
fn what_is_no_checkpoint_of_a_run_is_named() {
    let scratch = Scratch::new("foreign");
    let file = scratch.path("run.pt");
    let resume = |path: &Path| fails(scratch.resumed().arg("--resume").arg(path));
    let missing = resume(&scratch.path("none.pt"));
    assert!(missing.contains("none.pt") && missing.contains("No such file"), "{missing}");
    assert!(resume(&scratch.path("text")).contains("not a zip archive"));

    succeeds(scratch.train(2).arg("--save").arg(&file));
    let whole = fs::read(&file).unwrap();
    let cut = scratch.path("cut.pt");
    for part in [whole.len() - 1, whole.len() / 2, 100, 3, 0] {
        fs::write(&cut, &whole[..part]).unwrap();
        let said = resume(&cut);
        assert!(said.contains("cut.pt"), "{part} bytes of it: {said}");
    }
    let model = Checkpoint::load(&file, Device::cpu()).unwrap().model;
    Checkpoint { model: model.clone(), ..Checkpoint::default() }.save(&cut).unwrap();
    assert!(resume(&cut).contains("a checkpoint of another program"));
    plimsoll_files::save(&cut, &model.into()).unwrap();
    assert!(resume(&cut).contains("not a training checkpoint"));

    // A model of other sizes under settings that do not say so.
    let mut lies = Checkpoint::load(&file, Device::cpu()).unwrap();
    let mut settings = lies.extra.get("settings").and_then(|own| own.as_dict()).unwrap().clone();
    settings.insert("width", 64);
    lies.extra.insert("settings", settings.clone());
    lies.save(&cut).unwrap();
    let said = resume(&cut);
    assert!(said.contains("size mismatch for tokens.weight"), "{said}");
    settings.insert("heads", 0);
    lies.extra.insert("settings", settings);
    lies.save(&cut).unwrap();
    assert!(resume(&cut).contains("--heads: the file has none that makes sense"));
}

#[test]
fn what_cannot_be_saved_or_learnt_is_told_before_the_first_step() {
    let scratch = Scratch::new("before");
    let nowhere = scratch.path("no/such/folder/run.pt");
    let said = fails(scratch.train(5).arg("--save").arg(nowhere));
    assert!(said.contains("cannot write") && said.contains("run.pt"), "{said}");
    let full = fails(scratch.train(5).args(["--save", "/dev/full"]));
    assert!(full.contains("/dev/full"), "{full}");
    let dry =
        fails(scratch.train(5).args(["--device", "dry", "--save"]).arg(scratch.path("dry.pt")));
    assert!(dry.contains("no values to save"), "{dry}");
    assert!(!scratch.path("dry.pt").exists());
    fs::write(scratch.path("text"), "short ".repeat(30)).unwrap();
    let short = fails(&mut scratch.train(5));
    assert!(short.contains("--context") && short.contains("or less"), "{short}");
}

/// On a disk on which one checkpoint fits and the next one beside it does not, which a process of
/// its own mounts where that is allowed.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_neither_ends_the_training_nor_harms_the_last_save() {
    let scratch = Scratch::new("full");
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let allowed = Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        return;
    }
    let (whole, file) = (scratch.path("whole"), scratch.path("run.pt"));
    succeeds(scratch.train(9).arg("--losses").arg(&whole).arg("--save").arg(&file));
    // Before the first step it is a third of that, as the optimizer has kept nothing yet.
    let size = fs::metadata(&file).unwrap().len() * 5 / 4;
    let disk = scratch.path("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} none {0} && {{ \"$@\"; status=$?; cp {0}/run.pt {1}; exit $status; }}",
        disk.display(),
        file.display()
    );
    let mut train = scratch.train(9);
    train.args(["--save-every", "4"]).arg("--save").arg(disk.join("run.pt"));
    let mut command = Command::new(unshare[0]);
    command.args(&unshare[1..]).args(["sh", "-c", &script, "sh"]).arg(train.get_program());
    let Output { status, stdout, stderr } = command.args(train.get_args()).output().unwrap();
    let (out, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(1), "{out}{said}");
    assert_eq!(said.matches("warning: cannot save").count(), 2, "after steps 4 and 8: {said}");
    assert_eq!(said.matches("error: cannot save").count(), 1, "in the end: {said}");
    assert!(said.contains("left it as it was") && said.contains("free some space"), "{said}");
    assert!(out.contains("validation loss"), "it learnt to the end: {out}");
    // What was saved before the first step is whole, and goes on as it would have.
    let parts = scratch.path("parts");
    succeeds(scratch.resumed().arg("--resume").arg(&file).arg("--losses").arg(parts));
    assert_eq!(scratch.losses("parts"), scratch.losses("whole"));
}
