//! A module printed as PyTorch prints it: its type, what it says of itself, and its children below.

use std::fmt;

use crate::walk::Own;
use crate::{Module, Name};

/// Writes a module as PyTorch's `repr` does; `{}` of a struct that derives `Module` calls it.
///
/// ```
/// use plimsoll_nn::{Linear, ReLU, sequential};
/// let net = sequential![Linear::new(2, 3)?, ReLU::new()];
/// assert_eq!(
///     net.to_string(),
///     "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n)"
/// );
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn write_tree(module: &dyn Module, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&text(module))
}

impl fmt::Display for dyn Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tree(self, f)
    }
}

fn text(module: &dyn Module) -> String {
    let own = Own::of(module);
    let name = module.type_name();
    if name.starts_with("Parameter") && module.is_container() {
        return parameters(name, &own);
    }
    let children: Vec<(String, String)> =
        own.modules.iter().map(|(name, child)| (name.to_string(), text(*child))).collect();
    let extra = module.extra_repr();
    if children.is_empty() {
        return format!("{name}({extra})");
    }
    let mut lines: Vec<String> = Vec::new();
    lines.extend((!extra.is_empty()).then_some(extra));
    if matches!(name, "ModuleList" | "ParametrizationList") {
        lines.extend(grouped(&children));
    } else {
        lines.extend(children.iter().map(|(name, child)| format!("({name}): {child}")));
    }
    format!(
        "{name}(\n  {}\n)",
        lines.iter().map(|line| indented(line)).collect::<Vec<_>>().join("\n  ")
    )
}

/// Equal neighbours in one line, as `(0-3): 4 x Block(..)`.
fn grouped(children: &[(String, String)]) -> Vec<String> {
    let mut lines = Vec::new();
    for run in children.chunk_by(|a, b| a.1 == b.1) {
        let (first, text) = &run[0];
        lines.push(match run {
            [_] => format!("({first}): {text}"),
            [.., (last, _)] => format!("({first}-{last}): {} x {text}", run.len()),
            [] => continue,
        });
    }
    lines
}

fn parameters(name: &str, own: &Own<'_>) -> String {
    let line = |(name, parameter): &(Name<'_>, &plimsoll_tensor::Parameter)| {
        let tensor = parameter.tensor();
        let sizes: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        format!(
            "  ({name}): Parameter containing: [torch.{} of size {}]",
            tensor.dtype(),
            sizes.join("x")
        )
    };
    let lines: Vec<String> = own.parameters.iter().map(line).collect();
    format!("{name}({})", lines.join("\n"))
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
