//! Sixty steps of every scheduler.

use plimsoll_nn::optim::lr_scheduler::{
    AnnealStrategy, ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts,
    CyclicLR, CyclicMode, CyclicOptions, ExponentialLR, LRScheduler, LambdaLR, LinearLR,
    MultiStepLR, MultiplicativeLR, OneCycleLR, OneCycleOptions, PlateauMode, PlateauOptions,
    PolynomialLR, ReduceLROnPlateau, SequentialLR, StepLR, ThresholdMode,
};
use plimsoll_nn::optim::{Optimizer, swa_utils::SWALR};
use plimsoll_nn::saved;
use plimsoll_tensor::{Device, Result};
use serde_json::Value;

use crate::objective::{made, params};
use crate::states::{cases, numbers, state};

fn golden() -> Vec<Value> {
    cases(include_str!("../golden/schedulers.json"))
}

/// A scheduler of whichever kind.
enum Made {
    Plain(Box<dyn LRScheduler>),
    Plateau(ReduceLROnPlateau),
}

/// The script's measure.
fn measure(step: i64) -> f64 {
    (-((step / 6) as f64) / 3.0).exp() + 0.01 * (step as f64).sin()
}

impl Made {
    fn step(&mut self, optimizer: &mut dyn Optimizer, step: i64) -> Result<()> {
        match self {
            Made::Plain(scheduler) => scheduler.step(optimizer),
            Made::Plateau(scheduler) => scheduler.step(optimizer, measure(step)),
        }
    }

    fn load(&mut self, state: &saved::Value) -> Result<()> {
        match self {
            Made::Plain(scheduler) => scheduler.load_state_dict(state),
            Made::Plateau(scheduler) => scheduler.load_state_dict(state),
        }
    }

    fn state(&self) -> saved::Value {
        match self {
            Made::Plain(scheduler) => scheduler.state_dict(),
            Made::Plateau(scheduler) => scheduler.state_dict(),
        }
    }
}

fn plain(scheduler: impl LRScheduler + 'static) -> Result<Made> {
    Ok(Made::Plain(Box::new(scheduler)))
}

/// The scheduler of an expression.
fn scheduler(name: &str, o: &mut dyn Optimizer) -> Result<Made> {
    let cycle = |up: i64| CyclicOptions::new().step_size_up(up);
    match name {
        "StepLR(o, 7, 0.5)" => plain(StepLR::new(o, 7, 0.5)?),
        "MultiStepLR(o, [5, 20, 20, 41], 0.3)" => {
            plain(MultiStepLR::new(o, &[5, 20, 20, 41], 0.3)?)
        }
        "ConstantLR(o, 0.25, 9)" => plain(ConstantLR::new(o, 0.25, 9)?),
        "LinearLR(o, 0.2, 0.9, 25)" => plain(LinearLR::new(o, 0.2, 0.9, 25)?),
        "ExponentialLR(o, 0.93)" => plain(ExponentialLR::new(o, 0.93)?),
        "CosineAnnealingLR(o, 13, 0.01)" => plain(CosineAnnealingLR::new(o, 13, 0.01)?),
        "CosineAnnealingWarmRestarts(o, 6, 2, 0.02)" => {
            plain(CosineAnnealingWarmRestarts::new(o, 6, 2, 0.02)?)
        }
        "CosineAnnealingWarmRestarts(o, 9)" => {
            plain(CosineAnnealingWarmRestarts::new(o, 9, 1, 0.0)?)
        }
        "PolynomialLR(o, 40, 2.0)" => plain(PolynomialLR::new(o, 40, 2.0)?),
        "OneCycleLR(o, 0.8, total_steps=70)" => {
            plain(OneCycleLR::new(o, &[0.8], 70, OneCycleOptions::new())?)
        }
        "OneCycleLR(o, 0.8, total_steps=70, three_phase=True, anneal_strategy='linear', pct_start=0.25)" =>
        {
            let options = OneCycleOptions::new().three_phase(true).pct_start(0.25);
            let options = options.anneal_strategy(AnnealStrategy::Linear);
            plain(OneCycleLR::new(o, &[0.8], 70, options)?)
        }
        "CyclicLR(o, 0.1, 0.6, step_size_up=8)" => {
            plain(CyclicLR::new(o, &[0.1], &[0.6], cycle(8))?)
        }
        "CyclicLR(o, 0.1, 0.6, step_size_up=4, step_size_down=9, mode='triangular2')" => {
            let options = cycle(4).step_size_down(9i64).mode(CyclicMode::Triangular2);
            plain(CyclicLR::new(o, &[0.1], &[0.6], options)?)
        }
        "CyclicLR(o, 0.1, 0.6, step_size_up=8, mode='exp_range', gamma=0.97, cycle_momentum=False)" =>
        {
            let options = cycle(8).mode(CyclicMode::ExpRange).gamma(0.97).cycle_momentum(false);
            plain(CyclicLR::new(o, &[0.1], &[0.6], options)?)
        }
        "LambdaLR(o, lambda epoch: 0.95**epoch)" => {
            plain(LambdaLR::new(o, |epoch| 0.95f64.powf(epoch as f64))?)
        }
        "MultiplicativeLR(o, lambda epoch: 1 - 1 / (epoch + 3))" => {
            plain(MultiplicativeLR::new(o, |epoch| 1.0 - 1.0 / (epoch as f64 + 3.0))?)
        }
        "SequentialLR(o, [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [8, 30])" =>
        {
            let (a, b) = (ConstantLR::new(o, 0.1, 20)?, ExponentialLR::new(o, 0.9)?);
            let c = CosineAnnealingLR::new(o, 10, 0.0)?;
            let all: Vec<Box<dyn LRScheduler>> = vec![Box::new(a), Box::new(b), Box::new(c)];
            plain(SequentialLR::new(o, all, &[8, 30])?)
        }
        "SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 10), s.CosineAnnealingWarmRestarts(o, 7, 2)], [12])" =>
        {
            let first = LinearLR::new(o, 0.1, 1.0, 10)?;
            let then = CosineAnnealingWarmRestarts::new(o, 7, 2, 0.0)?;
            plain(SequentialLR::new(o, vec![Box::new(first), Box::new(then)], &[12])?)
        }
        "ChainedScheduler([s.ConstantLR(o, 0.1, 15), s.ExponentialLR(o, 0.97), s.StepLR(o, 11, 0.5)])" =>
        {
            let (a, b) = (ConstantLR::new(o, 0.1, 15)?, ExponentialLR::new(o, 0.97)?);
            let c = StepLR::new(o, 11, 0.5)?;
            plain(ChainedScheduler::new(o, vec![Box::new(a), Box::new(b), Box::new(c)])?)
        }
        "swa_utils.SWALR(o, 0.03, 12)" => plain(SWALR::new(o, &[0.03], 12, AnnealStrategy::Cos)?),
        "swa_utils.SWALR(o, 0.9, 5, 'linear')" => {
            plain(SWALR::new(o, &[0.9], 5, AnnealStrategy::Linear)?)
        }
        "ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1)" => {
            let options = PlateauOptions::new().patience(2).factor(0.5).cooldown(1);
            Ok(Made::Plateau(ReduceLROnPlateau::new(o, options)?))
        }
        "ReduceLROnPlateau(o, mode='max', patience=1, factor=0.3, threshold=0.2, threshold_mode='abs', min_lr=0.01)" =>
        {
            let options = PlateauOptions::new().mode(PlateauMode::Max).patience(1).factor(0.3);
            let options = options.threshold(0.2).threshold_mode(ThresholdMode::Abs);
            Ok(Made::Plateau(ReduceLROnPlateau::new(o, options.min_lr([0.01]))?))
        }
        other => panic!("no scheduler {other}"),
    }
}

