//! What golden values cannot show of optimizers: bytes, launches, groups, hooks, float32 copies,
//! steps inside backward, averages, and what is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_memory::Kind;
use plimsoll_nn::optim::swa_utils::{Average, AveragedModel, update_bn};
use plimsoll_nn::optim::{self, Optimizer};
use plimsoll_nn::{
    BatchNorm1d, BatchNormOptions, Forward, Linear, LinearOptions, Module, Parameter, Sequential,
    init, saved::Value, sequential,
};
use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::{DType, Device, Graph, Result, Tensor, device, manual_seed, memory, no_grad};

fn devices() -> Result<Vec<Device>> {
    Ok(vec![device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

fn of(own: Device, kind: Kind) -> usize {
    let rows = memory::live_by_kind(own).into_iter();
    rows.filter(|row| row.kind == kind).map(|row| row.bytes).sum()
}

fn network(own: Device) -> Result<Sequential> {
    let layer = || Linear::with(128, 128, LinearOptions::new().bias(false).device(own));
    Ok(sequential![layer()?, layer()?, layer()?, layer()?])
}

/// The bytes of one of the network's weights.
const WEIGHT: usize = 128 * 128 * 4;

/// A number beside a parameter takes the least block there is.
const NUMBER: usize = 512;

fn loss(net: &Sequential, own: Device) -> Result<Tensor> {
    net.call(&Tensor::ones(&[2, 128], (DType::F32, own))?)?.square()?.mean()
}

#[test]
fn a_step_is_one_operation_without_temporaries_and_its_state_is_booked() -> Result<()> {
    for own in devices()? {
        device::set_chaos(own, None);
        let net = network(own)?;
        let mut optimizer = optim::AdamW::new(net.parameters(), optim::AdamWOptions::new())?;
        assert_eq!(of(own, Kind::OptimizerState), 0, "made by the first step");
        for step in 0..3 {
            optimizer.zero_grad()?;
            loss(&net, own)?.backward()?;
            let before = memory::memory_allocated(own);
            memory::reset_peak_memory_stats(own);
            let counts = Arc::new(LaunchCounts::default());
            let observing = observe(counts.clone());
            optimizer.step()?;
            drop(observing);
            assert_eq!(counts.of("fused_adamw_").launches, 1);
            let made = if step == 0 { 4 * (2 * WEIGHT + NUMBER) } else { 0 };
            assert_eq!(memory::max_memory_allocated(own), before + made, "no temporaries");
            assert_eq!(of(own, Kind::OptimizerState), 4 * (2 * WEIGHT + NUMBER));
            if step > 0 {
                let all: u64 = counts.all().values().map(|count| count.launches).sum();
                assert_eq!(all, 1, "{:?}", counts.all());
            }
        }
        assert_eq!(of(own, Kind::Gradient), 4 * WEIGHT);
        optimizer.zero_grad_with(false)?;
        assert_eq!(of(own, Kind::Gradient), 4 * WEIGHT, "zeros, in the same memory");
        let grad = net.parameters()[0].tensor().grad().unwrap();
        assert_eq!(grad.abs()?.amax()?.item::<f32>()?, 0.0);
        drop(grad);
        optimizer.zero_grad()?;
        assert_eq!(of(own, Kind::Gradient), 0);
        drop(optimizer);
        assert_eq!(of(own, Kind::OptimizerState), 0);
        drop(net);
        assert_eq!(memory::memory_allocated(own), 0);
    }
    Ok(())
}

/// The modules that optimizer state on a device is booked under.
fn modules_of_state(own: Device) -> Vec<String> {
    let rows = memory::live_by_origin(own).into_iter();
    let states = rows.filter(|row| row.kind == Kind::OptimizerState);
    let mut modules: Vec<String> = states.map(|row| row.origin.get().module.to_string()).collect();
    modules.sort();
    modules
}

/// What is kept is booked under the module that read the parameter in a call, with names or
/// without; before any call under the one that the name says.
#[test]
fn state_has_the_module_of_its_parameter() -> Result<()> {
    let [own, other, early] = [(); 3].map(|()| device::private_cpu(&Default::default()).unwrap());
    let (net, twin) = (network(own)?, network(other)?);
    let options = optim::SGDOptions::new().momentum(0.9);
    let mut optimizer = optim::SGD::new(net.parameters(), options.clone())?;
    loss(&net, own)?.backward()?;
    optimizer.step()?;
    assert_eq!(modules_of_state(own), ["0", "1", "2", "3"]);
    // What is loaded, too.
    let mut loads = optim::SGD::new(twin.parameters(), options)?;
    loss(&twin, other)?;
    loads.load_state_dict(&optimizer.state_dict())?;
    assert_eq!(modules_of_state(other), ["0", "1", "2", "3"]);
    // Adagrad keeps sums from the start, before anything is called.
    let named = network(early)?.named_parameters();
    let kept = optim::Adagrad::new(named, optim::AdagradOptions::new())?;
    assert_eq!(modules_of_state(early).first().map(String::as_str), Some("0"));
    assert_eq!(modules_of_state(early).last().map(String::as_str), Some("3"));
    drop(kept);
    Ok(())
}

/// Gradients that are freed as they are used never live together.
#[test]
fn steps_inside_backward_hold_one_gradient_at_a_time() -> Result<()> {
    for own in devices()? {
        device::set_chaos(own, None);
        let (plain, inside) = (network(own)?, network(own)?);
        inside.load_state_dict(&plain.state_dict())?;
        let options = optim::SGDOptions::new().lr(0.5).momentum(0.9);
        let mut optimizer = optim::SGD::new(plain.parameters(), options.clone())?;
        let training = optim::SGD::new(inside.parameters(), options)?.in_backward()?;
        let mut peaks = [0, 0];
        for step in 0..3 {
            let error = loss(&plain, own)?;
            let before = memory::memory_allocated(own);
            memory::reset_peak_memory_stats(own);
            error.backward()?;
            optimizer.step()?;
            peaks[0] = memory::max_memory_allocated(own) - before;
            drop(error);
            optimizer.zero_grad()?;

            let error = loss(&inside, own)?;
            let before = memory::memory_allocated(own);
            memory::reset_peak_memory_stats(own);
            error.backward()?;
            peaks[1] = memory::max_memory_allocated(own) - before;
            assert_eq!(of(own, Kind::Gradient), 0, "all are used and freed");
            for (a, b) in plain.parameters().iter().zip(inside.parameters()) {
                assert!(a.tensor().allclose(&b.tensor())?, "step {step}");
            }
        }
        // Beside them activations of 2 x 128 go, and their gradients come.
        let small = 16 * 1024;
        assert!(peaks[0].abs_diff(4 * WEIGHT) < small, "{peaks:?}");
        assert!(peaks[1].abs_diff(WEIGHT) < small, "{peaks:?}");
        training.with(|optimizer| optimizer.groups_mut()[0].options.lr = 0.0);
        let refused = training.with(|_| loss(&inside, own)?.backward());
        assert!(refused.unwrap_err().to_string().contains("inside `with`"));
        inside.zero_grad()?;
        let before = inside.parameters()[0].tensor().clone_tensor()?;
        loss(&inside, own)?.backward()?;
        assert!(inside.parameters()[0].tensor().equal(&before)?, "a rate of 0");
        drop(training);
        loss(&inside, own)?.backward()?;
        assert!(inside.parameters()[0].tensor().grad().is_some(), "its hooks are gone");
    }
    Ok(())
}

#[test]
fn half_parameters_have_float32_copies_if_asked() -> Result<()> {
    for own in devices()? {
        let made = |dtype: DType| Parameter::new(&Tensor::ones(&[256], (dtype, own))?);
        let (half, wide) = (made(DType::BF16)?, made(DType::F32)?);
        let both = [half.clone(), wide.clone()];
        let options = optim::SGDOptions::new().lr(1.0).master_weights(true);
        let mut optimizer = optim::SGD::new(both.clone(), options.clone())?;
        for _ in 0..256 {
            for parameter in &both {
                // Too small for bfloat16 to see next to 1.
                let grad = parameter.tensor().detach().full_like(1.0 / 1024.0)?;
                parameter.tensor().set_grad(Some(&grad))?;
            }
            optimizer.step()?;
        }
        assert_eq!(wide.tensor().to_vec::<f32>()?, [0.75; 256]);
        assert_eq!(half.tensor().to_f64_vec()?, [0.75; 256]);
        let state = optimizer.state_dict();
        let Value::Dict(entries) = state.get("state").unwrap() else { panic!("a map") };
        assert_eq!(entries.len(), 1, "the float32 parameter needs none");
        let copy = entries.get(0).unwrap().get("master_param").and_then(Value::as_tensor).unwrap();
        assert_eq!(copy.dtype(), DType::F32);

        // The copy survives a save and a load.
        copy.add_(1.0 / 4096.0)?;
        let mut again = optim::SGD::new(both.clone(), options.lr(0.5))?;
        again.load_state_dict(&state)?;
        assert_eq!(again.groups()[0].options.lr, 1.0);
        let reloaded = again.state_dict();
        let Value::Dict(entries) = reloaded.get("state").unwrap() else { panic!("a map") };
        let copy = entries.get(0).unwrap().get("master_param").and_then(Value::as_tensor).unwrap();
        assert_eq!(copy.to_vec::<f32>()?, [0.75 + 1.0 / 4096.0; 256]);
    }
    Ok(())
}

/// The copies are what the parameters were, not what they were rounded to: the first steps count.
#[test]
fn parameters_that_are_cast_leave_their_copies_unrounded() -> Result<()> {
    for own in devices()? {
        // Just below the middle between two halves: the first small step crosses it.
        let start = 1.0 + 1.0 / 256.0 - 1.0 / 8192.0;
        let made = || Parameter::new(&Tensor::full(&[256], start, (DType::F32, own))?);
        let (cast, rounded) = (made()?, made()?);
        let double = Parameter::new(&Tensor::ones(&[2], (DType::F64, own))?)?;
        let options = optim::SGDOptions::new().lr(1.0);
        let mut plain = optim::SGD::new([cast.clone()], options.clone())?;
        let error = plain.cast_parameters(DType::BF16).unwrap_err().to_string();
        assert!(error.contains("master_weights"), "{error}");
        let options = options.master_weights(true);
        let mut optimizer =
            optim::SGD::new([cast.clone(), rounded.clone(), double.clone()], options)?;
        let error = optimizer.cast_parameters(DType::F64).unwrap_err().to_string();
        assert!(error.contains("float64"), "{error}");
        rounded.to(DType::BF16)?;
        cast.tensor().set_grad(Some(&cast.tensor().detach().full_like(-1.0 / 2048.0)?))?;
        optimizer.cast_parameters(DType::BF16)?;
        assert_eq!(double.tensor().dtype(), DType::F64);
        assert_eq!(cast.tensor().dtype(), DType::BF16);
        assert_eq!(cast.tensor().to_f64_vec()?, [1.0; 256]);
        let grad = cast.tensor().grad().unwrap();
        assert_eq!((grad.dtype(), grad.to_f64_vec()?[0]), (DType::BF16, -1.0 / 2048.0));
        rounded.tensor().set_grad(Some(&grad))?;
        optimizer.step()?;
        assert_eq!(cast.tensor().to_f64_vec()?, [1.0 + 1.0 / 128.0; 256]);
        assert_eq!(rounded.tensor().to_f64_vec()?, [1.0; 256]);
        let state = optimizer.state_dict();
        let Value::Dict(entries) = state.get("state").unwrap() else { panic!("a map") };
        let copy = entries.get(0).unwrap().get("master_param").and_then(Value::as_tensor).unwrap();
        assert_eq!(copy.to_vec::<f32>()?, [start as f32 + 1.0 / 2048.0; 256]);
    }
    Ok(())
}

/// Groups without copies keep their parameters, as norms of halves may stay float32.
#[test]
fn only_groups_with_copies_are_cast() -> Result<()> {
    for own in devices()? {
        let made = || Parameter::new(&Tensor::full(&[3], 1.25, (DType::F32, own))?);
        let (weight, norm) = (made()?, made()?);
        let options = optim::SGDOptions::new().lr(1.0);
        let with_copies = options.clone().master_weights(true);
        let mut optimizer = optim::SGD::new([weight.clone()], with_copies)?;
        optimizer.add_param_group([norm.clone()], options)?;
        optimizer.cast_parameters(DType::BF16)?;
        let dtypes = [&weight, &norm].map(|parameter| parameter.tensor().dtype());
        assert_eq!(dtypes, [DType::BF16, DType::F32]);
        for parameter in [&weight, &norm] {
            let own = parameter.tensor().detach();
            parameter.tensor().set_grad(Some(&own.full_like(1.0 / 1024.0)?))?;
        }
        optimizer.step_clipped(100.0)?;
        // A half keeps eight bits, of 1.2490234375 too few.
        assert_eq!(weight.tensor().to_f64_vec()?, [1.25; 3]);
        assert_eq!(norm.tensor().to_f64_vec()?, [1.25 - 1.0 / 1024.0; 3]);
    }
    Ok(())
}

/// Graphs that were recorded before the cast reach the parameters, in the dtype that they have now,
/// whether the gradient's memory could be taken over or not.
#[test]
fn graphs_of_before_a_cast_accumulate_into_the_halves() -> Result<()> {
    for own in devices()? {
        let start = Tensor::full(&[4], 3.0, (DType::F32, own))?;
        let (free, held) = (Parameter::new(&start)?, Parameter::new(&start)?);
        let options = optim::SGDOptions::new().lr(0.25).master_weights(true);
        let mut optimizer = optim::SGD::new([free.clone(), held.clone()], options)?;
        let made = || free.tensor().mul(2.0)?.sum()?.add(&held.tensor().sum()?);
        let (loss, again) = (made()?, made()?);
        optimizer.cast_parameters(DType::BF16)?;
        for (times, loss) in [(1.0, loss), (2.0, again)] {
            loss.backward()?;
            for (parameter, grad) in [(&free, 2.0), (&held, 1.0)] {
                let kept = parameter.tensor().grad().unwrap();
                assert_eq!(kept.dtype(), DType::BF16);
                assert_eq!(kept.to_f64_vec()?, [times * grad; 4]);
            }
        }
        optimizer.step()?;
        assert_eq!(free.tensor().to_f64_vec()?, [2.0; 4]);
        assert_eq!(held.tensor().to_f64_vec()?, [2.5; 4]);
    }
    Ok(())
}

#[test]
fn groups_have_options_of_their_own_and_hooks_see_steps() -> Result<()> {
    let made = || Parameter::new(&Tensor::ones(&[1], DType::F64)?);
    let (a, b, unused) = (made()?, made()?, made()?);
    let options = optim::SGDOptions::new().lr(0.5);
    let mut optimizer = optim::SGD::new([a.clone(), unused.clone()], options.clone())?;
    optimizer.add_param_group([b.clone()], options.clone().lr(0.25).maximize(true))?;
    let seen = Arc::new(AtomicUsize::new(0));
    let (before, during, after) = (seen.clone(), seen.clone(), seen.clone());
    let first = optimizer.register_step_pre_hook(move |_| {
        before.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let second = optimizer.register_step_post_hook(move |optimizer| {
        after.fetch_add(10, Ordering::Relaxed);
        optimizer.groups_mut()[0].options.lr = 0.0;
        Ok(())
    });
    let closure = || {
        assert_eq!(during.load(Ordering::Relaxed), 1, "as in PyTorch, after the hooks before");
        let loss = a.tensor().add(&b.tensor())?.sum()?;
        loss.backward()?;
        Ok(loss)
    };
    let loss = no_grad(|| optimizer.step_with(closure))?;
    assert_eq!(loss.item::<f64>()?, 2.0);
    let values = |all: [&Parameter; 3]| all.map(|p| p.tensor().item::<f64>().unwrap());
    assert_eq!(values([&a, &b, &unused]), [0.5, 1.25, 1.0]);
    assert_eq!(seen.load(Ordering::Relaxed), 11);
    assert!(optimizer.remove_hook(first) && !optimizer.remove_hook(first));
    optimizer.step()?;
    assert_eq!(values([&a, &b, &unused]), [0.5, 1.5, 1.0]);
    assert_eq!(seen.load(Ordering::Relaxed), 21);
    assert!(optimizer.remove_hook(second));
    assert_eq!((optimizer.num_groups(), optimizer.lr(0), optimizer.lr(1)), (2, 0.0, 0.25));

    let refused = optimizer.add_param_group([b.clone()], options.clone()).unwrap_err();
    assert!(refused.to_string().contains("appear in more than one parameter group"), "{refused}");
    let named = [("c".to_string(), made()?)];
    let refused = optimizer.add_param_group(named, options).unwrap_err();
    assert!(refused.to_string().contains("with names to the optimizer"), "{refused}");
    Ok(())
}

#[test]
fn parameters_on_two_devices_are_two_operations() -> Result<()> {
    let [a, b] = devices()?[..] else { panic!("two devices") };
    let made = |own: Device| Parameter::new(&Tensor::ones(&[8], (DType::F32, own))?);
    let both = [made(a)?, made(b)?];
    let mut optimizer = optim::Adam::new(both.clone(), optim::AdamOptions::new().lr(0.5))?;
    for parameter in &both {
        parameter.tensor().mul(3.0)?.sum()?.backward()?;
    }
    optimizer.step()?;
    for parameter in &both {
        let values = parameter.tensor().to_vec::<f32>()?;
        assert!(values.iter().all(|x| (x - 0.5).abs() < 1e-6), "{values:?}");
    }
    // What is kept goes with a parameter that moves, by a state.
    both[0].to(b)?;
    let state = optimizer.state_dict();
    optimizer.load_state_dict(&state)?;
    optimizer.step()?;
    assert_eq!(both[0].tensor().to_vec::<f32>()?, both[1].tensor().to_vec::<f32>()?);
    Ok(())
}

#[test]
fn numbers_that_make_no_sense_are_refused() -> Result<()> {
    let weight = Parameter::new(&Tensor::ones(&[2], DType::F32)?)?;
    let one = || [weight.clone()];
    let says = |outcome: Result<()>, what: &str| {
        let error = outcome.unwrap_err();
        assert!(error.is_invalid_argument() && error.to_string().contains(what), "{error}");
    };
    let adam = optim::AdamOptions::new;
    says(optim::Adam::new(one(), adam().lr(-1.0)).map(drop), "Invalid learning rate: -1");
    says(optim::Adam::new(one(), adam().eps(f64::NAN)).map(drop), "Invalid epsilon value: NaN");
    let betas = adam().betas((0.9, 1.0));
    says(optim::Adam::new(one(), betas).map(drop), "Invalid beta parameter at index 1: 1");
    let nesterov = optim::SGDOptions::new().nesterov(true);
    says(
        optim::SGD::new(one(), nesterov).map(drop),
        "Nesterov momentum requires a momentum and zero dampening",
    );
    let rho = optim::AdadeltaOptions::new().rho(1.5);
    says(optim::Adadelta::new(one(), rho).map(drop), "Invalid rho value: 1.5");
    let etas = optim::RpropOptions::new().etas((0.5, 0.9));
    says(optim::Rprop::new(one(), etas).map(drop), "Invalid eta values: 0.5, 0.9");
    let none: [Parameter; 0] = [];
    says(optim::Adam::new(none, adam()).map(drop), "optimizer got an empty parameter list");
    says(
        optim::Adam::new([weight.clone(), weight.clone()], adam()).map(drop),
        "duplicate parameters",
    );
    let mut lbfgs = optim::LBFGS::new(one(), optim::LBFGSOptions::new())?;
    says(Optimizer::step(&mut lbfgs), "step_with");
    Ok(())
}

#[test]
fn a_state_that_does_not_fit_changes_nothing_and_all_of_it_is_listed() -> Result<()> {
    let made = |sizes: &[i64]| Parameter::new(&Tensor::ones(sizes, DType::F32)?);
    let trained = [made(&[2])?, made(&[3])?];
    let mut from = optim::Adam::new(trained.clone(), optim::AdamOptions::new().lr(0.5))?;
    trained.iter().try_for_each(|parameter| parameter.tensor().sum()?.backward())?;
    from.step()?;
    let state = from.state_dict();
    let mut short = optim::Adam::new([made(&[2])?], optim::AdamOptions::new())?;
    let error = short.load_state_dict(&state).unwrap_err().to_string();
    assert!(error.contains("doesn't match the size of optimizer's group"), "{error}");
    short.add_param_group([made(&[3])?], optim::AdamOptions::new())?;
    let error = short.load_state_dict(&state).unwrap_err().to_string();
    assert!(error.contains("different number of parameter groups"), "{error}");

    let others = [made(&[4])?, made(&[5])?];
    let mut other = optim::Adam::new(others, optim::AdamOptions::new())?;
    let error = other.load_state_dict(&state).unwrap_err().to_string();
    for part in ["parameter 0", "parameter 1", "[2]", "[4]", "[3]", "[5]"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(other.groups()[0].options.lr, 1e-3, "nothing was changed");
    let error = other.load_state_dict(&Value::None).unwrap_err().to_string();
    assert!(error.contains("the state has no \"param_groups\""), "{error}");
    Ok(())
}

#[test]
fn averages_are_those_of_the_formulas() -> Result<()> {
    manual_seed(11);
    let model = sequential![Linear::new(2, 2)?, BatchNorm1d::new(2)?];
    let like =
        || Ok::<_, plimsoll_tensor::Error>(sequential![Linear::new(2, 2)?, BatchNorm1d::new(2)?]);
    let mean = AveragedModel::new(like()?, Average::Swa)?;
    let running = AveragedModel::new(like()?, Average::Ema(0.75))?.with_buffers();
    let largest: optim::swa_utils::AverageFunction =
        Arc::new(|average, value, _| average.maximum(value));
    let largest = AveragedModel::new(like()?, Average::By(largest))?;
    let weight = |module: &Sequential, key: &str| module.state_dict().get(key).unwrap().clone();
    for value in [4.0, 0.0, 2.0] {
        init::constant_(&weight(&model, "0.weight"), value)?;
        init::constant_(&weight(&model, "1.running_mean"), value)?;
        for averaged in [&mean, &running, &largest] {
            averaged.update_parameters(&model)?;
        }
    }
    let first = |model: &AveragedModel<Sequential>, key: &str| {
        weight(&model.module, key).to_vec::<f32>().map(|values| values[0])
    };
    assert!((first(&mean, "0.weight")? - 2.0).abs() < 1e-6);
    // 4, then 3, then 2.75.
    assert!((first(&running, "0.weight")? - 2.75).abs() < 1e-6);
    assert_eq!(first(&largest, "0.weight")?, 4.0);
    assert_eq!(first(&mean, "1.running_mean")?, 2.0, "the last one's");
    assert!((first(&running, "1.running_mean")? - 2.75).abs() < 1e-6);
    let keys: Vec<String> = mean.state_dict().keys().map(str::to_string).collect();
    assert_eq!(keys[..2], ["n_averaged", "module.0.weight"]);
    assert_eq!(mean.n_averaged.tensor().item::<i64>()?, 3);
    let x = Tensor::ones(&[4, 2], DType::F32)?;
    mean.eval();
    assert!(mean.call(&x)?.equal(&mean.module.call(&x)?)?);
    let other = sequential![Linear::new(2, 3)?, BatchNorm1d::new(3)?];
    let error = mean.update_parameters(&other).unwrap_err().to_string();
    assert!(error.contains("not alike") && error.contains("0.weight"), "{error}");
    assert!(AveragedModel::new(like()?, Average::Ema(1.5)).unwrap_err().is_invalid_argument());
    Ok(())
}

#[test]
fn statistics_of_batch_norms_are_computed_anew() -> Result<()> {
    manual_seed(12);
    let momentum = BatchNormOptions::new().momentum(0.9);
    let model = sequential![BatchNorm1d::with(3, momentum)?];
    let batches: Vec<Tensor> =
        (0..4).map(|_| Tensor::randn(&[6, 3], DType::F32)).collect::<Result<_>>()?;
    model.call(&batches[0])?;
    model.eval();
    update_bn(&model, &batches, |batch| model.call(batch).map(drop))?;
    assert!(!model.is_training(), "the mode is as before");
    let state = model.state_dict();
    let means = batches.iter().map(|batch| batch.mean_with([0])).collect::<Result<Vec<_>>>()?;
    let expected = Tensor::stack(&means.iter().collect::<Vec<_>>(), 0)?.mean_with([0])?;
    assert!(state.get("0.running_mean").unwrap().allclose(&expected)?);
    assert_eq!(state.get("0.num_batches_tracked").unwrap().item::<i64>()?, 4);
    // Afterwards the momentum is in force again.
    model.train();
    let before = state.get("0.running_mean").unwrap().clone_tensor()?;
    model.call(&batches[0])?;
    let expected = before.mul(0.1)?.add(&means[0].mul(0.9)?)?;
    assert!(state.get("0.running_mean").unwrap().allclose(&expected)?);
    Ok(())
}

/// Losses of steps whose learning rate changes, the ones after the first captured or not.
fn losses_by<O: optim::FusedRule>(options: O, captures: bool) -> Result<Vec<f32>> {
    let own = device::stand_in(Default::default())?;
    device::set_chaos(own, None);
    manual_seed(3);
    let net = network(own)?;
    let mut optimizer = optim::Fused::new(net.parameters(), options)?;
    optimizer.make_capturable()?;
    let step = |optimizer: &mut optim::Fused<O>| {
        let loss = loss(&net, own)?;
        loss.backward()?;
        optimizer.step()?;
        optimizer.zero_grad()?;
        Ok(loss.detach())
    };
    let mut losses = vec![step(&mut optimizer)?.item::<f32>()?];
    let captured = captures.then(|| Graph::capture(own, || step(&mut optimizer))).transpose()?;
    for at in 1..6 {
        optimizer.set_number(0, "lr", 0.01 / f64::from(at));
        let loss = match &captured {
            Some((graph, loss)) => {
                optimizer.write_rates()?;
                graph.replay()?;
                loss.clone()
            }
            None => step(&mut optimizer)?,
        };
        losses.push(loss.item::<f32>()?);
    }
    Ok(losses)
}

#[test]
fn captured_steps_are_the_same_steps() -> Result<()> {
    fn check<O: optim::FusedRule>(options: O) -> Result<()> {
        let plain = losses_by(options.clone(), false)?;
        assert!(plain.windows(2).all(|pair| pair[0] != pair[1]), "{plain:?}");
        assert_eq!(losses_by(options, true)?, plain, "{}", O::NAME);
        Ok(())
    }
    check(optim::SGDOptions::new().lr(0.01).momentum(0.9))?;
    check(optim::AdamOptions::new().lr(0.01).amsgrad(true))?;
    check(optim::AdamWOptions::new().lr(0.01))?;
    check(optim::NAdamOptions::new().lr(0.01))?;
    check(optim::RMSpropOptions::new().lr(0.01).momentum(0.9))?;
    check(optim::LionOptions::new().lr(0.01))
}

#[test]
fn rates_that_graphs_read_stay_in_their_place() -> Result<()> {
    let own = device::stand_in(Default::default())?;
    let parameter = || Parameter::new(&Tensor::ones(&[1], (DType::F32, own))?);
    let (first, second) = (parameter()?, parameter()?);
    let mut optimizer = optim::SGD::new([first.clone()], optim::SGDOptions::new().lr(0.25))?;
    optimizer.make_capturable()?;
    first.tensor().sum()?.backward()?;
    let (graph, ()) = Graph::capture(own, || optimizer.step())?;
    graph.replay()?;
    assert_eq!(first.tensor().item::<f32>()?, 0.75);
    // A group that is added later needs the call once more.
    optimizer.add_param_group([second.clone()], optim::SGDOptions::new().lr(0.5))?;
    optimizer.groups_mut()[0].options.lr = 0.125;
    optimizer.make_capturable()?;
    graph.replay()?;
    assert_eq!(first.tensor().item::<f32>()?, 0.625, "it writes today's rates too");
    second.tensor().sum()?.backward()?;
    let (both, ()) = Graph::capture(own, || optimizer.step())?;
    for (rate, other) in [(0.0, 0.0), (0.5, 1.0)] {
        optimizer.groups_mut()[0].options.lr = rate;
        optimizer.groups_mut()[1].options.lr = other;
        optimizer.write_rates()?;
        let before = [&first, &second].map(|one| one.tensor().item::<f32>());
        graph.replay()?;
        both.replay()?;
        let [before, beside] = before;
        assert_eq!(f64::from(first.tensor().item::<f32>()?), f64::from(before?) - 2.0 * rate);
        assert_eq!(f64::from(second.tensor().item::<f32>()?), f64::from(beside?) - other);
    }
    Ok(())
}

#[test]
fn captures_that_replays_would_not_repeat_are_refused() -> Result<()> {
    let own = device::stand_in(Default::default())?;
    let net = network(own)?;
    let mut optimizer = optim::SGD::new(net.parameters(), optim::SGDOptions::new().momentum(0.9))?;
    let refused = |optimizer: &mut optim::SGD| -> Result<String> {
        loss(&net, own)?.backward()?;
        let error = Graph::capture(own, || optimizer.step()).unwrap_err().to_string();
        optimizer.zero_grad()?;
        Ok(error)
    };
    let error = refused(&mut optimizer)?;
    assert!(error.contains("call `make_capturable()` before"), "{error}");
    optimizer.make_capturable()?;
    let error = refused(&mut optimizer)?;
    assert!(error.contains("take one step before the capture"), "{error}");
    loss(&net, own)?.backward()?;
    optimizer.step()?;
    let (graph, ()) = Graph::capture(own, || optimizer.step())?;
    graph.replay()
}
