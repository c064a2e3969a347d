//! A program's figures as lines of text, cut to a width and a height. It asks nobody; `terminal.rs`
//! shows the lines.

use plimsoll_core::ByteSize;
use plimsoll_live::{Figures, Growing, Level, Part, Row};

/// Columns and rows that lines must fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What text outside of a terminal is cut to; a part has at most twelve rows then.
pub(super) const ONCE: Size = Size { columns: 80, rows: 200 };

/// Parts, the most telling first.
const ORDER: [&str; 4] = ["kind", "line", "module", "holder"];
/// Rows of a part, at most, and what a part must have room for.
const MOST_ROWS: usize = 12;
const LEAST_ROWS: usize = 4;
/// Things that grow which are told in full.
const MOST_GROWING: usize = 3;
/// The columns right of a row's name: bytes, share, count, growth.
const NUMBERS: usize = 12 + 8 + 8 + 13;

/// The frame. What grows comes before what is there, and where not all parts have room, the later
/// ones of [`ORDER`] are left out.
pub(super) fn lines(figures: &Figures, size: Size) -> Vec<String> {
    let width = size.columns.max(40);
    let mut lines = head(figures, width);
    lines.extend(levels(&figures.levels, width));
    lines.extend(growing(&figures.growing, width));
    let notes: Vec<String> =
        figures.notes.iter().map(|note| start_of(&format!("note: {note}"), width)).collect();
    let room = size.rows.saturating_sub(lines.len() + notes.len());
    let (parts, most) = fitting(&figures.parts, room);
    for part in parts {
        lines.extend(part_lines(part, most, width));
    }
    lines.extend(notes);
    lines.truncate(size.rows);
    lines
}

/// The parts that have room, and the most rows that each may have. Each takes two lines besides its
/// rows.
fn fitting(parts: &[Part], room: usize) -> (Vec<&Part>, usize) {
    let mut fitting: Vec<&Part> = parts.iter().filter(|part| !part.rows.is_empty()).collect();
    fitting.sort_by_key(|part| ORDER.iter().position(|by| *by == part.by).unwrap_or(ORDER.len()));
    let needed = |parts: &[&Part], most: usize| {
        parts.iter().map(|part| 2 + part.rows.len().min(most)).sum::<usize>()
    };
    while fitting.len() > 1 && needed(&fitting, LEAST_ROWS) > room {
        fitting.pop();
    }
    let rows = (LEAST_ROWS..=MOST_ROWS).rev().find(|most| needed(&fitting, *most) <= room);
    (fitting, rows.unwrap_or(LEAST_ROWS))
}

fn head(figures: &Figures, width: usize) -> Vec<String> {
    let process = &figures.process;
    let name = start_of(&process.name, width / 2);
    let rest = format!("  pid {}  {}  {}", process.pid, process.runtime, duration(process.seconds));
    let room = width.saturating_sub(name.chars().count());
    let mut second = match figures.step {
        0 => "no step has ended yet".to_string(),
        step => format!("step {step}"),
    };
    if figures.step > 0 && !figures.steps_of.is_empty() && figures.steps_of != "steps" {
        second += &format!(" ({})", figures.steps_of);
    }
    if figures.epoch > 0 {
        second += &format!(", epoch {}", figures.epoch);
    }
    if let Some(each) = figures.step_seconds {
        second += &format!(", {} a step", seconds(each));
    }
    if let Some(resident) = figures.resident_bytes {
        second += &format!("; process {}", ByteSize(resident as usize));
    }
    vec![format!("{}{}", bold(&name), start_of(&rest, room)), start_of(&second, width)]
}

fn levels(levels: &[Level], width: usize) -> Vec<String> {
    if levels.is_empty() {
        return Vec::new();
    }
    let name_width = width.saturating_sub(4 * 13).max(8);
    let mut lines = vec![String::new()];
    lines.push(bold(&format!(
        "{:name_width$}{:>13}{:>13}{:>13}{:>13}",
        "memory", "allocated", "reserved", "peak", "a step"
    )));
    let bytes = |count: Option<u64>| {
        count.map_or("-".to_string(), |count| ByteSize(count as usize).to_string())
    };
    for level in levels {
        lines.push(format!(
            "{:name_width$}{:>13}{:>13}{:>13}{}",
            start_of(&level.name, name_width),
            bytes(level.allocated_bytes),
            bytes(level.reserved_bytes),
            bytes(level.peak_bytes),
            growth(level.growth_per_step),
        ));
    }
    lines
}

