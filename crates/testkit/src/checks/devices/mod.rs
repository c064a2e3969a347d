//! Programs of more than one operation, and what only a device can do. Each takes the device that
//! it runs on, and panics or gives an error where the device is wrong.

pub mod agreement;
pub mod attention;
pub mod convolutions;
pub mod deterministic;
pub mod expandable;
pub mod faults;
pub mod gpu;
pub mod graphs;
pub mod indexing;
pub mod memory;
pub mod optimizers;
pub mod rows;
pub mod scaling;
pub mod sorting;
pub mod taking_back;
pub mod targets;
pub mod training;

use plimsoll_tensor::backends::Switch;
use plimsoll_tensor::{Device, Result, Tensor};

/// One of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// What it shows.
    pub name: &'static str,
    /// The program.
    pub run: fn(Device) -> Result<()>,
}

const fn program(name: &'static str, run: fn(Device) -> Result<()>) -> Program {
    Program { name, run }
}

/// What holds on every accelerator.
pub static EVERYWHERE: [Program; 44] = [
    program(
        "arithmetic_agrees_with_the_cpu_on_every_layout",
        agreement::arithmetic_agrees_with_the_cpu_on_every_layout,
    ),
    program("functions_agree_with_the_cpu", agreement::functions_agree_with_the_cpu),
    program("copies_and_casts_agree_with_the_cpu", agreement::copies_and_casts_agree_with_the_cpu),
    program("reductions_agree_with_the_cpu", agreement::reductions_agree_with_the_cpu),
    program(
        "products_and_norms_agree_with_the_cpu",
        agreement::products_and_norms_agree_with_the_cpu,
    ),
    program("gradients_agree_with_the_cpu", agreement::gradients_agree_with_the_cpu),
    program(
        "attention_of_half_types_agrees_with_the_cpu",
        attention::attention_of_half_types_agrees_with_the_cpu,
    ),
    program(
        "packed_heads_get_their_gradient_without_copies",
        attention::packed_heads_get_their_gradient_without_copies,
    ),
    program(
        "gradients_of_linear_layers_agree_with_the_cpu",
        training::gradients_of_linear_layers_agree_with_the_cpu,
    ),
    program(
        "losses_of_wide_rows_agree_with_the_cpu",
        training::losses_of_wide_rows_agree_with_the_cpu,
    ),
    program("batch_norms_agree_with_the_cpu", training::batch_norms_agree_with_the_cpu),
    program("steps_of_adamw_agree_with_the_cpu", training::steps_of_adamw_agree_with_the_cpu),
    program(
        "steps_of_every_optimizer_agree_with_the_oracle",
        optimizers::steps_of_every_optimizer_agree_with_the_oracle,
    ),
    program("gradients_are_unscaled_and_looked_at", scaling::gradients_are_unscaled_and_looked_at),
    program("norms_of_many_are_those_of_each", scaling::norms_of_many_are_those_of_each),
    program("scales_grow_and_back_off", scaling::scales_grow_and_back_off),
    program("counters_say_what_is_held", memory::counters_say_what_is_held),
    program("running_out_of_memory_is_survived", memory::running_out_of_memory_is_survived),
    program("streams_order_themselves", memory::streams_order_themselves),
    program(
        "pinned_copies_do_not_need_the_host_to_wait",
        memory::pinned_copies_do_not_need_the_host_to_wait,
    ),
    program(
        "operands_on_different_devices_are_an_error_that_names_both",
        memory::operands_on_different_devices_are_an_error_that_names_both,
    ),
    program(
        "memory_of_others_is_shared_and_given_back",
        memory::memory_of_others_is_shared_and_given_back,
    ),
    program(
        "products_are_written_where_the_target_lies",
        targets::products_are_written_where_the_target_lies,
    ),
    program(
        "reductions_are_written_where_the_target_lies",
        targets::reductions_are_written_where_the_target_lies,
    ),
    program(
        "products_take_operands_from_any_element",
        targets::products_take_operands_from_any_element,
    ),
    program(
        "gradients_of_sums_go_through_layer_norm",
        targets::gradients_of_sums_go_through_layer_norm,
    ),
    program(
        "memory_is_taken_back_without_waiting_and_launches_are_timed",
        taking_back::memory_is_taken_back_without_waiting_and_launches_are_timed,
    ),
    program(
        "indices_out_of_range_are_told_of_when_the_host_waits",
        faults::indices_out_of_range_are_told_of_when_the_host_waits,
    ),
    program("scatters_agree_with_the_cpu", indexing::scatters_agree_with_the_cpu),
    program("slices_and_lists_agree_with_the_cpu", indexing::slices_and_lists_agree_with_the_cpu),
    program("embeddings_agree_with_the_cpu", indexing::embeddings_agree_with_the_cpu),
    program(
        "norms_and_softmax_of_rows_agree_with_the_cpu",
        rows::norms_and_softmax_of_rows_agree_with_the_cpu,
    ),
    program("losses_of_rows_agree_with_the_cpu", rows::losses_of_rows_agree_with_the_cpu),
    program(
        "losses_of_extreme_rows_agree_with_the_cpu",
        rows::losses_of_extreme_rows_agree_with_the_cpu,
    ),
    program("sums_of_equal_rows_agree_with_the_cpu", rows::sums_of_equal_rows_agree_with_the_cpu),
    program("sums_down_columns_agree_with_the_cpu", rows::sums_down_columns_agree_with_the_cpu),
    program("gelu_agrees_with_the_cpu", rows::gelu_agrees_with_the_cpu),
    program("long_sorts_agree_with_the_cpu", sorting::long_sorts_agree_with_the_cpu),
    program("replayed_training_is_training", graphs::replayed_training_is_training),
    program("a_graph_has_memory_of_its_own", graphs::a_graph_has_memory_of_its_own),
    program(
        "what_cannot_be_captured_is_refused_without_harm",
        graphs::what_cannot_be_captured_is_refused_without_harm,
    ),
    program("streams_of_a_graph_are_ordered", graphs::streams_of_a_graph_are_ordered),
    program(
        "graphs_share_pools_and_read_pinned_memory",
        graphs::graphs_share_pools_and_read_pinned_memory,
    ),
    program("a_dry_capture_takes_the_same", graphs::a_dry_capture_takes_the_same),
];

