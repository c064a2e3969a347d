//! Single allocations in a window: those that are large enough on the screen as rectangles, at most
//! [`MOST_SHAPES`], and how densely the rest fills the picture. Rectangles never overlap, so only
//! so many can be large at once; classes that cannot be are never looked at. The work is bounded by
//! the screen and not by the number of events.

use serde::Serialize;

use super::classes::Class;
use super::scene::DeviceScene;

/// Rectangles in an answer.
const MOST_SHAPES: usize = 3000;
/// Rectangles that are compared before the largest are taken.
const MOST_COMPARED: usize = 60_000;
/// Allocations that are looked at for the density of the rest; with more, every n-th counts n
/// times.
const MOST_SAMPLES: usize = 150_000;
/// A rectangle is drawn as such from this many pixels each way.
const LEAST_PIXELS: f64 = 0.75;
/// Pixels of a cell of the density, each way.
const CELL: u32 = 6;

/// A part of the picture: positions by bytes, and the pixels that show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// First position.
    pub from: u32,
    /// Last position.
    pub to: u32,
    /// Lowest byte of the stack.
    pub low: u64,
    /// Highest byte.
    pub high: u64,
    /// Pixels across.
    pub columns: u32,
    /// Pixels up.
    pub rows: u32,
    /// Only allocations of this site.
    pub site: Option<u32>,
}

/// An allocation as a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Its number on this device.
    pub life: u32,
    /// From this position.
    pub born: u32,
    /// Up to this one; beyond the last if it is alive at the end.
    pub died: u32,
    /// Its place in the stack.
    pub offset: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// Who asked.
    pub stack: u32,
    /// A place in `Kind::ALL`.
    pub kind: u8,
    /// Where it lies in memory. Text, as addresses do not fit a browser's numbers.
    #[serde(serialize_with = "as_hex")]
    pub address: u64,
}

fn as_hex<S: serde::Serializer>(address: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{address:x}"))
}

/// What is in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShapesAnswer {
    /// The largest allocations, the largest on the screen first.
    pub shapes: Vec<Shape>,
    /// Allocations alive at some time of the window, of every size and place.
    pub alive: usize,
    /// Cells of `rest` in a row; rows go up from the lowest byte.
    pub cells_across: u32,
    /// How full each cell is with allocations that are not among the shapes, from 0 to 255.
    pub rest: Vec<u8>,
}

/// A window in the units of the picture.
struct View<'a, 'b> {
    scene: &'a DeviceScene<'b>,
    window: Window,
    /// Positions a pixel.
    across: f64,
    /// Bytes a pixel.
    up: f64,
}

/// A rectangle cut to the window, in pixels.
struct Cut {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl Cut {
    fn area(&self) -> f64 {
        (self.right - self.left) * (self.top - self.bottom)
    }

    fn is_visible(&self) -> bool {
        self.right - self.left >= LEAST_PIXELS && self.top - self.bottom >= LEAST_PIXELS
    }
}

/// What is in `window`.
pub(crate) fn shapes(scene: &DeviceScene<'_>, window: &Window) -> ShapesAnswer {
    let view = View::new(scene, *window);
    let (mut found, cut_off) = view.largest();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (cells_across, rest) = view.density(cut_off);
    ShapesAnswer {
        shapes: found.iter().map(|(_, life)| shape(scene, *life)).collect(),
        alive: scene.alive_between(view.window.from, view.window.to),
        cells_across,
        rest,
    }
}

impl<'a, 'b> View<'a, 'b> {
    fn new(scene: &'a DeviceScene<'b>, mut window: Window) -> Self {
        window.to = window.to.min(scene.lives.last_position());
        window.from = window.from.min(window.to);
        window.columns = window.columns.clamp(1, 8192);
        window.rows = window.rows.clamp(1, 8192);
        window.high = window.high.max(window.low.saturating_add(1));
        let across = f64::from(window.to - window.from + 1) / f64::from(window.columns);
        let up = (window.high - window.low) as f64 / f64::from(window.rows);
        View { scene, window, across, up }
    }

