//! `plimsoll report FILE`: where the memory of a snapshot went, as text, JSON or HTML. Reading,
//! analysis and rendering are the report crate's.

use anstream::print;
use plimsoll_core::Result;
use plimsoll_report::{Report, html, json, open, text};

use crate::args::{self, ReportFormat};

pub(crate) fn run(options: &args::Report) -> Result<()> {
    let report = Report::of(open(&options.file)?, options.file.display().to_string());
    match options.format {
        ReportFormat::Text => print!("{}", text(&report)),
        ReportFormat::Json => print!("{}", json(&report)),
        ReportFormat::Html => print!("{}", html(&report)),
    }
    Ok(())
}