fn part_lines(part: &Part, most: usize, width: usize) -> Vec<String> {
    let name_width = width.saturating_sub(NUMBERS).max(8);
    let whole: u64 = part.rows.iter().map(|row| row.bytes).sum();
    let title = format!("by {}", part.by);
    let mut lines = vec![String::new()];
    lines.push(bold(&format!(
        "{title:name_width$}{:>12}{:>8}{:>8}{:>13}",
        "bytes", "share", "count", "a step"
    )));
    for row in &shown(&part.rows, most) {
        lines.push(format!(
            "{:name_width$}{:>12}{:>7.1}%{:>8}{}",
            name(row, &part.by, name_width - 1),
            ByteSize(row.bytes as usize),
            100.0 * row.bytes as f64 / whole.max(1) as f64,
            row.count,
            growth(row.growth_per_step),
        ));
    }
    lines
}

/// The first rows; where there are more, the last of them sums those.
fn shown(rows: &[Row], most: usize) -> Vec<Row> {
    if rows.len() <= most {
        return rows.to_vec();
    }
    let (first, rest) = rows.split_at(most - 1);
    let growth = rest.iter().map(|row| row.growth_per_step).sum::<Option<f64>>();
    // The last row of a part may itself stand for many.
    let count = |row: &Row| match row.name.split_once(" more") {
        Some((number, "")) => number.parse().unwrap_or(1),
        _ => 1usize,
    };
    let mut shown = first.to_vec();
    shown.push(Row {
        name: format!("{} more", rest.iter().map(count).sum::<usize>()),
        bytes: rest.iter().map(|row| row.bytes).sum(),
        count: rest.iter().map(|row| row.count).sum(),
        growth_per_step: growth,
        ..Row::default()
    });
    shown
}

/// A row's name with what more is known of it, as far as there is room. Of a line or a module the
/// end tells it from others, of a holder the beginning; what a line made is worth more than the
/// folders of its file.
fn name(row: &Row, by: &str, width: usize) -> String {
    let is_told_by_its_end = by == "line" || by == "module";
    let whole = row.name.chars().count() + 2 + row.what.chars().count();
    let is_long = by == "line" && !row.what.is_empty() && whole > width;
    let name = if is_long { file_of(&row.name) } else { row.name.as_str() };
    let name = if is_told_by_its_end { end_of(name, width) } else { start_of(name, width) };
    match width.saturating_sub(name.chars().count()) {
        // Less than a word is no help.
        room if room > 8 && !row.what.is_empty() => {
            format!("{name}  {}", start_of(&row.what, room - 2))
        }
        _ => name,
    }
}

