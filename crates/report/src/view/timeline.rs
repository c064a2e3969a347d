//! Bytes over time, stacked by kind or by line, in columns of a power of two of positions. A column
//! shows the state at its highest position, so that its parts add up to a real total and no peak is
//! lost at any zoom, and the lowest total beside it. Wide columns come from a pyramid made once;
//! narrow ones are counted again from the nearest checkpoint.

use serde::Serialize;

use super::scene::DeviceScene;

/// Positions of the pyramid's narrowest column. A window with narrower columns has at most this
/// times its columns of events to count again, which takes about a millisecond.
const BASE: u32 = 256;

/// What the parts of the stack are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The kinds, in the order of `Kind::ALL`.
    Kind,
    /// The lines that hold most, then all others together.
    Site,
}

/// Columns of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineAnswer {
    /// The first column's first position, a multiple of `step`.
    pub from: u32,
    /// Positions in a column: a power of two.
    pub step: u32,
    /// How many parts each column has.
    pub series: usize,
    /// The position of each column's highest total.
    pub at: Vec<u32>,
    /// Each column's lowest total.
    pub low: Vec<u64>,
    /// Column by column, the parts at its highest position.
    pub parts: Vec<u64>,
}

impl TimelineAnswer {
    fn new(from: u32, step: u32, series: usize) -> TimelineAnswer {
        TimelineAnswer { from, step, series, at: vec![], low: vec![], parts: vec![] }
    }

    fn total(&self, column: usize) -> u64 {
        sum(&self.parts[column * self.series..][..self.series])
    }

    /// Takes the positions of one more column; `high` are the parts at its highest position.
    fn push(&mut self, at: u32, low: u64, high: &[u64]) {
        self.at.push(at);
        self.low.push(low);
        self.parts.extend_from_slice(high);
    }
}

/// Sizes in a hostile file may add up to more than there are numbers; then the picture is wrong,
/// and nothing else.
fn sum(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.wrapping_add(*part))
}

/// The smallest power of two of which at most `columns` cover `span` positions.
pub(crate) fn step_of(span: u32, columns: u32) -> u32 {
    span.div_ceil(columns.max(1)).max(1).checked_next_power_of_two().unwrap_or(1 << 31)
}

/// The pyramid of one device and one way of stacking.
#[derive(Debug)]
pub(crate) struct Timeline {
    series: usize,
    /// The part that each allocation belongs to.
    series_of: Vec<u8>,
    /// Level `l` has columns of `BASE << l` positions.
    levels: Vec<TimelineAnswer>,
    /// The parts just before position `BASE * i`, for every `i`.
    checkpoints: Vec<u64>,
}

impl Timeline {
    /// Counts everything once. `series_of` says which part each allocation belongs to, below
    /// `series`.
    pub(crate) fn new(scene: &DeviceScene<'_>, series: usize, series_of: Vec<u8>) -> Timeline {
        let mut timeline = Timeline { series, series_of, levels: vec![], checkpoints: vec![] };
        let mut now = vec![0u64; series];
        // Position 0 is what was there before the trace; a checkpoint lies before it, at nothing.
        let mut checkpoints = now.clone();
        let mut base = TimelineAnswer::new(0, BASE, series);
        let end = scene.lives.last_position();
        let mut from = 0;
        while from <= end {
            let to = (from + BASE - 1).min(end);
            timeline.count(scene, &mut now, from, to, to - from + 1, &mut base);
            checkpoints.extend_from_slice(&now);
            from += BASE;
        }
        timeline.checkpoints = checkpoints;
        timeline.levels.push(base);
        while timeline.levels[timeline.levels.len() - 1].at.len() > 1 {
            let next = halve(&timeline.levels[timeline.levels.len() - 1]);
            timeline.levels.push(next);
        }
        timeline
    }

    /// Columns of `step` positions from `from` to `to`, both included; `now` is the state before
    /// `from` and becomes that at `to`.
    fn count(
        &self,
        scene: &DeviceScene<'_>,
        now: &mut [u64],
        from: u32,
        to: u32,
        step: u32,
        into: &mut TimelineAnswer,
    ) {
        let mut total = sum(now);
        let mut high = now.to_vec();
        let (mut high_at, mut highest, mut low) = (from, 0, u64::MAX);
        let mut births = scene.births_from(from);
        for position in from..=to {
            if let Some(life) = scene.death_at(position) {
                let bytes = scene.lives.bytes[life];
                let part = &mut now[usize::from(self.series_of[life])];
                *part = part.wrapping_sub(bytes);
                total = total.wrapping_sub(bytes);
            }
            while let Some(life) = births.next_if(|life| scene.lives.born[*life] == position) {
                let bytes = scene.lives.bytes[life];
                let part = &mut now[usize::from(self.series_of[life])];
                *part = part.wrapping_add(bytes);
                total = total.wrapping_add(bytes);
            }
            if total > highest || low == u64::MAX {
                (highest, high_at) = (total, position);
                high.copy_from_slice(now);
            }
            low = low.min(total);
            if (position - from + 1).is_multiple_of(step) || position == to {
                into.push(high_at, low, &high);
                (highest, low) = (0, u64::MAX);
            }
        }
    }

    /// The columns between two positions, at most `columns` and one more at the edge.
    pub(crate) fn window(
        &self,
        scene: &DeviceScene<'_>,
        from: u32,
        to: u32,
        columns: u32,
    ) -> TimelineAnswer {
        let end = scene.lives.last_position();
        let to = to.min(end);
        let from = from.min(to);
        let step = step_of(to - from + 1, columns);
        let first = from / step;
        let mut answer = TimelineAnswer::new(first * step, step, self.series);
        if step >= BASE {
            let level = (step / BASE).ilog2() as usize;
            let level = &self.levels[level.min(self.levels.len() - 1)];
            let last = (to / step) as usize;
            for column in first as usize..=last.min(level.at.len() - 1) {
                let parts = &level.parts[column * self.series..][..self.series];
                answer.push(level.at[column], level.low[column], parts);
            }
            return answer;
        }
        let mut now = self.before(scene, answer.from);
        let last = ((to / step + 1) * step - 1).min(end);
        self.count(scene, &mut now, answer.from, last, step, &mut answer);
        answer
    }

    /// The parts just before a position.
    fn before(&self, scene: &DeviceScene<'_>, position: u32) -> Vec<u64> {
        let block = position / BASE;
        let mut now = self.checkpoints[block as usize * self.series..][..self.series].to_vec();
        if position > block * BASE {
            let mut unused = TimelineAnswer::new(0, BASE, self.series);
            self.count(scene, &mut now, block * BASE, position - 1, BASE, &mut unused);
        }
        now
    }
}

/// Two columns into one.
fn halve(level: &TimelineAnswer) -> TimelineAnswer {
    let mut next = TimelineAnswer::new(0, level.step * 2, level.series);
    for left in (0..level.at.len()).step_by(2) {
        let right = (left + 1).min(level.at.len() - 1);
        let highest = if level.total(right) > level.total(left) { right } else { left };
        let parts = &level.parts[highest * level.series..][..level.series];
        next.push(level.at[highest], level.low[left].min(level.low[right]), parts);
    }
    next
}
