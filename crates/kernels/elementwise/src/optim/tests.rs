//! Steps at every instruction set and number of threads: the same bits, and nothing outside.

use plimsoll_core::DType;
use plimsoll_engine::testing::{Held, Lot, launch_all, random_layout};

use super::*;

fn rules() -> [Rule; 10] {
    let (beta1, beta2, eps) = (0.8, 0.9, 1e-6);
    [
        Rule::Sgd(Sgd { momentum: 0.9, dampening: 0.1, nesterov: true, first: false }),
        Rule::Adam(Adam { beta1, beta2, eps, amsgrad: true }),
        Rule::NAdam(NAdam { beta1, beta2, eps, momentum_decay: 4e-3 }),
        Rule::RAdam(RAdam { beta1, beta2, eps }),
        Rule::Adagrad(Adagrad { lr_decay: 0.1, eps }),
        Rule::Adadelta(Adadelta { rho: 0.9, eps }),
        Rule::RmsProp(RmsProp { alpha: 0.9, eps, momentum: 0.5, centered: true }),
        Rule::Rprop(Rprop {
            eta_minus: 0.5,
            eta_plus: 1.2,
            step_size_min: 1e-6,
            step_size_max: 50.0,
        }),
        Rule::Adamax(Adamax { beta1, beta2, eps }),
        Rule::Lion(Lion { beta1, beta2 }),
    ]
}

/// Around 1: what rules take roots of is positive.
fn kept(lot: &mut Lot) -> f64 {
    1.0 + lot.signed() / 4.0
}

#[test]
fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
    let mut lot = Lot(7);
    // Together enough for several threads; blocks that end within a parameter, and odd layouts.
    let shapes: [&[usize]; 5] = [&[40_001], &[3], &[37, 61], &[2, 0], &[600]];
    let kinds = [
        (DType::F32, false),
        (DType::F64, false),
        (DType::BF16, false),
        (DType::F16, true),
        (DType::BF16, true),
    ];
    for (rule, (dtype, masters)) in rules().into_iter().flat_map(|rule| kinds.map(|k| (rule, k))) {
        let step = Step {
            rule,
            learning_rate: Some(0.1),
            weight_decay: 0.01,
            decoupled: masters,
            maximize: false,
            steps: Steps::Counted,
            masters,
            scaled: false,
            skips: false,
        };
        let list = |dtype: DType, lot: &mut Lot| -> Vec<Held> {
            let one = |shape: &&[usize]| {
                let layout = random_layout(lot, shape, false);
                Held::new(dtype, layout, || kept(lot))
            };
            shapes.iter().map(one).collect()
        };
        let own = if masters { DType::F32 } else { dtype };
        let grads = list(dtype, &mut lot);
        let mut outputs = list(dtype, &mut lot);
        if masters {
            outputs.extend(list(own, &mut lot));
        }
        for _ in rule.states().iter().flatten() {
            outputs.extend(list(own, &mut lot));
        }
        let numbers = |value: f64| shapes.map(|_| Held::of(DType::F32, &[], &[value]));
        if rule.keeps_product() {
            outputs.extend(numbers(0.5));
        }
        outputs.extend(numbers(3.0));
        let grads: Vec<&Held> = grads.iter().collect();
        let mut first: Option<Vec<Vec<u64>>> = None;
        let kernel = |launch: &CpuLaunch<'_>| super::step(launch, &step);
        launch_all(&grads, &mut outputs, 0, kernel, |outputs| {
            let bits = |held: &Held| held.values().into_iter().map(f64::to_bits).collect();
            let found: Vec<Vec<u64>> = outputs.iter().map(bits).collect();
            outputs.iter().for_each(Held::check_outside);
            assert!(*first.get_or_insert(found.clone()) == found, "{rule:?} of {dtype}");
            assert_eq!(outputs[outputs.len() - 1].values(), [4.0], "a step is counted");
        });
    }
}
