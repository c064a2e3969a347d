//! Tensors as text, to the letter as PyTorch prints them: four digits, whole or scientific where
//! the values ask for it, lines of 80 characters, the edges only of more than a thousand elements;
//! then what is not the default (device, dtype, gradient).
//!
//! Only the elements that are shown are read. A dry run has none and shows its size instead.

use std::fmt;

use plimsoll_core::{DType, Device, Result, Scalar};
use plimsoll_kernels::{Element, match_dtype};
use plimsoll_memory::{Site, with_site};

use crate::Tensor;
use crate::autograd::no_grad;
use crate::default_dtype::default_dtype;
use crate::device::is_meta;
use crate::lock::RwLock;

/// How tensors are written: PyTorch's print options.
///
/// ```
/// use plimsoll_tensor::{PrintOptions, print_options};
/// assert_eq!(print_options(), PrintOptions::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// Tensors with more elements show their edges only.
    pub threshold: usize,
    /// Elements shown at each edge of a dimension.
    pub edge_items: usize,
    /// Characters of a line.
    pub line_width: usize,
    /// Whether numbers have exponents; `None` leaves it to the values.
    pub scientific: Option<bool>,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions {
            precision: 4,
            threshold: 1000,
            edge_items: 3,
            line_width: 80,
            scientific: None,
        }
    }
}

static OPTIONS: RwLock<Option<PrintOptions>> = RwLock::new(None);

/// How tensors are written now.
pub fn print_options() -> PrintOptions {
    OPTIONS.read().unwrap_or_default()
}

/// Changes how tensors are written from now on, for all threads.
///
/// ```standalone_crate
/// use plimsoll_tensor::{DType, PrintOptions, Tensor, set_print_options};
/// set_print_options(PrintOptions { precision: 2, ..PrintOptions::default() });
/// assert_eq!(Tensor::full(&[1], 0.5, DType::F32)?.to_string(), "tensor([0.50])");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn set_print_options(options: PrintOptions) {
    *OPTIONS.write() = Some(options);
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string_as("tensor"))
    }
}

impl Tensor {
    /// What `to_string` gives with another name than `tensor` in front: that of a class of
    /// Python's that the tensor is of.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[2], 0.5, DType::F32)?;
    /// assert_eq!(x.to_string_as("Image"), "Image([0.5000, 0.5000])");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn to_string_as(&self, name: &str) -> String {
        let (prefix, options) = (format!("{name}("), print_options());
        let (body, mut suffixes) = if self.device().is_dry() {
            ("...".to_string(), vec![size_suffix(self.shape())])
        } else if self.numel() == 0 {
            let size = (self.rank() != 1).then(|| size_suffix(self.shape()));
            ("[]".to_string(), size.into_iter().collect())
        } else {
            match no_grad(|| with_site(Site::in_force(), || Shown::of(&self.detach(), options))) {
                Ok(shown) => (shown.text(prefix.len()), Vec::new()),
                // Printing must not fail: say why there is nothing to see.
                Err(error) => (format!("<{error}>"), vec![size_suffix(self.shape())]),
            }
        };
        if self.device() != Device::CPU {
            let device = self.device();
            let name = if is_meta(device) { "meta".to_string() } else { device.to_string() };
            suffixes.insert(0, format!("device='{name}'"));
        }
        // What values look like tells int64 and bool, unless there are none.
        let is_plain = match self.dtype() {
            dtype if dtype == default_dtype() => true,
            DType::I64 | DType::Bool => self.numel() > 0 && !self.device().is_dry(),
            _ => false,
        };
        if !is_plain {
            suffixes.push(format!("dtype=torch.{}", self.dtype()));
        }
        match self.grad_fn() {
            Some(grad_fn) => suffixes.push(format!("grad_fn=<{}>", grad_fn.backward_name())),
            None if self.requires_grad() => suffixes.push("requires_grad=True".to_string()),
            None => {}
        }
        with_suffixes(format!("{prefix}{body}"), prefix.len(), &suffixes, options)
    }
}

/// PyTorch's tuple: `size=(2, 0)`.
fn size_suffix(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    format!("size=({}{comma})", sizes.join(", "))
}

/// Suffixes follow on the same line while they fit.
fn with_suffixes(
    mut text: String,
    indent: usize,
    suffixes: &[String],
    options: PrintOptions,
) -> String {
    // PyTorch counts one character more than the line has, and so does this.
    let mut line = match text.rfind('\n') {
        Some(at) => text.len() - at + 1,
        None => text.len() + 2,
    };
    for suffix in suffixes {
        if line + suffix.len() + 2 > options.line_width {
            text += &format!(",\n{:indent$}{suffix}", "");
            line = indent + suffix.len();
        } else {
            text += &format!(", {suffix}");
            line += suffix.len() + 2;
        }
    }
    text + ")"
}

/// The elements that are shown.
struct Shown {
    /// For each dimension, how many of its elements are shown, and whether some are left out after
    /// the first few.
    dims: Vec<(usize, bool)>,
    /// Row-major.
    values: Vec<Scalar>,
    format: Format,
    options: PrintOptions,
}

