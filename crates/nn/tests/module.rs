//! What a visit of a struct's fields gives: names, states, modes, moves, printing and hooks.
//! Expected keys, texts and orders are PyTorch 2.15's, of the same classes written in Python.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use plimsoll_nn::{
    Buffer, Forward, Hooks, Linear, LinearOptions, LoadOptions, Module, Parameter, ReLU,
    Sequential, StateDict, Tanh, Training, sequential,
};
use plimsoll_tensor::{DType, Error, Result, Tensor, device};

#[derive(Module)]
struct Block {
    inner: Linear,
    activation: ReLU,
    training: Training,
}

impl Forward<&Tensor> for Block {
    type Output = Tensor;
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.activation.call(&self.inner.call(x)?)
    }
}

impl Block {
    fn new() -> Result<Block> {
        let training = Training::default();
        Ok(Block { inner: Linear::new(2, 2)?, activation: ReLU::new(), training })
    }
}

#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    head: Option<Box<Linear>>,
    tail: Option<Linear>,
    scale: Parameter,
    counts: Buffer,
    mask: Buffer,
    parts: BTreeMap<String, Linear>,
    pair: (Linear, Tanh),
    weights: Vec<Parameter>,
    sizes: Vec<usize>,
    label: String,
    rate: f64,
    #[module(skip)]
    anything: Mutex<Option<Tensor>>,
    hooks: Hooks,
}

impl Forward<&Tensor> for Net {
    type Output = Tensor;
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.mul(&self.scale.tensor())?;
        for block in &self.blocks {
            x = block.call(&x)?;
        }
        self.head.as_ref().expect("the test made one").call(&x)
    }
}

fn net() -> Result<Net> {
    Ok(Net {
        blocks: vec![Block::new()?, Block::new()?],
        head: Some(Box::new(Linear::with(2, 3, LinearOptions::new().bias(false))?)),
        tail: None,
        scale: Parameter::new(&Tensor::ones(&[2], DType::F32)?)?,
        counts: Buffer::new(&Tensor::zeros(&[], DType::I64)?),
        mask: Buffer::not_persistent(&Tensor::ones(&[2], DType::F32)?),
        parts: [("b", Linear::new(1, 1)?), ("a", Linear::new(1, 1)?)]
            .map(|(key, layer)| (key.to_string(), layer))
            .into(),
        pair: (Linear::new(1, 1)?, Tanh::new()),
        weights: vec![Parameter::new(&Tensor::zeros(&[4], DType::F32)?)?],
        sizes: vec![1, 2],
        label: "plain data".to_string(),
        rate: 0.5,
        anything: Mutex::default(),
        hooks: Hooks::default(),
    })
}

#[test]
fn keys_are_paths_with_own_tensors_first() -> Result<()> {
    let net = net()?;
    let state = net.state_dict();
    let keys: Vec<&str> = state.keys().collect();
    let expected = [
        "scale",
        "counts",
        "blocks.0.inner.weight",
        "blocks.0.inner.bias",
        "blocks.1.inner.weight",
        "blocks.1.inner.bias",
        "head.weight",
        "parts.a.weight",
        "parts.a.bias",
        "parts.b.weight",
        "parts.b.bias",
        "pair.0.weight",
        "pair.0.bias",
        "weights.0",
    ];
    assert_eq!(keys, expected);
    let parameters: Vec<String> = net.named_parameters().into_iter().map(|(key, _)| key).collect();
    let without_counts: Vec<&str> = expected.into_iter().filter(|key| *key != "counts").collect();
    assert_eq!(parameters, without_counts);
    let buffers: Vec<String> = net.named_buffers().into_iter().map(|(key, _)| key).collect();
    assert_eq!(buffers, ["counts", "mask"]);
    assert_eq!(net.num_parameters(), 2 + 2 * 6 + 6 + 3 * 2 + 4);
    assert_eq!((net.sizes.len(), net.label.len(), net.rate), (2, 10, 0.5));
    assert!(net.anything.lock().unwrap().is_none());
    Ok(())
}

#[test]
fn modules_are_listed_before_their_children() -> Result<()> {
    let net = net()?;
    let paths: Vec<String> = net.named_modules().into_iter().map(|(path, _)| path).collect();
    let expected = [
        "",
        "blocks",
        "blocks.0",
        "blocks.0.inner",
        "blocks.0.activation",
        "blocks.1",
        "blocks.1.inner",
        "blocks.1.activation",
        "head",
        "parts",
        "parts.a",
        "parts.b",
        "pair",
        "pair.0",
        "pair.1",
        "weights",
    ];
    assert_eq!(paths, expected);
    let children: Vec<String> = net.named_children().into_iter().map(|(name, _)| name).collect();
    assert_eq!(children, ["blocks", "head", "parts", "pair", "weights"]);
    assert_eq!(net.get_submodule("blocks.1.inner").unwrap().type_name(), "Linear");
    assert!(net.get_submodule("blocks.2").is_none());
    Ok(())
}

