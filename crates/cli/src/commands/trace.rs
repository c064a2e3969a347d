//! `plimsoll trace FILE`: a trace for Perfetto or chrome://tracing.

use plimsoll_core::Result;
use plimsoll_report::{Report, open, trace};

use crate::args;
use crate::output;

pub(crate) fn run(options: &args::Trace) -> Result<()> {
    let report = Report::of(open(&options.file)?, options.file.display().to_string());
    output::write(options.output.as_deref(), |out| trace(&report, out))
}
