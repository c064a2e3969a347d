//! PyTorch's table of averages, column by column and space by space.

use plimsoll_core::Result;

use crate::averages::{Average, Averages};
use crate::event::EventKind;
use crate::figures::{format_bytes, format_time_us, share};

/// The unit of all times in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
}

/// How a table is written.
#[derive(Clone, Debug)]
pub struct TableOptions {
    sort_by: Option<String>,
    row_limit: Option<usize>,
    max_name_width: Option<usize>,
    max_shapes_width: Option<usize>,
    max_source_width: Option<usize>,
    header: Option<String>,
    top_level_only: bool,
    time_unit: Option<TimeUnit>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            sort_by: None,
            row_limit: Some(100),
            max_name_width: Some(55),
            max_shapes_width: Some(80),
            max_source_width: Some(75),
            header: None,
            top_level_only: false,
            time_unit: None,
        }
    }
}

impl TableOptions {
    /// A hundred rows in the order of appearance.
    pub fn new() -> TableOptions {
        TableOptions::default()
    }

    /// Largest first by one of PyTorch's keys: `cpu_time_total`, `self_cuda_time_total`, `count`.
    #[must_use]
    pub fn sort_by(self, key: impl Into<String>) -> TableOptions {
        TableOptions { sort_by: Some(key.into()), ..self }
    }

    /// At most so many rows; `None` is all.
    #[must_use]
    pub fn row_limit(self, row_limit: Option<usize>) -> TableOptions {
        TableOptions { row_limit, ..self }
    }

    /// The widest that the columns of names, shapes and lines may be.
    #[must_use]
    pub fn max_widths(
        self,
        max_name_width: Option<usize>,
        max_shapes_width: Option<usize>,
        max_source_width: Option<usize>,
    ) -> TableOptions {
        TableOptions { max_name_width, max_shapes_width, max_source_width, ..self }
    }

    /// A line above the table.
    #[must_use]
    pub fn header(self, header: impl Into<String>) -> TableOptions {
        TableOptions { header: Some(header.into()), ..self }
    }

    /// Only what lies in no other event.
    #[must_use]
    pub fn top_level_only(self, top_level_only: bool) -> TableOptions {
        TableOptions { top_level_only, ..self }
    }

    /// All times in one unit.
    #[must_use]
    pub fn time_unit(self, unit: TimeUnit) -> TableOptions {
        TableOptions { time_unit: Some(unit), ..self }
    }

    fn time(&self, time_us: f64) -> String {
        match self.time_unit {
            None => format_time_us(time_us),
            Some(TimeUnit::Seconds) => format!("{:.3}s", time_us / 1e6),
            Some(TimeUnit::Milliseconds) => format!("{:.3}ms", time_us / 1e3),
            Some(TimeUnit::Microseconds) => format!("{time_us:.3}us"),
        }
    }
}

/// Width of a column of figures.
const FIGURE: usize = 12;

/// A column: its head, its width, and whether texts stand at its left end.
struct Column {
    head: String,
    width: usize,
    left: bool,
}

/// What is written of the rows.
struct Layout<'a> {
    options: &'a TableOptions,
    rows: Vec<&'a Average>,
    columns: Vec<Column>,
    device: Option<String>,
    memory: bool,
    device_memory: bool,
    shapes: Option<usize>,
    source: Option<usize>,
    /// Factor and word of the unit.
    flops: Option<(f64, &'static str)>,
    cpu_us: f64,
    device_us: f64,
}

impl Averages {
    /// The rows as PyTorch's table.
    ///
    /// ```
    /// use plimsoll_profile::{Grouping, Profile, TableOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let work = || Tensor::ones(&[8], DType::F32)?.exp().map(drop);
    /// let averages = Profile::new().run(work)?.averages(Grouping::default());
    /// let options = TableOptions::new().sort_by("cpu_time_total").row_limit(Some(1));
    /// let table = averages.table(&options)?;
    /// assert!(table.contains("Self CPU %") && table.contains("Self CPU time total: "));
    /// assert!(averages.table(&TableOptions::new().sort_by("beauty")).is_err());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn table(&self, options: &TableOptions) -> Result<String> {
        if self.rows.is_empty() {
            return Ok(String::new());
        }
        Ok(Layout::new(self, options)?.write())
    }

    fn sorted(&self, options: &TableOptions) -> Result<Vec<&Average>> {
        let Some(key) = &options.sort_by else { return Ok(self.rows.iter().collect()) };
        let keyed = self.rows.iter().map(|row| Ok((row.figure(key)?, row)));
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(keyed.into_iter().map(|(_, row)| row).collect())
    }
}

