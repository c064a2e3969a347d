//! Module paths in the book: every byte that a module asks for is under the path that its key has,
//! in forward and in backward, without the user doing anything; and nothing is left afterwards.

use std::collections::BTreeMap;

use plimsoll_memory::{Kind, enter_module};
use plimsoll_nn::{Forward, Layer, Linear, LinearOptions, Module, ReLU, Sequential, sequential};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

/// Two blocks in a list, one behind a pointer, one in a module that is never called itself.
#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    inner: Inner,
    last: Box<dyn Layer>,
}

#[derive(Module)]
struct Inner {
    deep: Block,
    lists: Vec<Vec<Block>>,
}

#[derive(Module)]
struct Block {
    query: Linear,
}

impl Forward<&Tensor> for Block {
    type Output = Tensor;
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.query.call(x)
    }
}

impl Forward<&Tensor> for Net {
    type Output = Vec<Tensor>;
    fn forward(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let mut kept = Vec::new();
        for block in &self.blocks {
            kept.push(block.call(x)?);
        }
        kept.push(self.inner.deep.call(x)?);
        kept.push(self.inner.lists[0][1].query.call(x)?);
        kept.push(self.last.call(x)?);
        kept.push(ReLU::new().call(x)?);
        kept.push(x.exp()?);
        Ok(kept)
    }
}

/// `width` x `width` floats on a device of their own: each row of a result takes 4 * width bytes.
fn block(device: Device) -> Result<Block> {
    let options = LinearOptions::new().bias(false).device(device);
    Ok(Block { query: Linear::with(64, 64, options)? })
}

fn net(device: Device) -> Result<Net> {
    let options = LinearOptions::new().bias(false).device(device);
    Ok(Net {
        blocks: vec![block(device)?, block(device)?],
        inner: Inner { deep: block(device)?, lists: vec![vec![block(device)?, block(device)?]] },
        last: Box::new(sequential![ReLU::new(), Linear::with(64, 64, options)?]),
    })
}

/// Live bytes by module path, of one kind or of all.
fn by_path(device: Device, kinds: &[Kind]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for row in memory::live_by_origin(device) {
        if kinds.contains(&row.kind) {
            *found.entry(row.origin.get().module.to_string()).or_default() += row.bytes;
        }
    }
    found
}

fn expected<const N: usize>(rows: [(&str, usize); N]) -> BTreeMap<String, usize> {
    rows.into_iter().map(|(path, bytes)| (path.to_string(), bytes)).collect()
}

const RESULTS: [Kind; 2] = [Kind::Activation, Kind::Temporary];

#[test]
fn results_are_under_the_path_of_their_module() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let net = net(own)?;
    let x = Tensor::ones(&[8, 64], (DType::F32, own))?.mark_input();
    let kept = net.call(&x)?;
    let one = 8 * 64 * 4;
    let forward = expected([
        ("", one),
        ("ReLU", one),
        ("blocks.0.query", one),
        ("blocks.1.query", one),
        ("inner.deep.query", one),
        ("inner.lists.0.1.query", one),
        // The Sequential's ReLU gave what its Linear saved for backward.
        ("last.0", one),
        ("last.1", one),
    ]);
    assert_eq!(by_path(own, &RESULTS), forward);

    let mut loss = kept[0].sum()?;
    for result in &kept[1..5] {
        loss = loss.add(&result.sum()?)?;
    }
    loss.backward()?;
    let weight = 64 * 64 * 4;
    let gradients = expected([
        ("blocks.0.query", weight),
        ("blocks.1.query", weight),
        ("inner.deep.query", weight),
        ("inner.lists.0.1.query", weight),
        ("last.1", weight),
    ]);
    assert_eq!(by_path(own, &[Kind::Gradient]), gradients);
    assert_eq!(by_path(own, &[Kind::Parameter]).values().sum::<usize>(), 6 * weight);

    drop((net, kept, loss, x));
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn a_scope_of_the_program_is_in_front() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let block = block(own)?;
    let x = Tensor::ones(&[8, 64], (DType::F32, own))?.mark_input();
    let scope = enter_module("encoder");
    let y = block.call(&x)?;
    drop(scope);
    assert_eq!(by_path(own, &RESULTS), expected([("encoder.query", 8 * 64 * 4)]));
    // Afterwards nothing is in force.
    let z = x.exp()?;
    assert_eq!(by_path(own, &RESULTS)[""], 8 * 64 * 4);
    drop((y, z));
    Ok(())
}

