//! A live graph written down: as text, and in Graphviz's language, each node with the bytes that it
//! holds. What is in it comes from `walk.rs`.

use std::fmt::Write;

use super::walk::{GraphInput, GraphNode, walk};
use crate::Tensor;

/// The graph behind `tensor` as text, newest operation first: what it was computed from, its line,
/// and the bytes that only it and older ones hold.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, graph_text};
/// let x = Tensor::ones(&[256], DType::F32)?.requires_grad_(true)?;
/// let y = x.exp()?.sum()?;
/// let text = graph_text(&y);
/// let lines: Vec<&str> = text.lines().collect();
/// assert!(lines[0].starts_with("#0 sum of #1, holds 0 bytes: "));
/// assert!(lines[1].starts_with("#1 exp of leaf [256], holds 1024 bytes in 1 storage: "));
/// assert_eq!(lines[2], "2 operations hold 1024 bytes");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn graph_text(tensor: &Tensor) -> String {
    let graph = walk(tensor);
    let mut text = String::new();
    for (place, node) in graph.iter().enumerate() {
        let inputs: Vec<String> = node.inputs.iter().map(name).collect();
        let of =
            if inputs.is_empty() { String::new() } else { format!(" of {}", inputs.join(", ")) };
        let _ = writeln!(text, "#{place} {}{of}, {}: {}", node.operation, holds(node), node.site);
    }
    let bytes: usize = graph.iter().map(|node| node.held_bytes).sum();
    let _ = writeln!(text, "{} operations hold {bytes} bytes", graph.len());
    text
}

fn name(input: &GraphInput) -> String {
    match input {
        GraphInput::Node(place) => format!("#{place}"),
        GraphInput::Leaf(Some(shape)) => format!("leaf {shape:?}"),
        GraphInput::Leaf(None) => "a leaf that is gone".to_string(),
    }
}

fn holds(node: &GraphNode) -> String {
    match node.held_storages {
        0 => "holds 0 bytes".to_string(),
        1 => format!("holds {} bytes in 1 storage", node.held_bytes),
        several => format!("holds {} bytes in {several} storages", node.held_bytes),
    }
}

/// The graph behind `tensor` in Graphviz's language: `dot -Tsvg` draws it. Arrows go where
/// gradients go; nodes that hold bytes are filled.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, graph_dot};
/// let x = Tensor::ones(&[256], DType::F32)?.requires_grad_(true)?;
/// let dot = graph_dot(&x.exp()?.sum()?);
/// assert!(dot.contains("n1 [label=\"exp\\nholds 1024 bytes in 1 storage\""));
/// assert!(dot.contains("n0 -> n1;"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn graph_dot(tensor: &Tensor) -> String {
    let mut text = String::from("digraph graph_of_gradients {\n  node [shape=box];\n");
    let mut leaves = 0;
    for (place, node) in walk(tensor).iter().enumerate() {
        let fill = if node.held_bytes > 0 { ", style=filled, fillcolor=lightblue" } else { "" };
        // Names of custom functions and paths are the user's.
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let (operation, site) = (quoted(node.operation), quoted(&node.site.to_string()));
        let held = holds(node);
        let _ = writeln!(
            text,
            "  n{place} [label=\"{operation}\\n{held}\", tooltip=\"{site}\"{fill}];"
        );
        for input in &node.inputs {
            match input {
                GraphInput::Node(behind) => {
                    let _ = writeln!(text, "  n{place} -> n{behind};");
                }
                leaf @ GraphInput::Leaf(_) => {
                    let label = name(leaf);
                    let _ = writeln!(text, "  leaf{leaves} [label=\"{label}\", shape=ellipse];");
                    let _ = writeln!(text, "  n{place} -> leaf{leaves};");
                    leaves += 1;
                }
            }
        }
    }
    text.push_str("}\n");
    text
}