#[test]
fn a_shared_parameter_is_listed_once_and_saved_twice() -> Result<()> {
    #[derive(Module)]
    struct Tied {
        first: Linear,
        second: Linear,
        shared: Arc<Linear>,
        again: Arc<Linear>,
    }
    let first = Linear::with(2, 2, LinearOptions::new().bias(false))?;
    let mut second = Linear::with(2, 2, LinearOptions::new().bias(false))?;
    second.weight = first.weight.clone();
    let shared = Arc::new(Linear::with(2, 2, LinearOptions::new().bias(false))?);
    let tied = Tied { first, second, shared: shared.clone(), again: shared };
    let keys = |entries: Vec<(String, Parameter)>| -> Vec<String> {
        entries.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys(tied.named_parameters()), ["first.weight", "shared.weight"]);
    assert_eq!(
        tied.state_dict().keys().collect::<Vec<_>>(),
        ["first.weight", "second.weight", "shared.weight", "again.weight"]
    );
    let modules: Vec<String> = tied.named_modules().into_iter().map(|(path, _)| path).collect();
    assert_eq!(modules, ["", "first", "second", "shared"]);
    Ok(())
}

#[test]
fn a_state_is_copied_and_shares_no_memory_afterwards() -> Result<()> {
    let (from, to) = (net()?, net()?);
    from.counts.tensor().fill_(7)?;
    let state = from.state_dict();
    to.load_state_dict(&state)?;
    for ((key, a), (_, b)) in state.iter().zip(to.state_dict().iter()) {
        assert!(a.equal(b)?, "{key}");
        assert!(!a.shares_storage_with(b), "{key}");
    }
    assert!(state.get("scale").unwrap().shares_storage_with(&from.scale.tensor()));
    assert!(!state.get("scale").unwrap().requires_grad());

    // A state of another dtype is converted; `assign` takes it as it is.
    let wide: StateDict =
        state.into_iter().map(|(key, x)| Ok((key, x.to(DType::F64)?))).collect::<Result<_>>()?;
    to.load_state_dict(&wide)?;
    assert_eq!(to.scale.tensor().dtype(), DType::F32);
    let held = to.scale.clone();
    to.load_state_dict_with(&wide, LoadOptions::new().assign(true))?;
    assert_eq!(held.tensor().dtype(), DType::F64);
    assert!(held.tensor().requires_grad() && held.tensor().is_leaf());
    assert!(held.tensor().shares_storage_with(wide.get("scale").unwrap()));
    Ok(())
}

#[test]
fn a_state_that_does_not_fit_is_told_in_full_and_changes_nothing() -> Result<()> {
    let layer = Linear::new(2, 3)?;
    let before = layer.weight.tensor().to_vec::<f32>()?;
    let mut state = StateDict::new();
    state.insert("weight", Tensor::zeros(&[3, 4], DType::F32)?);
    state.insert("extra", Tensor::zeros(&[1], DType::F32)?);
    let error = layer.load_state_dict(&state).unwrap_err();
    let expected = "Error(s) in loading state_dict for Linear:\n\
        \tMissing key(s) in state_dict: \"bias\". \n\
        \tUnexpected key(s) in state_dict: \"extra\". \n\
        \tsize mismatch for weight: copying a param with shape torch.Size([3, 4]) from checkpoint, \
        the shape in current model is torch.Size([3, 2]).";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(layer.weight.tensor().to_vec::<f32>()?, before);

    let mut state = StateDict::new();
    state.insert("weight", Tensor::zeros(&[3, 2], DType::F32)?);
    state.insert("extra", Tensor::zeros(&[1], DType::F32)?);
    let keys = layer.load_state_dict_with(&state, LoadOptions::new().strict(false))?;
    assert_eq!(
        (keys.missing, keys.unexpected),
        (vec!["bias".to_string()], vec!["extra".to_string()])
    );
    assert_eq!(layer.weight.tensor().to_vec::<f32>()?, [0.0; 6]);
    Ok(())
}

