//! A file of losses: a line for each step with its number and its loss, which reads back as the
//! same bits. With it runs are compared, one that was resumed with one that was not.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use plimsoll_core::{Error, ErrorKind, Result};

/// An open file of losses.
pub(crate) struct Losses {
    file: File,
    name: String,
}

impl Losses {
    /// Begins it anew, or adds to it.
    pub(crate) fn open(path: &Path, adds: bool) -> Result<Losses> {
        let name = path.display().to_string();
        let mut how = OpenOptions::new();
        let how = how.create(true).append(adds).write(true).truncate(!adds);
        let file = how.open(path).map_err(|cause| cannot_write(&name, cause))?;
        Ok(Losses { file, name })
    }

    /// In one write, so that a kill leaves no half of a line.
    pub(crate) fn add(&mut self, step: u64, loss: f64) -> Result<()> {
        let line = format!("{step} {loss:?}\n");
        self.file.write_all(line.as_bytes()).map_err(|cause| cannot_write(&self.name, cause))
    }
}

fn cannot_write(name: &str, cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write `{name}`")).because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_read_back_as_the_same_bits_and_lines_are_added() {
        let path = std::env::temp_dir().join(format!("plimsoll-losses-{}", std::process::id()));
        let told = [(1, f64::from(0.1f32)), (2, 5e-324), (3, f64::NAN), (4, 1.0 / 3.0)];
        for (adds, part) in [(false, &told[..2]), (true, &told[2..])] {
            let mut losses = Losses::open(&path, adds).unwrap();
            part.iter().for_each(|(step, loss)| losses.add(*step, *loss).unwrap());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let read = text.lines().map(|line| {
            let (step, loss) = line.split_once(' ').unwrap();
            (step.parse::<u64>().unwrap(), loss.parse::<f64>().unwrap().to_bits())
        });
        assert!(read.eq(told.map(|(step, loss)| (step, loss.to_bits()))), "{text}");
        Losses::open(&path, false).unwrap().add(9, 1.0).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "9 1.0\n");
        std::fs::remove_file(path).unwrap();
    }
}
