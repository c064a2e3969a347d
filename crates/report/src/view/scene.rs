//! Everything about a snapshot that the picture needs, made once when it is opened: places for
//! allocations, orders to find them by, pyramids. It borrows the snapshot and its lives and copies
//! neither.

use std::iter::Peekable;

use super::classes::Classes;
use super::marks::Mark;
use super::moment::{self, MomentAnswer};
use super::pieces::{Piece, pieces};
use super::shapes::{self, Shape, ShapesAnswer, Window};
use super::stacking::Stacking;
use super::timeline::{By, Timeline, TimelineAnswer};
use crate::analysis::{DeviceAnalysis, Lives, Sites};
use crate::findings::Finding;
use crate::kind::Kind;
use crate::report::Report;
use crate::snapshot::Snapshot;

/// No allocation.
const NONE: u32 = u32::MAX;

/// Lines that have a part of their own when the picture is stacked by line; all others share one
/// more.
const MOST_SITE_SERIES: usize = 11;

/// A snapshot, ready to be drawn.
#[derive(Debug)]
pub struct Scene<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) sites: &'a Sites,
    /// One for each device that has a segment or an event.
    pub devices: Vec<DeviceScene<'a>>,
    /// What is said beside the picture.
    pub marks: Vec<Mark>,
}

impl<'a> Scene<'a> {
    /// Makes a report ready, with its findings beside the picture.
    pub fn of(report: &'a Report) -> Scene<'a> {
        let device_of =
            |finding: &Finding| report.devices.iter().find(|d| d.device == finding.device);
        let marks = report
            .findings
            .iter()
            .filter_map(|finding| Some(Mark::of(finding, device_of(finding)?, &report.lines)));
        Scene::new(&report.snapshot, &report.lines.sites, &report.devices, marks.collect())
    }

    /// Makes a snapshot ready; `marks` are shown beside the picture.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        sites: &'a Sites,
        devices: &'a [DeviceAnalysis],
        marks: Vec<Mark>,
    ) -> Scene<'a> {
        let devices = devices.iter().map(|device| DeviceScene::new(snapshot, device, sites));
        Scene { snapshot, sites, devices: devices.collect(), marks }
    }
}

/// One device, ready to be drawn.
#[derive(Debug)]
pub struct DeviceScene<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The device's index; -1 is pinned host memory.
    pub device: i32,
    pub(crate) analysis: &'a DeviceAnalysis,
    pub(crate) lives: &'a Lives,
    pub(crate) sites: &'a Sites,
    /// Where each allocation stands in the picture, in bytes.
    pub(crate) offset: Vec<u64>,
    /// The picture's height in bytes.
    pub(crate) height: u64,
    /// By position: the allocation that ends there.
    deaths: Vec<u32>,
    /// By position: how many have ended there or before.
    ended: Vec<u32>,
    pub(crate) classes: Classes,
    pub(crate) pieces: Vec<Piece>,
    /// The sites that have a part of their own, the largest first.
    pub(crate) top_sites: Vec<u32>,
    timelines: Option<[Timeline; 2]>,
}

impl<'a> DeviceScene<'a> {
    fn new(snapshot: &'a Snapshot, analysis: &'a DeviceAnalysis, sites: &'a Sites) -> Self {
        let lives = &analysis.lives;
        let mut deaths = vec![NONE; lives.last_position() as usize + 1];
        for (life, died) in lives.died.iter().enumerate() {
            if let Some(slot) = deaths.get_mut(*died as usize) {
                *slot = life as u32;
            }
        }
        let ended = deaths.iter().scan(0, |ended, life| {
            *ended += u32::from(*life != NONE);
            Some(*ended)
        });
        let ended = ended.collect();
        let mut scene = DeviceScene {
            snapshot,
            device: analysis.device,
            analysis,
            lives,
            sites,
            offset: vec![0; lives.len()],
            height: 0,
            deaths,
            ended,
            classes: Classes::new(lives),
            pieces: pieces(snapshot, analysis.device),
            top_sites: top_sites(lives, sites),
            timelines: None,
        };
        scene.stack_up();
        let kinds = lives.kind.iter().map(|kind| kind.index() as u8).collect();
        let by_kind = Timeline::new(&scene, Kind::ALL.len(), kinds);
        let others = scene.top_sites.len();
        let mut part_of = vec![others as u8; sites.len()];
        for (part, site) in scene.top_sites.iter().enumerate() {
            part_of[*site as usize] = part as u8;
        }
        let by_line = lives.stack.iter().map(|s| part_of[sites.of_stack(*s).0 as usize]).collect();
        let by_site = Timeline::new(&scene, others + 1, by_line);
        scene.timelines = Some([by_kind, by_site]);
        scene
    }