    fn cut(&self, life: u32) -> Option<Cut> {
        let (scene, window, life) = (self.scene, &self.window, life as usize);
        let lives = scene.lives;
        if lives.died[life] <= window.from
            || window.site.is_some_and(|s| scene.sites.of_stack(lives.stack[life]).0 != s)
        {
            return None;
        }
        let start = scene.offset[life];
        let end = start.saturating_add(lives.bytes[life]);
        if end <= window.low || start >= window.high {
            return None;
        }
        let x =
            |at: u32| f64::from(at.clamp(window.from, window.to + 1) - window.from) / self.across;
        let y = |at: u64| (at.clamp(window.low, window.high) - window.low) as f64 / self.up;
        Some(Cut {
            left: x(lives.born[life]),
            right: x(lives.died[life]),
            bottom: y(start),
            top: y(end),
        })
    }

    /// The most that one of a class can cover, in pixels.
    fn largest_area(&self, class: &Class) -> Option<f64> {
        let width = (class.life_end() / self.across).min(f64::from(self.window.columns));
        let height = (class.bytes_end() / self.up).min(f64::from(self.window.rows));
        (width >= LEAST_PIXELS && height >= LEAST_PIXELS).then_some(width * height)
    }

    /// The largest rectangles with their areas, and the area from which on all are among them.
    fn largest(&self) -> (Vec<(f64, u32)>, f64) {
        let classes = &self.scene.classes;
        let mut order: Vec<(f64, &Class)> =
            classes.iter().filter_map(|c| Some((self.largest_area(c)?, c))).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut found = Vec::new();
        let mut cut_off = 0.0;
        for (most, class) in order {
            if found.len() > MOST_COMPARED {
                cut_off = most;
                break;
            }
            let born = &self.scene.lives.born;
            for life in classes.near(class, born, self.window.from, self.window.to) {
                if let Some(cut) = self.cut(*life).filter(Cut::is_visible) {
                    found.push((cut.area(), *life));
                }
            }
        }
        if found.len() > MOST_SHAPES {
            found.select_nth_unstable_by(MOST_SHAPES, |a, b| {
                b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
            });
            cut_off = f64::max(cut_off, found[MOST_SHAPES].0);
            found.truncate(MOST_SHAPES);
        }
        (found, cut_off)
    }

    /// How full each cell is with what is not among the largest.
    fn density(&self, cut_off: f64) -> (u32, Vec<u8>) {
        let (across, up) = (self.window.columns.div_ceil(CELL), self.window.rows.div_ceil(CELL));
        let mut cells = vec![0f32; (across * up) as usize];
        let (scene, window) = (self.scene, &self.window);
        let near = |class| scene.classes.near(class, &scene.lives.born, window.from, window.to);
        let all: usize = scene.classes.iter().map(|class| near(class).len()).sum();
        let every = all.div_ceil(MOST_SAMPLES).max(1);
        for class in scene.classes.iter() {
            for life in near(class).iter().step_by(every) {
                let Some(cut) = self.cut(*life) else { continue };
                if !cut.is_visible() || cut.area() <= cut_off {
                    fill(&mut cells, across, &cut, every as f32);
                }
            }
        }
        let full = (CELL * CELL) as f32;
        let byte = |cell: &f32| match *cell {
            0.0 => 0,
            // What is there at all is visible.
            some => (some / full * 255.0).clamp(12.0, 255.0) as u8,
        };
        (across, cells.iter().map(byte).collect())
    }
}

/// One allocation by its number, which must be one of this device.
pub(crate) fn shape(scene: &DeviceScene<'_>, life: u32) -> Shape {
    let (lives, at) = (scene.lives, life as usize);
    Shape {
        life,
        born: lives.born[at],
        died: lives.died[at].min(lives.last_position() + 1),
        offset: scene.offset[at],
        bytes: lives.bytes[at],
        stack: lives.stack[at].0,
        kind: lives.kind[at].index() as u8,
        address: lives.addr[at],
    }
}

/// Adds a rectangle to the cells that it covers, in square pixels.
fn fill(cells: &mut [f32], across: u32, cut: &Cut, weight: f32) {
    let cell = f64::from(CELL);
    let up = cells.len() as u32 / across;
    let last_column = ((cut.right / cell) as u32).min(across - 1);
    for row in (cut.bottom / cell) as u32..=((cut.top / cell) as u32).min(up - 1) {
        let y = f64::from(row) * cell;
        let height = (cut.top.min(y + cell) - cut.bottom.max(y)).max(0.0);
        for column in (cut.left / cell) as u32..=last_column {
            let x = f64::from(column) * cell;
            let width = (cut.right.min(x + cell) - cut.left.max(x)).max(0.0);
            cells[(row * across + column) as usize] += (width * height) as f32 * weight;
        }
    }
}