impl Shown {
    fn of(tensor: &Tensor, options: PrintOptions) -> Result<Shown> {
        let summarize = tensor.numel() > options.threshold;
        let edge = options.edge_items;
        let dims: Vec<(usize, bool)> = tensor
            .shape()
            .iter()
            .map(
                |&size| if summarize && size > 2 * edge { (2 * edge, true) } else { (size, false) },
            )
            .collect();
        let mut values = Vec::new();
        collect(tensor, &dims, edge, &mut values)?;
        let format = Format::of(tensor.dtype(), &values, options);
        Ok(Shown { dims, values, format, options })
    }

    fn text(&self, indent: usize) -> String {
        self.part(&self.dims, &self.values, indent)
    }

    /// One bracket: the elements of `dims`, which hold `values`.
    fn part(&self, dims: &[(usize, bool)], values: &[Scalar], indent: usize) -> String {
        match dims {
            [] => self.format.value(values[0]),
            [(_, cut)] => self.vector(values, *cut, indent),
            [(size, cut), inner @ ..] => {
                let each = values.len() / size.max(&1);
                let mut parts: Vec<String> = values
                    .chunks(each.max(1))
                    .map(|chunk| self.part(inner, chunk, indent + 1))
                    .collect();
                if *cut {
                    parts.insert(self.options.edge_items, "...".to_string());
                }
                let gap = format!(",{}{:indent$} ", "\n".repeat(inner.len()), "");
                format!("[{}]", parts.join(&gap))
            }
        }
    }

    fn vector(&self, values: &[Scalar], cut: bool, indent: usize) -> String {
        let a_line =
            (self.options.line_width.saturating_sub(indent) / (self.format.width + 2)).max(1);
        let mut elements: Vec<String> = values.iter().map(|&v| self.format.value(v)).collect();
        if cut {
            elements.insert(self.options.edge_items, " ...".to_string());
        }
        let lines: Vec<String> = elements.chunks(a_line).map(|line| line.join(", ")).collect();
        format!("[{}]", lines.join(&format!(",\n{:indent$} ", "")))
    }
}

/// Reads the elements that `dims` shows of `tensor`, in row-major order.
fn collect(
    tensor: &Tensor,
    dims: &[(usize, bool)],
    edge_items: usize,
    into: &mut Vec<Scalar>,
) -> Result<()> {
    let Some((&(_, cut), inner)) = dims.split_first() else { return read(tensor, into) };
    let size = tensor.shape()[0] as i64;
    let edge = edge_items as i64;
    let ranges = if cut { vec![(0, edge), (size - edge, edge)] } else { vec![(0, size)] };
    for (start, length) in ranges {
        let part = tensor.narrow(0, start, length)?;
        if inner.iter().any(|&(_, cut)| cut) {
            for index in 0..length {
                collect(&part.select(0, index)?, inner, edge_items, into)?;
            }
        } else {
            read(&part, into)?;
        }
    }
    Ok(())
}

fn read(tensor: &Tensor, into: &mut Vec<Scalar>) -> Result<()> {
    match_dtype!(tensor.dtype(), T => {
        into.extend(tensor.to_vec::<T>()?.into_iter().map(Element::to_scalar));
    });
    Ok(())
}

/// How all elements of one tensor are written.
struct Format {
    style: Style,
    width: usize,
    precision: usize,
}

enum Style {
    /// Integers and bools, as they are.
    Exact,
    /// Floats that are all whole: `3.`
    Whole,
    Fixed,
    Scientific,
}

impl Format {
    fn of(dtype: DType, values: &[Scalar], options: PrintOptions) -> Format {
        let precision = options.precision;
        if !dtype.is_float() {
            let width = values.iter().map(|&value| exact(value).len()).max().unwrap_or(0).max(1);
            return Format { style: Style::Exact, width, precision };
        }
        let finite: Vec<f64> = values
            .iter()
            .map(|value| value.to_f64())
            .filter(|value| value.is_finite() && *value != 0.0)
            .collect();
        if finite.is_empty() {
            return Format { style: Style::Whole, width: 1, precision };
        }
        let (least, most) = finite.iter().fold((f64::INFINITY, 0.0f64), |(least, most), value| {
            (least.min(value.abs()), most.max(value.abs()))
        });
        let whole = finite.iter().all(|value| value.fract() == 0.0);
        let asks_for_exponents = most / least > 1000.0 || most > 1e8 || least < 1e-4;
        let style = if options.scientific.unwrap_or(asks_for_exponents) {
            Style::Scientific
        } else if whole {
            Style::Whole
        } else {
            Style::Fixed
        };
        let width =
            finite.iter().map(|&value| style.text(value, precision).len()).max().unwrap_or(1);
        Format { style, width, precision }
    }

    fn value(&self, value: Scalar) -> String {
        let text = match self.style {
            Style::Exact => exact(value),
            _ => self.style.text(value.to_f64(), self.precision),
        };
        format!("{text:>width$}", width = self.width)
    }
}

impl Style {
    fn text(&self, value: f64, precision: usize) -> String {
        if value.is_nan() {
            return "nan".to_string();
        }
        if value.is_infinite() {
            return if value > 0.0 { "inf" } else { "-inf" }.to_string();
        }
        match self {
            Style::Exact | Style::Whole => format!("{value:.0}."),
            Style::Fixed => format!("{value:.precision$}"),
            Style::Scientific => scientific(value, precision),
        }
    }
}

/// As C prints it: at least two digits and a sign in the exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// Python's words for bools.
fn exact(value: Scalar) -> String {
    match value {
        Scalar::Bool(true) => "True".to_string(),
        Scalar::Bool(false) => "False".to_string(),
        other => other.to_string(),
    }
}
