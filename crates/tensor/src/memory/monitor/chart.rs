//! Lines of bytes over time as a picture: SVG that follows a page's light or dark colours.

use std::fmt::Write;

use plimsoll_core::ByteSize;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
/// Left, right, above and below the lines.
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 110.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = HEIGHT - 34.0;
/// From one name to the next, at least.
const NAME_HEIGHT: f64 = 15.0;
/// Points of a line at most.
const MOST_POINTS: usize = 1500;

const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #333 } .grid { stroke: #ddd }
polyline { fill: none; stroke-width: 1.6 } .paper { fill: #fff }
.c0 { stroke: #1f6feb } .c1 { stroke: #8250df } .c2 { stroke: #1a7f37 } .c3 { stroke: #9a6700 }
text.c0 { stroke: none; fill: #1f6feb } text.c1 { stroke: none; fill: #8250df }
text.c2 { stroke: none; fill: #1a7f37 } text.c3 { stroke: none; fill: #9a6700 }
@media (prefers-color-scheme: dark) {
  text { fill: #ccc } .grid { stroke: #333 } .paper { fill: #111 }
}
";

/// One line of the picture, a value for each point in time.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<usize>,
}

/// The picture. A line that is 0 throughout is left out. Names and title are the runtime's own
/// words, which need no escapes.
pub(super) fn chart(title: &str, seconds: &[f64], lines: &[Line]) -> String {
    let shown: Vec<(usize, &Line)> =
        lines.iter().enumerate().filter(|(_, line)| line.bytes.iter().any(|&at| at > 0)).collect();
    let end = seconds.last().copied().filter(|&end| end > 0.0).unwrap_or(1.0);
    let most = shown.iter().flat_map(|(_, line)| line.bytes.iter().copied()).max().unwrap_or(1);
    let up = |bytes: f64| BELOW - (BELOW - ABOVE) * bytes / most as f64;
    let across = |at: f64| LEFT + (RIGHT - LEFT) * at / end;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text x=\"{LEFT}\" y=\"20\">{title}</text>\n"
    );
    for quarter in 0..5 {
        let part = f64::from(quarter) / 4.0;
        let (bytes, at) = (most as f64 * part, end * part);
        let (height, label) = (up(bytes), ByteSize(bytes as usize));
        let _ = write!(
            picture,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{height:.1}\" \
             y2=\"{height:.1}\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{} s</text>\n",
            LEFT - 8.0,
            height + 4.0,
            across(at),
            HEIGHT - 12.0,
            three_digits(at)
        );
    }
    let heights = heights_of_names(&shown, up);
    for ((number, line), height) in shown.iter().zip(heights) {
        let points = points(line, seconds, across, up);
        let _ = write!(
            picture,
            "<polyline class=\"c{number}\" points=\"{points}\"/>\n\
             <text class=\"c{number}\" x=\"{}\" y=\"{:.1}\">{}</text>\n",
            RIGHT + 8.0,
            height + 4.0,
            line.name
        );
    }
    picture + "</svg>\n"
}

fn points(
    line: &Line,
    seconds: &[f64],
    across: impl Fn(f64) -> f64,
    up: impl Fn(f64) -> f64,
) -> String {
    let last = seconds.len().saturating_sub(1);
    let kept = (0..last).step_by((seconds.len() / MOST_POINTS).max(1)).chain([last]);
    let point = |at: usize| format!("{:.1},{:.1}", across(seconds[at]), up(line.bytes[at] as f64));
    kept.map(point).collect::<Vec<String>>().join(" ")
}

/// Where each name stands: beside the end of its line. Those that would lie upon each other move
/// up, the lowest first.
fn heights_of_names(shown: &[(usize, &Line)], up: impl Fn(f64) -> f64) -> Vec<f64> {
    let end = |line: &Line| up(line.bytes.last().copied().unwrap_or(0) as f64);
    let mut heights: Vec<f64> = shown.iter().map(|(_, line)| end(line)).collect();
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.sort_by(|&a, &b| heights[b].total_cmp(&heights[a]).then(b.cmp(&a)));
    let mut lowest = BELOW;
    for at in order {
        heights[at] = heights[at].min(lowest);
        lowest = heights[at] - NAME_HEIGHT;
    }
    heights
}

/// A number with three digits that count: `0.25`, `12.5`, `1230`.
fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_upon_each_other() {
        let line = |name, bytes: usize| Line { name, bytes: vec![bytes, bytes] };
        let lines = [line("a", 100), line("b", 101), line("c", 1000)];
        let shown: Vec<(usize, &Line)> = lines.iter().enumerate().collect();
        let heights = heights_of_names(&shown, |bytes| 266.0 - bytes / 5.0);
        assert_eq!(heights, [246.0, 231.0, 66.0]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let told = [0.0, 0.25, 1.0, 12.345, 1234.0, 0.001_234].map(three_digits);
        assert_eq!(told, ["0", "0.25", "1", "12.3", "1234", "0.00123"]);
    }

    #[test]
    fn long_series_have_few_points() {
        let seconds: Vec<f64> = (0..10_000).map(f64::from).collect();
        let line = Line { name: "a", bytes: (0..10_000).collect() };
        let picture = chart("many", &seconds, &[line]);
        let points = picture.split("points=\"").nth(1).and_then(|rest| rest.split('"').next());
        let points: Vec<&str> = points.expect("a line").split(' ').collect();
        assert!(points.len() <= MOST_POINTS + 200, "{}", points.len());
        assert_eq!(points.last(), Some(&"650.0,34.0"));
    }
}
