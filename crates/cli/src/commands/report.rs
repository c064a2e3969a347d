//! `plimsoll report FILE`: where the memory of a snapshot went, as text, JSON or HTML. Reading,
//! analysis and rendering are the report crate's.

use std::path::Path;

use anstream::print;
use plimsoll_core::Result;
use plimsoll_report::{Report, html, json, open, text};

use crate::args::{self, ReportFormat};

pub(crate) fn run(options: &args::Report) -> Result<()> {
    print!("{}", rendered(&options.file, options.format)?);
    Ok(())
}

/// The report of a snapshot.
pub(crate) fn rendered(file: &Path, format: ReportFormat) -> Result<String> {
    let report = Report::of(open(file)?, file.display().to_string());
    Ok(match format {
        ReportFormat::Text => text(&report),
        ReportFormat::Json => json(&report),
        ReportFormat::Html => html(&report),
    })
}
