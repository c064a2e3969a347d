//! `plimsoll diff A B`: what changed between the peaks of two snapshots. Nothing is printed if
//! nothing changed.

use anstream::print;
use plimsoll_core::{ByteSize, Error, Result};
use plimsoll_report::{Diff, Report, open};

use crate::args::{self, Format};

pub(crate) fn run(options: &args::Diff) -> Result<()> {
    let read = |path: &std::path::Path| -> Result<Report> {
        Ok(Report::of(open(path)?, path.display().to_string()))
    };
    let diff = Diff::of(&read(&options.before)?, &read(&options.after)?);
    match options.format {
        Format::Text => print!("{}", diff.text()),
        Format::Json => print!("{}", diff.json()),
    }
    let growth = ByteSize(usize::try_from(diff.peak_growth()).unwrap_or(usize::MAX));
    match options.fail_above {
        Some(limit) if growth > limit => Err(Error::invalid_argument(format!(
            "the peak grew by {growth}, which is more than {limit}"
        ))),
        _ => Ok(()),
    }
}