impl<'a> Layout<'a> {
    fn new(averages: &'a Averages, options: &'a TableOptions) -> Result<Layout<'a>> {
        let rows = averages.sorted(options)?;
        let any_device = rows.iter().any(|row| row.self_device_time_us > 0.0);
        let device = averages.device_word().filter(|_| any_device);
        let widest = |texts: &mut dyn Iterator<Item = usize>, most: Option<usize>| {
            let widest = texts.max().unwrap_or(0) + 4;
            most.map_or(widest, |most| widest.min(most))
        };
        let has_shapes = rows
            .iter()
            .any(|row| row.input_shapes.as_ref().is_some_and(|shapes| !shapes.is_empty()));
        let mut shapes = rows.iter().map(|row| shapes_word(row).len());
        let shapes = has_shapes.then(|| widest(&mut shapes, options.max_shapes_width));
        let has_source = rows.iter().any(|row| !row.stack.is_empty());
        let mut lines = rows.iter().flat_map(|row| &row.stack).map(|line| line.chars().count());
        let source = has_source.then(|| widest(&mut lines, options.max_source_width));
        let least_flops = rows.iter().map(|row| row.flops).filter(|&flops| flops > 0).min();
        let on_device = rows.iter().filter(|row| row.kind == EventKind::Kernel);
        let mut layout = Layout {
            device_memory: rows.iter().any(|row| row.self_device_bytes > 0),
            cpu_us: rows.iter().map(|row| row.self_cpu_time_us).sum(),
            device_us: on_device.map(|row| row.self_device_time_us).sum(),
            flops: least_flops.filter(|_| averages.flops).map(flops_unit),
            memory: averages.memory,
            columns: Vec::new(),
            options,
            device,
            shapes,
            source,
            rows,
        };
        layout.columns = layout.make_columns();
        Ok(layout)
    }

    fn make_columns(&self) -> Vec<Column> {
        let longest = self.rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0) + 4;
        let width = self.options.max_name_width.map_or(longest, |most| longest.min(most));
        let mut heads: Vec<String> =
            ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
                .map(String::from)
                .into();
        if let Some(device) = &self.device {
            heads.extend([
                format!("Self {device}"),
                format!("Self {device} %"),
                format!("{device} total"),
                format!("{device} time avg"),
            ]);
        }
        if self.memory {
            heads.extend(["CPU Mem", "Self CPU Mem"].map(String::from));
            if let Some(device) = self.device_memory_word() {
                heads.extend([format!("{device} Mem"), format!("Self {device} Mem")]);
            }
        }
        heads.push("# of Calls".to_string());
        let name = Column { head: "Name".to_string(), width, left: false };
        let figures = heads.into_iter().map(|head| Column { head, width: FIGURE, left: false });
        let mut columns: Vec<Column> = std::iter::once(name).chain(figures).collect();
        if let Some(width) = self.shapes {
            columns.push(Column { head: "Input Shapes".to_string(), width, left: false });
        }
        if let Some(width) = self.source {
            columns.push(Column { head: "Source Location".to_string(), width, left: true });
        }
        if let Some((_, unit)) = self.flops {
            columns.push(Column { head: format!("Total {unit}"), width: FIGURE, left: false });
        }
        columns
    }

    fn device_memory_word(&self) -> Option<&str> {
        self.device.as_deref().filter(|_| self.device_memory)
    }

    fn write(&self) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        let rule = self.columns.iter().map(|column| "-".repeat(column.width) + "  ");
        let rule: String = rule.collect();
        let double = "=".repeat(rule.len() - 2);
        if let Some(header) = &self.options.header {
            line(&double);
            line(header);
        }
        if self.options.top_level_only {
            line(&double);
            line("This report only display top-level ops statistics");
        }
        line(&rule);
        line(&self.line(self.columns.iter().map(|column| column.head.clone())));
        line(&rule);
        let shown = self.rows.iter().filter(|row| !self.options.top_level_only || row.top_level);
        for row in shown.take(self.options.row_limit.unwrap_or(usize::MAX)) {
            line(&self.line(self.cells(row).into_iter()));
            if self.source.is_some() {
                row.stack.iter().skip(1).for_each(|frame| line(&self.source_line(frame)));
                line(&self.source_line(""));
            }
        }
        line(&rule);
        line(&format!("Self CPU time total: {}", self.options.time(self.cpu_us)));
        if let Some(device) = &self.device {
            line(&format!("Self {device} time total: {}", self.options.time(self.device_us)));
        }
        text
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let cell = |(column, cell): (&Column, String)| match (column.left, column.width) {
            (true, width) => format!("{cell:<width$}  "),
            (false, width) => format!("{cell:>width$}  "),
        };
        self.columns.iter().zip(cells).map(cell).collect()
    }

    /// A further line of a stack, in its column.
    fn source_line(&self, frame: &str) -> String {
        let is_source = |column: &Column| column.left;
        let text =
            |column: &Column| if is_source(column) { self.frame(frame) } else { String::new() };
        self.line(self.columns.iter().map(text))
    }

    fn cells(&self, row: &Average) -> Vec<String> {
        let time = |time_us| self.options.time(time_us);
        let mut cells = vec![
            self.name(&row.key),
            share(row.self_cpu_time_us, self.cpu_us),
            time(row.self_cpu_time_us),
            share(row.cpu_time_us, self.cpu_us),
            time(row.cpu_time_us),
            time(row.cpu_time_avg_us()),
        ];
        if self.device.is_some() {
            cells.extend([
                time(row.self_device_time_us),
                share(row.self_device_time_us, self.device_us),
                time(row.device_time_us),
                time(row.device_time_avg_us()),
            ]);
        }
        if self.memory {
            cells.extend([format_bytes(row.cpu_bytes), format_bytes(row.self_cpu_bytes)]);
            if self.device_memory_word().is_some() {
                cells.extend([format_bytes(row.device_bytes), format_bytes(row.self_device_bytes)]);
            }
        }
        cells.push(row.count.to_string());
        if let Some(width) = self.shapes {
            cells.push(shapes_word(row).chars().take(width).collect());
        }
        if self.source.is_some() {
            cells.push(self.frame(row.stack.first().map_or("", String::as_str)));
        }
        if let Some((factor, _)) = self.flops {
            let some = row.flops > 0;
            cells.push(if some {
                format!("{:8.3}", row.flops as f64 * factor)
            } else {
                "--".into()
            });
        }
        cells
    }

    fn name(&self, key: &str) -> String {
        match self.options.max_name_width {
            Some(most) if key.chars().count() + 3 >= most => {
                key.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
            }
            _ => key.to_string(),
        }
    }

    /// A line of the stack, its end if it is too long.
    fn frame(&self, line: &str) -> String {
        let width = self.source.unwrap_or(0);
        let length = line.chars().count();
        if length <= width {
            return line.to_string();
        }
        let end: String = line.chars().skip(length - width).collect();
        if width > 3 { format!("...{}", end.chars().skip(3).collect::<String>()) } else { end }
    }
}

/// Shapes as Python writes a list of lists.
fn shapes_word(row: &Average) -> String {
    row.input_shapes.as_ref().map_or(String::new(), |shapes| format!("{shapes:?}"))
}

/// The unit in which the smallest count has one to three digits.
fn flops_unit(least: u64) -> (f64, &'static str) {
    const UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];
    let thousands = ((least as f64).log10() / 3.0).floor().clamp(0.0, 5.0);
    (10f64.powf(thousands * -3.0), UNITS[thousands as usize])
}