    fn stack_up(&mut self) {
        let mut stacking = Stacking::new();
        let mut births = self.births_from(0);
        for position in 0..=self.lives.last_position() {
            if let Some(life) = self.death_at(position) {
                stacking.free(self.offset[life], self.lives.bytes[life]);
            }
            while let Some(life) = births.next_if(|life| self.lives.born[*life] == position) {
                self.offset[life] = stacking.place(self.lives.bytes[life]);
            }
        }
        self.height = stacking.highest();
    }

    /// The allocation that ends at a position.
    pub(crate) fn death_at(&self, position: u32) -> Option<usize> {
        let life = *self.deaths.get(position as usize)?;
        (life != NONE).then_some(life as usize)
    }

    /// Allocations from a position on in order of birth.
    pub(crate) fn births_from(
        &self,
        position: u32,
    ) -> Peekable<impl Iterator<Item = usize> + use<>> {
        let in_trace = self.lives.in_trace;
        let before = if position == 0 { in_trace..self.lives.len() } else { 0..0 };
        let first = self.lives.born[..in_trace].partition_point(|born| *born < position);
        before.chain(first..in_trace).peekable()
    }

    /// Bytes over time between two positions.
    pub fn timeline(&self, by: By, from: u32, to: u32, columns: u32) -> TimelineAnswer {
        let [by_kind, by_site] = self.timelines.as_ref().expect("made by `new`");
        let timeline = if by == By::Kind { by_kind } else { by_site };
        timeline.window(self, from, to, columns)
    }

    /// Single allocations in a window.
    pub fn shapes(&self, window: &Window) -> ShapesAnswer {
        shapes::shapes(self, window)
    }

    /// One allocation by its number.
    pub fn allocation(&self, life: u32) -> Option<Shape> {
        ((life as usize) < self.lives.len()).then(|| shapes::shape(self, life))
    }

    /// What is there at a position.
    pub fn moment(&self, at: u32) -> MomentAnswer {
        moment::moment(self, at)
    }

    /// How many allocations are alive at some position from `from` to `to`, both included.
    pub(crate) fn alive_between(&self, from: u32, to: u32) -> usize {
        let lives = self.lives;
        let born = lives.made_by(to);
        let dead = self.ended.get(from as usize).copied().unwrap_or_default() as usize;
        (lives.len() - lives.in_trace) + born - dead
    }

    /// Bytes alive when the snapshot was taken.
    pub(crate) fn bytes_at_end(&self) -> u64 {
        self.lives.bytes_at(self.lives.last_position())
    }

    /// Microseconds since the first event that has a time.
    pub(crate) fn time_us(&self, position: u32) -> u64 {
        let times = &self.snapshot.events.time_us[self.lives.rows.clone()];
        let at = |index: usize| times.get(index).copied().unwrap_or(0);
        at((position as usize).saturating_sub(1)).saturating_sub(at(0))
    }
}

/// The sites that hold most at the peak or at the end.
fn top_sites(lives: &Lives, sites: &Sites) -> Vec<u32> {
    let mut held = vec![[0u64; 2]; sites.len()];
    for (slot, position) in [lives.peak.position, lives.last_position()].into_iter().enumerate() {
        for life in lives.alive_at(position) {
            let site = sites.of_stack(lives.stack[life]).0 as usize;
            held[site][slot] = held[site][slot].saturating_add(lives.bytes[life]);
        }
    }
    let most = |site: &u32| held[*site as usize][0].max(held[*site as usize][1]);
    let mut top: Vec<u32> = (0..sites.len() as u32).filter(|site| most(site) > 0).collect();
    top.sort_by_key(|site| (std::cmp::Reverse(most(site)), *site));
    top.truncate(MOST_SITE_SERIES);
    top
}
