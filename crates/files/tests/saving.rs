//! Saves that fail: at every byte, on a full disk, and by a kill. The old file is whole each time.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_core::DType;
use plimsoll_files::{Dict, Source, Value, load, load_from, safetensors, save, write};
use plimsoll_nn::StateDict;
use plimsoll_tensor::{Device, Tensor};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// Takes so many bytes, a few at a time, and then fails.
struct Full {
    left: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.left).min(7);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn value(number: i64, elements: i64) -> Value {
    let mut dict = Dict::new();
    dict.insert("number", number);
    dict.insert("tensor", Tensor::full(&[elements], number, DType::I64).unwrap());
    dict.into()
}

#[test]
fn a_writer_that_fails_at_any_byte_is_an_error() {
    let value = value(3, 20);
    let mut whole = Vec::new();
    write(&mut whole, &value).unwrap();
    for left in 0..whole.len() {
        let error = write(&mut Full { left }, &value).unwrap_err();
        assert!(error.to_string().contains("reading or writing failed"), "{error}");
    }
    write(&mut Full { left: whole.len() }, &value).unwrap();
    let mut state = StateDict::new();
    state.insert("x", Tensor::ones(&[9], DType::BF16).unwrap());
    let mut whole = Vec::new();
    safetensors::save(&state, &mut whole, &Default::default()).unwrap();
    for left in 0..whole.len() {
        safetensors::save(&state, &mut Full { left }, &Default::default()).unwrap_err();
    }
}

