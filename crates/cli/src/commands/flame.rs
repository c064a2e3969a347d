//! `plimsoll flame FILE`: what is alive at the peak, or at another moment, as a flame graph.

use plimsoll_core::{Error, Result};
use plimsoll_report::{Report, flame, open};

use crate::args;
use crate::output;

pub(crate) fn run(options: &args::Flame) -> Result<()> {
    let report = Report::of(open(&options.file)?, options.file.display().to_string());
    let device = match options.device {
        None => report.busiest(),
        Some(wanted) => report.devices.iter().find(|device| device.device == wanted),
    };
    let device = device.ok_or_else(|| {
        Error::invalid_argument("the snapshot holds no memory of that device".to_string())
    })?;
    let position = match options.at {
        Some(moment) => moment.position(&report.snapshot, device),
        None => device.lives.peak.position,
    };
    let svg = flame(&report, device, position);
    output::write(options.output.as_deref(), |out| out.write_all(svg.as_bytes()))
}