/// The last folder of a path and its file.
fn file_of(path: &str) -> &str {
    match path.rmatch_indices('/').nth(1) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

fn growing(growing: &[Growing], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if growing.is_empty() {
        return lines;
    }
    lines.push(String::new());
    lines.push(bold("grows a step"));
    for one in growing.iter().take(MOST_GROWING) {
        let each = ByteSize(one.bytes_per_step.max(0.0) as usize).to_string();
        let said = format!("{each:>11}  {}, {}", one.line, one.kind);
        lines.push(rising(&start_of(&said, width)));
        lines.push(start_of(&format!("{:13}held by {}", "", one.held_by), width));
    }
    if growing.len() > MOST_GROWING {
        lines.push(format!("{:13}and {} more", "", growing.len() - MOST_GROWING));
    }
    lines
}

/// A cell of 13 columns: by how much something grows a step.
fn growth(each: Option<f64>) -> String {
    let Some(each) = each else { return format!("{:>13}", "-") };
    let size = ByteSize(each.abs().round() as usize);
    let (text, is_rising) = match each.round() {
        more if more > 0.0 => (format!("+{size}"), true),
        less if less < 0.0 => (format!("-{size}"), false),
        _ => ("0 B".to_string(), false),
    };
    let cell = format!("{text:>13}");
    if is_rising { rising(&cell) } else { cell }
}

/// A time for people: `13.2 ms`.
pub(super) fn seconds(each: f64) -> String {
    match each {
        _ if each < 1e-3 => format!("{:.0} us", each * 1e6),
        _ if each < 1.0 => format!("{:.1} ms", each * 1e3),
        _ => format!("{each:.2} s"),
    }
}

fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// The text, or its beginning and a mark that there is more.
pub(super) fn start_of(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

fn end_of(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    let end: String = text.chars().skip(length - width.saturating_sub(1)).collect();
    format!("…{end}")
}

pub(super) fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

fn rising(text: &str) -> String {
    format!("\x1b[33m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use plimsoll_live::Process;

    use super::*;

    fn figures() -> Figures {
        let row = |name: &str, what: &str, bytes, growth_per_step| Row {
            name: name.to_string(),
            what: what.to_string(),
            bytes,
            count: 3,
            growth_per_step,
        };
        let kinds = vec![
            row("parameter", "", 3 << 20, Some(0.0)),
            row("activation", "", 1 << 20, Some(76_800.0)),
        ];
        let path = "a/very/long/path/to/a/project/with/folders/train.py:9";
        let lines = (0..30).map(|n| row(&format!("m.py:{n}"), "matmul, activation", 1024, None));
        let lines = [row(path, "", 4 << 20, Some(-2048.0))].into_iter().chain(lines).collect();
        Figures {
            process: Process {
                pid: 4711,
                name: "train.py".to_string(),
                runtime: "PyTorch 2.15.0".to_string(),
                seconds: 125.0,
            },
            step: 312,
            steps_of: "optimizer steps".to_string(),
            epoch: 2,
            step_seconds: Some(0.0132),
            resident_bytes: Some(512 << 20),
            levels: vec![Level {
                name: "cuda:0".to_string(),
                allocated_bytes: Some(5 << 20),
                reserved_bytes: Some(20 << 20),
                peak_bytes: None,
                growth_per_step: Some(76_800.0),
            }],
            parts: vec![
                Part { by: "kind".to_string(), rows: kinds },
                Part { by: "module".to_string(), rows: Vec::new() },
                Part { by: "line".to_string(), rows: lines },
            ],
            growing: vec![Growing {
                bytes_per_step: 76_800.0,
                line: "train.py:9".to_string(),
                kind: "activation kept by a graph".to_string(),
                held_by: "local `history` of main() -> list of 312 -> ".repeat(3),
            }],
            ..Figures::default()
        }
    }

    fn plain(size: Size) -> Vec<String> {
        let lines = lines(&figures(), size);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_frame_has_every_figure_within_80_columns() {
        let lines = plain(ONCE);
        assert_eq!(lines[0], "train.py  pid 4711  PyTorch 2.15.0  2 min 5 s");
        assert_eq!(
            lines[1],
            "step 312 (optimizer steps), epoch 2, 13.2 ms a step; process 512.00 MiB"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let row = |start: &str| {
            let line = lines.iter().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().map(str::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("cuda:0"), "cuda:0 5.00 MiB 20.00 MiB - +75.00 KiB");
        assert_eq!(row("parameter"), "parameter 3.00 MiB 75.0% 3 0 B");
        assert_eq!(row("activation"), "activation 1.00 MiB 25.0% 3 +75.00 KiB");
        assert_eq!(row("m.py:0"), "m.py:0 matmul, activation 1.00 KiB 0.0% 3 -");
        // Of a long path the end is kept.
        let long = lines.iter().find(|line| line.contains("folders/train.py:9")).unwrap();
        assert!(long.starts_with('…') && long.ends_with("-2.00 KiB"), "{long}");
        // A part without rows is left out.
        assert!(!lines.iter().any(|line| line.contains("by module")));
        assert_eq!(row("20 more"), "20 more 20.00 KiB 0.5% 60 -");
        let at = lines.iter().position(|line| line == "grows a step").unwrap();
        assert_eq!(lines[at + 1], "  75.00 KiB  train.py:9, activation kept by a graph");
        assert!(lines[at + 2].starts_with("             held by local `history`"));
    }

    #[test]
    fn a_low_terminal_has_fewer_rows_of_each_part() {
        let lines = plain(Size { columns: 80, rows: 23 });
        assert!(lines.len() <= 23);
        // Both kinds, and as many lines as there is room for; the last stands for the others.
        let at = lines.iter().position(|line| line.starts_with("by line")).unwrap();
        assert_eq!(lines.len() - at, 9, "{lines:#?}");
        assert!(lines[at + 8].starts_with("24 more"), "{lines:#?}");
        // Too low for both: the kinds are more telling.
        let lower = plain(Size { columns: 80, rows: 16 });
        assert!(lower.iter().any(|line| line.starts_with("by kind")), "{lower:#?}");
        assert!(!lower.iter().any(|line| line.starts_with("by line")), "{lower:#?}");
        assert!(plain(Size { columns: 80, rows: 6 }).len() == 6);
        let narrow = plain(Size { columns: 20, rows: 40 });
        assert!(narrow.iter().all(|line| line.chars().count() <= 60), "{narrow:#?}");
    }

    #[test]
    fn what_a_line_made_is_worth_more_than_its_folders() {
        let row = |name: &str, what: &str| Row {
            name: name.to_string(),
            what: what.to_string(),
            ..Row::default()
        };
        let long = row("crates/cli/src/gpt/model.rs:92", "gelu, activation");
        assert_eq!(name(&long, "line", 38), "gpt/model.rs:92  gelu, activation");
        assert_eq!(name(&long, "line", 60), "crates/cli/src/gpt/model.rs:92  gelu, activation");
        let alone = row("crates/cli/src/gpt/model.rs:92", "");
        assert_eq!(name(&alone, "line", 18), "…c/gpt/model.rs:92");
        assert_eq!(file_of("model.rs:9"), "model.rs:9");
    }

    #[test]
    fn times_are_written_for_people() {
        let told = [0.0000124, 0.0132, 1.5].map(seconds);
        assert_eq!(told, ["12 us", "13.2 ms", "1.50 s"]);
        assert_eq!([5.9, 125.0, 7325.0].map(duration), ["5 s", "2 min 5 s", "2 h 2 min"]);
    }
}
