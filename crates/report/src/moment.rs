//! A moment of a trace as people name it: a share of the trace, or a time from its start.

use std::str::FromStr;

use plimsoll_core::Error;

use crate::analysis::DeviceAnalysis;
use crate::snapshot::Snapshot;

/// A moment of a trace.
///
/// ```
/// use plimsoll_report::Moment;
/// assert_eq!("50%".parse::<Moment>()?, Moment::Percent(50.0));
/// assert_eq!("1.5s".parse::<Moment>()?, Moment::Microseconds(1_500_000));
/// assert!("noon".parse::<Moment>().is_err());
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// A share of the events.
    Percent(f64),
    /// Time since the first event.
    Microseconds(u64),
}

impl FromStr for Moment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Moment, Error> {
        let bad = || {
            Error::invalid_argument(format!(
                "`{text}` is no moment: write a share, as in `50%`, or a time from the start of the \
                 trace, as in `1.5s`, `20ms` or `700us`"
            ))
        };
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let number: f64 = text[..split].parse().map_err(|_| bad())?;
        let scale = match text[split..].trim() {
            "%" if number <= 100.0 => return Ok(Moment::Percent(number)),
            "s" => 1e6,
            "ms" => 1e3,
            "us" => 1.0,
            _ => return Err(bad()),
        };
        Ok(Moment::Microseconds((number * scale) as u64))
    }
}

impl Moment {
    /// The position of a device's trace at this moment.
    pub fn position(self, snapshot: &Snapshot, device: &DeviceAnalysis) -> u32 {
        let rows = device.lives.rows.clone();
        let last = device.lives.last_position();
        match self {
            Moment::Percent(share) => (f64::from(last) * share / 100.0).round() as u32,
            Moment::Microseconds(time) => {
                let times = &snapshot.events.time_us[rows];
                let start = times.first().copied().unwrap_or(0);
                times.partition_point(|at| at.saturating_sub(start) <= time) as u32
            }
        }
    }
}