/// What holds on a GPU alone; each takes `cuda:0`.
pub static ON_A_GPU: [Program; 7] = [
    program(
        "what_the_driver_counts_is_what_the_arena_reserved",
        gpu::what_the_driver_counts_is_what_the_arena_reserved,
    ),
    program(
        "a_context_of_another_library_is_left_alone",
        gpu::a_context_of_another_library_is_left_alone,
    ),
    program("streams_come_from_a_pool", gpu::streams_come_from_a_pool),
    program(
        "a_dry_h200_takes_what_the_real_one_takes",
        gpu::a_dry_h200_takes_what_the_real_one_takes,
    ),
    program(
        "convolutions_by_cudnn_agree_with_our_own",
        convolutions::convolutions_by_cudnn_agree_with_our_own,
    ),
    program("products_do_without_the_libraries", deterministic::products_do_without_the_libraries),
    program("pages_of_a_gpu_come_and_go", expandable::pages_of_a_gpu_come_and_go),
];

/// A setting until the end of a program, also one that fails.
pub(super) struct Kept(&'static Switch, bool);

impl Kept {
    pub(super) fn set(switch: &'static Switch, on: bool) -> Kept {
        Kept(switch, switch.set(on))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Values in a range where float32 functions are well behaved, the same every time.
pub(super) fn values(n: i64) -> Tensor {
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 % 2003) as f32 - 1000.0) / 300.0).collect();
    Tensor::from_slice(&x, &[n], Device::cpu()).unwrap()
}

/// Runs `program` on inputs of the CPU and of `device`, and compares every result.
pub(super) fn compare(
    device: Device,
    what: &str,
    inputs: &[Tensor],
    tolerance: f64,
    program: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<()> {
    let there: Vec<Tensor> = inputs.iter().map(|x| x.to(device)).collect::<Result<_>>()?;
    let (expected, found) = (program(inputs)?, program(&there)?);
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found.device(), device, "{what}");
        assert_eq!((expected.shape(), expected.dtype()), (found.shape(), found.dtype()), "{what}");
        assert_eq!(expected.strides(), found.strides(), "{what} on {device}");
        for (at, (e, f)) in expected.to_f64_vec()?.iter().zip(found.to_f64_vec()?).enumerate() {
            let same = e == &f || (e.is_nan() && f.is_nan());
            let close = same || (e - f).abs() <= tolerance * e.abs().max(1.0);
            assert!(close, "{what} on {device}, element {at}: {f} instead of {e}");
        }
    }
    Ok(())
}