/// Rates as PyTorch's, which were written with all digits; a state has 13.
fn assert_rates(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= tolerance * expected.abs();
        assert!(close, "{name}, epoch {at}: {found} for {expected}");
    }
}

#[test]
fn sixty_rates_are_pytorchs() -> Result<()> {
    for case in golden() {
        let name = case["name"].as_str().expect("a name");
        let params = params(Device::cpu())?;
        let mut optimizer = made(case["optimizer"].as_str().expect("a name"), &params)?;
        let optimizer = optimizer.dynamic();
        let mut own = scheduler(name, optimizer)?;
        let mut rates = vec![optimizer.lr(0)];
        let mut momenta = vec![optimizer.momentum(0).expect("it has one")];
        for step in 0..60 {
            own.step(optimizer, step)?;
            rates.push(optimizer.lr(0));
            momenta.push(optimizer.momentum(0).expect("as above"));
        }
        assert_rates(name, &rates, &numbers(&case["rates"]), 1e-14);
        if case["momenta"].is_array() {
            assert_rates(name, &momenta, &numbers(&case["momenta"]), 1e-14);
        }
    }
    Ok(())
}

/// PyTorch's state after 20 steps, and our own: the rest is the same.
#[test]
fn schedules_go_on_from_a_state() -> Result<()> {
    for case in golden() {
        let name = case["name"].as_str().expect("a name");
        let of = case["optimizer"].as_str().expect("a name");
        let expected = numbers(&case["rates"]);
        let params = params(Device::cpu())?;
        let mut first = made(of, &params)?;
        let mut stepped = scheduler(name, first.dynamic())?;
        for step in 0..20 {
            stepped.step(first.dynamic(), step)?;
        }
        let ours = (stepped.state(), first.dynamic().state_dict());
        let theirs = (state(&case["state"])?, state(&case["optimizer_state"])?);
        // What PyTorch's has beside ours says how it was called, or follows from others.
        for (key, _) in entries(&theirs.0) {
            let is_extra =
                ["_get_lr_called_within_step", "use_beta1", "default_min_lr", "mode_worse"];
            assert!(
                is_extra.contains(&&*key) || ours.0.get(key.as_str()).is_some(),
                "{name}: {key}"
            );
        }
        for (scheduler_state, optimizer_state) in [ours, theirs] {
            let mut optimizer = made(of, &params)?;
            let mut own = scheduler(name, optimizer.dynamic())?;
            own.load(&scheduler_state)?;
            optimizer.dynamic().load_state_dict(&optimizer_state)?;
            let mut rates = vec![optimizer.dynamic().lr(0)];
            for step in 20..60 {
                own.step(optimizer.dynamic(), step)?;
                rates.push(optimizer.dynamic().lr(0));
            }
            // Near its least, 13 digits of what a rate was are fewer of what it becomes.
            assert_rates(name, &rates, &expected[20..], 1e-9);
        }
    }
    Ok(())
}

fn entries(state: &saved::Value) -> Vec<(String, saved::Value)> {
    let entries = state.as_dict().expect("a state is a dictionary");
    let named = entries.iter().map(|(key, value)| match key {
        saved::Value::Str(key) => (key.clone(), value.clone()),
        key => (format!("{key:?}"), value.clone()),
    });
    named.collect()
}