#[test]
fn a_panic_or_an_error_leaves_no_module_in_force() -> Result<()> {
    #[derive(Module)]
    struct Fails {
        panics: bool,
        layer: ReLU,
    }
    impl Forward<&Tensor> for Fails {
        type Output = Tensor;
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            assert!(!self.panics, "as the test wants");
            self.layer.call(x)?;
            x.view(&[7, 7, 7])
        }
    }
    let x = Tensor::ones(&[1], DType::F32)?;
    let net = sequential![Fails { panics: true, layer: ReLU::new() }];
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| net.call(&x)));
    assert!(caught.is_err());
    assert!(plimsoll_memory::current_module().is_root());
    let fails = sequential![Fails { panics: false, layer: ReLU::new() }];
    assert!(fails.call(&x).unwrap_err().is_shape());
    assert!(plimsoll_memory::current_module().is_root());
    // A module called now is the outermost again.
    let own = device::private_cpu(&Default::default())?;
    let y = ReLU::new().call(&Tensor::ones(&[128], (DType::F32, own))?)?;
    assert_eq!(by_path(own, &RESULTS), expected([("", 512)]));
    drop(y);
    Ok(())
}

#[test]
fn bytes_are_booked_at_the_lines_of_the_program() -> Result<()> {
    #[derive(Module)]
    struct Own {
        layer: Linear,
    }
    impl Forward<&Tensor> for Own {
        type Output = Tensor;
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.layer.call(x) // line A
        }
    }
    let own = device::private_cpu(&Default::default())?;
    let options = || LinearOptions::new().bias(false).device(own);
    let nested = sequential![
        sequential![Linear::with(64, 64, options())?],
        Own { layer: Linear::with(64, 64, options())? },
    ];
    let x = Tensor::ones(&[8, 64], (DType::F32, own))?.mark_input();
    let calls = line!() + 1;
    let y = nested.call(&x)?;
    let lines: BTreeMap<String, u32> = memory::live_by_origin(own)
        .into_iter()
        .filter(|row| RESULTS.contains(&row.kind))
        .map(|row| {
            let origin = row.origin.get();
            let site = origin.site.resolve().expect("every byte has a line");
            assert!(site.file.ends_with("paths.rs"), "{}", site.file);
            (origin.module.to_string(), site.line)
        })
        .collect();
    let text = include_str!("paths.rs");
    let line_a = text.lines().position(|line| line.ends_with("// line A")).unwrap() as u32 + 1;
    assert_eq!(lines, [("0.0".to_string(), calls), ("1.layer".to_string(), line_a)].into());
    drop(y);
    // Parameters are booked at the line that made them.
    let made = memory::live_by_origin(own).into_iter().find(|row| row.kind == Kind::Parameter);
    let site = made.unwrap().origin.get().site.resolve().unwrap();
    assert!(site.file.ends_with("paths.rs"), "{}", site.file);
    Ok(())
}

#[test]
fn named_layers_of_a_sequential_have_their_names() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let net = Sequential::new().append_named("first", ReLU::new()).append(ReLU::new());
    let x = Tensor::ones(&[128], (DType::F32, own))?.mark_input().requires_grad_(true)?;
    let y = net.call(&x)?;
    assert_eq!(by_path(own, &RESULTS), expected([("first", 512), ("1", 512)]));
    drop(y);
    Ok(())
}
