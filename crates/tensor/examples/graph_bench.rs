//! Prints what a node of a graph costs, in nanoseconds, for graphs of ten thousand to a million
//! nodes: to record it, to run it backward, and to drop it unrun. Linear time is a figure that does
//! not grow with the graph.
//!
//! `cargo run --release -p plimsoll-tensor --example graph_bench`
//!
//! A chain is as deep as it has nodes. A wide graph has half of its nodes on one leaf and adds
//! their results up in pairs, so it is shallow, and one gradient is summed from half a million
//! parts.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use plimsoll_tensor::*;

/// `nodes` operations, each on the result of the one before.
fn chain(x: &Tensor, nodes: usize) -> Result<Tensor> {
    let mut y = x.add(1.0)?;
    for _ in 1..nodes {
        y = y.add(1.0)?;
    }
    Ok(y)
}

/// `nodes` operations in as few levels as can be; each of the first level saves its result.
fn wide(x: &Tensor, nodes: usize) -> Result<Tensor> {
    let mut level = (0..nodes.div_ceil(2)).map(|_| x.exp()).collect::<Result<Vec<_>>>()?;
    while level.len() > 1 {
        let pairs = level.chunks(2);
        level = pairs
            .map(|pair| match pair {
                [left, right] => left.add(right),
                _ => Ok(pair[0].clone()),
            })
            .collect::<Result<_>>()?;
    }
    Ok(level.swap_remove(0))
}

type Build = fn(&Tensor, usize) -> Result<Tensor>;

/// Nanoseconds a node to record, run backward and drop unrun: the least of three graphs.
fn measure(build: Build, nodes: usize, gradient: f64) -> Result<[f64; 3]> {
    let mut least = [f64::INFINITY; 3];
    let mut note = |place: usize, start: Instant| {
        let ns = start.elapsed().as_nanos() as f64 / nodes as f64;
        least[place] = least[place].min(ns);
    };
    for _ in 0..3 {
        let x = Tensor::zeros(&[1], (DType::F64, Device::cpu()))?.requires_grad_(true)?;
        let start = Instant::now();
        let y = build(&x, nodes)?;
        note(0, start);
        let start = Instant::now();
        y.backward()?;
        note(1, start);
        let found: Vec<f64> = x.grad().expect("backward left a gradient").to_vec()?;
        assert_eq!(found, [gradient], "every path counts once");
        drop(y);
        let unrun = build(&x, nodes)?;
        let start = Instant::now();
        drop(unrun);
        note(2, start);
    }
    Ok(least)
}

fn main() -> Result<()> {
    println!(
        "{:<8} {:>9}  {:>8} {:>10} {:>8}  (ns a node)",
        "graph", "nodes", "record", "backward", "drop"
    );
    for nodes in [10_000, 100_000, 1_000_000, 4_000_000] {
        // e^0 is 1, so the gradient counts the nodes of the first level.
        for (name, build, gradient) in
            [("chain", chain as Build, 1.0), ("wide", wide as Build, nodes as f64 / 2.0)]
        {
            let [record, backward, drop] = measure(build, nodes, gradient)?;
            println!("{name:<8} {nodes:>9}  {record:>8.0} {backward:>10.0} {drop:>8.0}");
        }
    }
    Ok(())
}
