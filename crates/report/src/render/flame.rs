//! A flame graph as one SVG: each box is a frame, as wide as the bytes that were asked for below it
//! and are alive at one position. A click zooms, a search marks; the script is inside the file,
//! which needs nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::html::escaped;
use super::text::size;
use crate::analysis::{Amount, DeviceAnalysis, LiveSet};
use crate::report::Report;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// Boxes narrower than this, in units of the drawing, are left out.
const NARROWEST: f64 = 0.2;
/// Frames below this depth are left out: recursion.
const DEEPEST: usize = 200;

/// A frame under its callers.
#[derive(Default)]
struct Node {
    bytes: u64,
    count: u64,
    /// By name, so that the drawing is the same each time.
    children: BTreeMap<String, usize>,
}

impl Node {
    fn add(&mut self, amount: Amount) {
        self.bytes = self.bytes.saturating_add(amount.bytes);
        self.count += amount.count;
    }
}

/// The flame graph of what is alive on a device at a position.
pub fn flame(report: &Report, device: &DeviceAnalysis, position: u32) -> String {
    let live = LiveSet::at(&device.lives, &report.lines.sites, position);
    let nodes = tree(report, &live);
    let mut boxes = String::new();
    let mut depth_seen = 0;
    // Depth first with a list of what is left: (node, name, left edge, depth).
    let name = report.snapshot.device_name(device.device);
    let mut left = vec![(0, name, 0.0, 0)];
    let scale = WIDTH / nodes[0].bytes.max(1) as f64;
    while let Some((at, name, x, depth)) = left.pop() {
        let node = &nodes[at];
        let width = node.bytes as f64 * scale;
        if width < NARROWEST {
            continue;
        }
        depth_seen = depth_seen.max(depth);
        draw(&mut boxes, node, &name, x, width, depth, nodes[0].bytes);
        let mut next = x;
        for (name, child) in &node.children {
            left.push((*child, name.clone(), next, depth + 1));
            next += nodes[*child].bytes as f64 * scale;
        }
    }
    page(report, &live, &boxes, depth_seen)
}

/// The tree of all stacks; node 0 is the device.
fn tree(report: &Report, live: &LiveSet) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    for (stack, amount) in &live.by_stack {
        let mut frames: Vec<String> = report
            .snapshot
            .frames_of(*stack)
            .map(|(function, file, line)| match (function, line) {
                ("", _) => format!("{}:{line}", crate::short_path(file)),
                (_, 0) => function.to_string(),
                _ => format!("{function} ({}:{line})", crate::short_path(file)),
            })
            .collect();
        frames.reverse();
        if frames.is_empty() {
            frames.push("(no Python frames)".to_string());
        }
        let mut at = 0;
        nodes[0].add(*amount);
        for frame in frames.into_iter().take(DEEPEST) {
            let next = nodes.len();
            at = *nodes[at].children.entry(frame).or_insert(next);
            if at == next {
                nodes.push(Node::default());
            }
            nodes[at].add(*amount);
        }
    }
    nodes
}

fn draw(out: &mut String, node: &Node, name: &str, x: f64, width: f64, depth: usize, all: u64) {
    let name = escaped(name);
    let share = 100.0 * node.bytes as f64 / all.max(1) as f64;
    let _ = writeln!(
        out,
        "<g class=\"f\" data-x=\"{x:.3}\" data-w=\"{width:.3}\" data-d=\"{depth}\" tabindex=\"0\">\
         <title>{name}\n{} ({share:.1} %), {} allocations</title>\
         <rect x=\"{x:.3}\" y=\"{:.1}\" width=\"{width:.3}\" height=\"{:.1}\" fill=\"{}\"/>\
         <text x=\"{:.3}\" y=\"{:.1}\">{name}</text></g>",
        size(node.bytes),
        node.count,
        depth as f64 * ROW,
        ROW - 1.0,
        colour(&name),
        x + 3.0,
        depth as f64 * ROW + 13.0,
    );
}

/// A warm colour that belongs to the name.
fn colour(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({} {}% {}%)", 12 + hash % 42, 62 + (hash >> 8) % 20, 62 + (hash >> 16) % 12)
}

fn page(report: &Report, live: &LiveSet, boxes: &str, depth: usize) -> String {
    let height = (depth + 1) as f64 * ROW;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -40 {WIDTH} {:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<style>\n.f {{ cursor: pointer }} .f text {{ pointer-events: none; fill: #20160c }} \
         .f:hover rect, .f:focus rect {{ stroke: #20160c }} .m rect {{ fill: #7a3fb0 }} .m text {{ fill: #fff }}\n\
         </style>\n<rect x=\"0\" y=\"-40\" width=\"{WIDTH}\" height=\"100%\" fill=\"#fbfaf7\"/>\n\
         <text x=\"4\" y=\"-22\" font-size=\"14\">{}: {} alive at event {}</text>\n\
         <text id=\"hint\" x=\"4\" y=\"-6\">click to zoom, click the lowest box to return, press / to search</text>\n\
         <g id=\"flame\">\n{boxes}</g>\n<script><![CDATA[\n{}]]></script>\n</svg>\n",
        height + 44.0,
        escaped(&report.source),
        size(live.total.bytes),
        live.position,
        include_str!("flame.js"),
    )
}