#[test]
fn modes_reach_the_whole_tree() -> Result<()> {
    let net = net()?;
    assert!(net.is_training() && net.blocks[1].training.get());
    net.eval();
    assert!(!net.is_training() && !net.blocks[0].training.get() && !net.blocks[1].training.get());
    net.blocks[1].train();
    assert!(net.blocks[1].is_training() && !net.blocks[0].is_training());
    Ok(())
}

#[test]
fn a_module_moves_with_its_gradients_and_integers_stay_integers() -> Result<()> {
    let net = net()?;
    let held = net.blocks[0].inner.weight.clone();
    net.call(&Tensor::ones(&[1, 2], DType::F32)?)?.sum()?.backward()?;
    net.to(DType::F64)?;
    assert_eq!(held.tensor().dtype(), DType::F64);
    assert_eq!(held.tensor().grad().unwrap().dtype(), DType::F64);
    assert_eq!((net.counts.tensor().dtype(), net.mask.tensor().dtype()), (DType::I64, DType::F64));
    assert!(net.to(DType::I64).unwrap_err().is_dtype());

    let other = device::private_cpu(&Default::default())?;
    net.to_device(other)?;
    assert_eq!((held.tensor().device(), net.counts.tensor().device()), (other, other));

    net.zero_grad()?;
    assert!(held.tensor().grad().is_none());
    net.requires_grad_(false)?;
    assert!(net.parameters().iter().all(|parameter| !parameter.tensor().requires_grad()));
    Ok(())
}

#[test]
fn a_module_prints_as_in_pytorch() -> Result<()> {
    let expected = "\
Net(
  (blocks): ModuleList(
    (0-1): 2 x Block(
      (inner): Linear(in_features=2, out_features=2, bias=True)
      (activation): ReLU()
    )
  )
  (head): Linear(in_features=2, out_features=3, bias=False)
  (parts): ModuleDict(
    (a): Linear(in_features=1, out_features=1, bias=True)
    (b): Linear(in_features=1, out_features=1, bias=True)
  )
  (pair): ModuleList(
    (0): Linear(in_features=1, out_features=1, bias=True)
    (1): Tanh()
  )
  (weights): ParameterList(  (0): Parameter containing: [torch.float32 of size 4])
)";
    assert_eq!(net()?.to_string(), expected);
    let nested = sequential![sequential![ReLU::new().inplace(true)], Sequential::new()];
    assert_eq!(
        nested.to_string(),
        "Sequential(\n  (0): Sequential(\n    (0): ReLU(inplace=True)\n  )\n  (1): Sequential()\n)"
    );
    Ok(())
}

#[test]
fn apply_goes_from_the_leaves_to_the_root() -> Result<()> {
    let mut seen = Vec::new();
    Block::new()?.apply(&mut |module| {
        seen.push(module.type_name());
        Ok(())
    })?;
    assert_eq!(seen, ["Linear", "ReLU", "Block"]);
    Ok(())
}

#[test]
fn hooks_run_around_forward_in_order_and_may_replace_results() -> Result<()> {
    let net = net()?;
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let log = log.clone();
        move |name: &str| log.lock().unwrap().push(format!("{text} {name}"))
    };
    let (before, after) = (note("before"), note("after"));
    let pre = net.hooks.before(move |module, inputs| {
        before(module.type_name());
        assert_eq!(inputs[0].shape(), [1, 2]);
        Ok(())
    });
    net.blocks[0].inner.hooks.after(move |module, inputs, results| {
        after(module.type_name());
        assert_eq!((inputs.len(), results.len()), (1, 1));
        Ok(Some(vec![results[0].zeros_like()?]))
    });
    let x = Tensor::ones(&[1, 2], DType::F32)?;
    let with = net.call(&x)?;
    assert_eq!(*log.lock().unwrap(), ["before Net", "after Linear"]);
    // The first block gave zeros, so the second block's bias alone is left.
    let zeros = net.blocks[1].call(&x.zeros_like()?)?;
    assert!(with.equal(&net.head.as_ref().unwrap().call(&zeros)?)?);

    pre.remove();
    net.hooks.before(|_, _| Err(Error::invalid_argument("refused by a hook")));
    let refused = net.call(&x).unwrap_err();
    assert!(refused.to_string().contains("refused by a hook"));
    assert_eq!(log.lock().unwrap().len(), 2);

    let layer = Linear::new(2, 2)?;
    layer.hooks.after(|_, _, _| Ok(Some(Vec::new())));
    assert!(layer.call(&x).unwrap_err().to_string().contains("0 tensors for 1 results"));
    Ok(())
}
