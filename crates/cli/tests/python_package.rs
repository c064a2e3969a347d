//! Commands that the Python package carries out say what is missing where it is not installed.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_python_without_the_package_is_named() {
    let folder = std::env::temp_dir().join(format!("plimsoll-no-package-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let python = folder.join("python");
    // It answers as an interpreter that does not find the package.
    fs::write(&python, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let said = |arguments: &[&str], python: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let output = command.args(arguments).env("PLIMSOLL_PYTHON", python).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let path = python.to_str().unwrap();
    for arguments in [&["run", "train.py"][..], &["doctor", "--measure"]] {
        let (status, errors) = said(arguments, path);
        assert_eq!(status, Some(127), "{errors}");
        assert!(errors.contains(path) && errors.contains("has no package `plimsoll`"), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
    fs::remove_file(&python).unwrap();
    let (status, errors) = said(&["run", "train.py"], path);
    assert!(status == Some(127) && errors.contains("no Python was found"), "{errors}");
    fs::remove_dir_all(&folder).unwrap();
}
