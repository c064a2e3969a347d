//! What nothing has used lately: from which moment on a use counts, how much was needed since, and
//! which bytes of a segment no allocation has covered since.

use super::Case;
use crate::analysis::{ALIVE, Lives, PlacedSegment};

/// From which position on needs count. Where the program repeats itself, from the start of a step
/// in the last third, so that whole steps are seen. Once its loop is over, what the loop needed is
/// over too: then only what was asked for since counts.
pub(super) fn lately(case: &Case<'_>) -> u32 {
    let lives = &case.device.lives;
    let last = lives.last_position();
    let Some(steps) = case.device.steps.first().filter(|steps| steps.count() >= 3) else {
        return last - last / 3;
    };
    let born = &lives.born[..lives.in_trace];
    let bounds = &steps.bounds;
    let (start, end) = (lives.made_by(bounds[0]), lives.made_by(bounds[steps.count()]));
    // A last step that the loop did not close lies after the last bound; what goes well beyond it
    // is no step any more.
    let step = (end - start).div_ceil(steps.count());
    match born.get(end + 2 * step) {
        Some(_) => born[end + step] - 1,
        None => bounds[steps.count() * 2 / 3],
    }
}

/// The most bytes alive at once when something was asked for after a position. What is only let go
/// there needs nothing.
pub(super) fn highest_since(lives: &Lives, from: u32) -> u64 {
    let mut changes: Vec<(u32, i128)> = Vec::new();
    for life in 0..lives.len() {
        if lives.died[life] <= from {
            continue;
        }
        if lives.born[life] > from {
            changes.push((lives.born[life], i128::from(lives.bytes[life])));
        }
        if lives.died[life] != ALIVE {
            changes.push((lives.died[life], -i128::from(lives.bytes[life])));
        }
    }
    changes.sort_unstable();
    let start = lives.bytes_at(from);
    let (mut now, mut highest) = (0i128, None);
    for (_, change) in changes {
        now += change;
        if change > 0 {
            highest = Some(highest.map_or(now, |most: i128| most.max(now)));
        }
    }
    let wide = i128::from(start) + highest.unwrap_or(0);
    u64::try_from(wide.max(0)).unwrap_or(u64::MAX)
}

/// The addresses that something has covered since a position: ranges in order, none touching the
/// next.
pub(super) struct Touched(Vec<(u64, u64)>);

impl Touched {
    pub(super) fn since(lives: &Lives, from: u32) -> Touched {
        let mut ranges: Vec<(u64, u64)> = (0..lives.len())
            .filter(|life| lives.died[*life] > from)
            .map(|life| (lives.addr[life], lives.end(life)))
            .collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Touched(ranges)
    }

    /// Bytes of a segment that nothing has covered.
    pub(super) fn unused_bytes(&self, segment: &PlacedSegment) -> u64 {
        let (start, end) = (segment.range.start, segment.range.end);
        let first = self.0.partition_point(|range| range.1 <= start);
        let inside = self.0[first..].iter().take_while(|range| range.0 < end);
        let covered = inside.map(|range| range.1.min(end) - range.0.max(start)).sum::<u64>();
        segment.total_bytes() - covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_nothing_covered_since_are_counted_once() {
        let lives = Lives {
            addr: vec![0, 1024, 1024, 4096],
            bytes: vec![700, 512, 1500, 10_000],
            born: vec![1, 2, 9, 4],
            died: vec![ALIVE, 12, ALIVE, 5],
            ..Lives::default()
        };
        let segment = |range: std::ops::Range<u64>| PlacedSegment {
            range,
            lives: vec![],
            used_bytes: 0,
            largest_hole_bytes: 0,
            holes: 0,
            tail_bytes: 0,
        };
        // 700 bytes take 1024, 1500 take 1536; the last one was gone by then.
        let touched = Touched::since(&lives, 6);
        assert_eq!(touched.0, [(0, 2560)]);
        assert_eq!(touched.unused_bytes(&segment(0..8192)), 8192 - 2560);
        assert_eq!(touched.unused_bytes(&segment(2048..4096)), 1536);
        assert_eq!(touched.unused_bytes(&segment(4096..8192)), 4096);
        assert_eq!(Touched::since(&lives, 4).unused_bytes(&segment(4096..8192)), 0);
    }
}