#[cfg(unix)]
#[test]
fn a_link_beside_the_file_leads_no_save_elsewhere() {
    let folder = folder("link-beside");
    let (path, other) = (folder.join("state.pt"), folder.join("other"));
    std::fs::write(&other, "mine").unwrap();
    std::os::unix::fs::symlink(&other, folder.join(".state.pt.saving")).unwrap();
    save(&path, &value(1, 4)).unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    assert!(load(&path, Device::cpu()).is_ok() && !folder.join(".state.pt.saving").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_same_value_is_the_same_file() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    write(&mut first, &value(3, 20)).unwrap();
    write(&mut second, &value(3, 20)).unwrap();
    assert_eq!(first, second);
    let read = load_from(Source::from(first), false, &mut |_| Ok(Device::cpu())).unwrap();
    assert_eq!(read.get("number").and_then(Value::as_int), Some(3));
}

#[test]
fn what_cannot_be_saved_says_why_and_leaves_nothing() {
    let folder = folder("refused");
    let path = folder.join("state.pt");
    let x = Tensor::arange(0, 4, 1, DType::I32).unwrap();
    let same: Value = vec![x.clone(), x.view(DType::F32).unwrap()].into();
    let error = save(&path, &same).unwrap_err().to_string();
    assert!(error.contains("view the same data as different types"), "{error}");
    let mut deep = Value::None;
    for _ in 0..600 {
        deep = Value::List(vec![deep]);
    }
    assert!(save(&path, &deep).unwrap_err().to_string().contains("nested"));
    let tensors = |tensors: Vec<(&str, Tensor)>| -> StateDict {
        tensors.into_iter().map(|(name, tensor)| (name.to_string(), tensor)).collect()
    };
    let square = Tensor::ones(&[2, 2], DType::F32).unwrap();
    for (state, says) in [
        (tensors(vec![("a", x.clone()), ("b", x.narrow(0, 1, 2).unwrap())]), "[\"a\", \"b\"]"),
        (tensors(vec![("a", square.narrow(1, 0, 1).unwrap())]), "non contiguous tensor: `a`"),
        (tensors(vec![("__metadata__", x.clone())]), "no name for a tensor"),
    ] {
        let error = safetensors::save_file(&state, &path, &Default::default()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    // Parts that do not touch are tensors of their own.
    let parts = tensors(vec![("a", x.narrow(0, 0, 2).unwrap()), ("b", x.narrow(0, 2, 2).unwrap())]);
    safetensors::save_file(&parts, &path, &Default::default()).unwrap();
    let read = safetensors::load_file(&path, Device::cpu()).unwrap();
    assert_eq!(read.get("b").unwrap().to_vec::<i32>().unwrap(), [2, 3]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The process that the next two tests run: it saves to the file that the variable names, again and
/// again, and says so; on a full disk it says that.
#[test]
fn saver() {
    let Some(path) = std::env::var_os("PLIMSOLL_TEST_SAVES_TO") else { return };
    let path = Path::new(&path);
    let elements = if std::env::var_os("PLIMSOLL_TEST_FULL").is_some() { 1 << 16 } else { 20_000 };
    let mut out = io::stdout();
    for number in 0.. {
        match save(path, &value(number, elements)) {
            Ok(()) => writeln!(out, "saved {number}").unwrap(),
            Err(error) => {
                writeln!(out, "error {}", error.to_string().replace('\n', " ")).unwrap();
                break;
            }
        }
    }
    let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().count() - 1;
    writeln!(out, "beside: {beside}").unwrap();
}

fn saver_command(prefix: &[&str]) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match prefix {
        [] => Command::new(this),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(this);
            command
        }
    };
    command.args(["--exact", "saver", "--nocapture", "--test-threads=1"]);
    command
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_file() {
    let folder = folder("kill");
    let path = folder.join("state.pt");
    save(&path, &value(-1, 20_000)).unwrap();
    for round in 0..15u64 {
        let mut command = saver_command(&[]);
        command.env("PLIMSOLL_TEST_SAVES_TO", &path).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        // From before the first save to the middle of a later one, at no regular distance.
        std::thread::sleep(Duration::from_micros(5_000 + round * round * 1_700 % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let read = load(&path, Device::cpu()).unwrap();
        let number = read.get("number").and_then(Value::as_int).unwrap();
        let tensor = read.get("tensor").and_then(Value::as_tensor).unwrap();
        assert_eq!(tensor.to_vec::<i64>().unwrap(), vec![number; 20_000], "one save's, whole");
        let beside = std::fs::read_dir(&folder).unwrap().count();
        assert!(beside <= 2, "at most one file beside it, however often it is killed");
    }
    save(&path, &value(7, 3)).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "which the next save takes over");
    std::fs::remove_dir_all(folder).unwrap();
}

/// On a disk of 1 MiB, which a process of its own mounts. Where that is not allowed, the writers
/// above that fail at every byte are what there is.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_old_file() {
    let folder = folder("full");
    let mount = format!(
        "mount -t tmpfs -o size=1m none {0} && cp {0}.pt {0}/state.pt && \"$@\" && cp {0}/state.pt {0}.after",
        folder.display()
    );
    let small = PathBuf::from(format!("{}.pt", folder.display()));
    let after = PathBuf::from(format!("{}.after", folder.display()));
    // Two of these do not fit: the second save finds the disk full.
    save(&small, &value(-1, 1 << 16)).unwrap();
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let allowed = Command::new(unshare[0]).args(&unshare[1..]).args(["true"]).status();
    if allowed.is_ok_and(|status| status.success()) {
        let mut command = saver_command(&[&unshare[..], &["sh", "-c", &mount, "sh"]].concat());
        command.env("PLIMSOLL_TEST_SAVES_TO", folder.join("state.pt"));
        let output = command.env("PLIMSOLL_TEST_FULL", "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let failed = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{failed}");
        assert!(said.contains("error cannot save") && said.contains("left it as it was"), "{said}");
        assert!(said.contains("free some space"), "{said}");
        assert!(said.contains("beside: 0"), "nothing is left beside it: {said}");
        let read = load(&after, Device::cpu()).unwrap();
        let tensor = read.get("tensor").and_then(Value::as_tensor).unwrap();
        assert_eq!(tensor.to_vec::<i64>().unwrap(), vec![-1; 1 << 16], "the old file is whole");
        std::fs::remove_file(after).unwrap();
    }
    std::fs::remove_file(small).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
