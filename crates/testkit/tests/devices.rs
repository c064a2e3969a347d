//! Programs on every accelerator that this machine has: the stand-in, and a GPU where there is one
//! (where one is required, as on a machine that is there to test it, `PLIMSOLL_REQUIRE_CUDA` makes
//! its absence a failure). The programs are in `checks/devices/`.

use plimsoll_tensor::{Device, Result, device};
use plimsoll_testkit::checks::devices::{
    EVERYWHERE, ON_A_GPU, agreement, attention, convolutions, deterministic, expandable, faults,
    gpu, graphs, indexing, memory, rows, sorting, taking_back, targets, training,
};
use plimsoll_testkit::subject;

fn gpu_device() -> Option<Device> {
    match device::cuda(0) {
        Ok(cuda) => Some(cuda),
        Err(why) => {
            assert!(std::env::var_os("PLIMSOLL_REQUIRE_CUDA").is_none(), "{why}");
            None
        }
    }
}

fn on_every_accelerator(program: fn(Device) -> Result<()>) -> Result<()> {
    program(device::stand_in(device::StandIn::default())?)?;
    on_a_gpu(program)
}

fn on_a_gpu(program: fn(Device) -> Result<()>) -> Result<()> {
    gpu_device().map_or(Ok(()), program)
}

#[test]
fn arithmetic_agrees_with_the_cpu_on_every_layout() -> Result<()> {
    on_every_accelerator(agreement::arithmetic_agrees_with_the_cpu_on_every_layout)
}

#[test]
fn functions_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(agreement::functions_agree_with_the_cpu)
}

#[test]
fn copies_and_casts_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(agreement::copies_and_casts_agree_with_the_cpu)
}

#[test]
fn reductions_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(agreement::reductions_agree_with_the_cpu)
}

#[test]
fn products_and_norms_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(agreement::products_and_norms_agree_with_the_cpu)
}

#[test]
fn gradients_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(agreement::gradients_agree_with_the_cpu)
}

#[test]
fn gradients_of_linear_layers_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(training::gradients_of_linear_layers_agree_with_the_cpu)
}

#[test]
fn losses_of_wide_rows_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(training::losses_of_wide_rows_agree_with_the_cpu)
}

#[test]
fn convolutions_by_cudnn_agree_with_our_own() -> Result<()> {
    on_a_gpu(convolutions::convolutions_by_cudnn_agree_with_our_own)
}

#[test]
fn products_do_without_the_libraries() -> Result<()> {
    on_a_gpu(deterministic::products_do_without_the_libraries)
}

#[test]
fn attention_of_half_types_agrees_with_the_cpu() -> Result<()> {
    on_every_accelerator(attention::attention_of_half_types_agrees_with_the_cpu)
}

#[test]
fn packed_heads_get_their_gradient_without_copies() -> Result<()> {
    on_every_accelerator(attention::packed_heads_get_their_gradient_without_copies)
}

#[test]
fn batch_norms_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(training::batch_norms_agree_with_the_cpu)
}

#[test]
fn steps_of_adamw_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(training::steps_of_adamw_agree_with_the_cpu)
}

#[test]
fn counters_say_what_is_held() -> Result<()> {
    on_every_accelerator(memory::counters_say_what_is_held)
}

#[test]
fn running_out_of_memory_is_survived() -> Result<()> {
    on_every_accelerator(memory::running_out_of_memory_is_survived)
}

#[test]
fn streams_order_themselves() -> Result<()> {
    on_every_accelerator(memory::streams_order_themselves)
}

#[test]
fn pinned_copies_do_not_need_the_host_to_wait() -> Result<()> {
    on_every_accelerator(memory::pinned_copies_do_not_need_the_host_to_wait)
}

#[test]
fn operands_on_different_devices_are_an_error_that_names_both() -> Result<()> {
    on_every_accelerator(memory::operands_on_different_devices_are_an_error_that_names_both)
}

#[test]
fn memory_of_others_is_shared_and_given_back() -> Result<()> {
    on_every_accelerator(memory::memory_of_others_is_shared_and_given_back)
}

#[test]
fn products_are_written_where_the_target_lies() -> Result<()> {
    on_every_accelerator(targets::products_are_written_where_the_target_lies)
}

#[test]
fn reductions_are_written_where_the_target_lies() -> Result<()> {
    on_every_accelerator(targets::reductions_are_written_where_the_target_lies)
}

#[test]
fn products_take_operands_from_any_element() -> Result<()> {
    on_every_accelerator(targets::products_take_operands_from_any_element)
}

#[test]
fn gradients_of_sums_go_through_layer_norm() -> Result<()> {
    on_every_accelerator(targets::gradients_of_sums_go_through_layer_norm)
}

#[test]
fn what_the_driver_counts_is_what_the_arena_reserved() -> Result<()> {
    on_a_gpu(gpu::what_the_driver_counts_is_what_the_arena_reserved)
}

#[test]
fn a_context_of_another_library_is_left_alone() -> Result<()> {
    on_a_gpu(gpu::a_context_of_another_library_is_left_alone)
}

#[test]
fn streams_come_from_a_pool() -> Result<()> {
    on_a_gpu(gpu::streams_come_from_a_pool)
}

#[test]
fn memory_pinned_before_the_gpu_was_opened_is_registered() -> Result<()> {
    let pinned = gpu::memory_pinned_before_the_gpu_was_opened_is_registered;
    if device::cuda_count() > 0 { pinned() } else { Ok(()) }
}

#[test]
fn a_dry_h200_takes_what_the_real_one_takes() -> Result<()> {
    on_a_gpu(gpu::a_dry_h200_takes_what_the_real_one_takes)
}

#[test]
fn memory_is_taken_back_without_waiting_and_launches_are_timed() -> Result<()> {
    on_every_accelerator(taking_back::memory_is_taken_back_without_waiting_and_launches_are_timed)
}

#[test]
fn indices_out_of_range_are_told_of_when_the_host_waits() -> Result<()> {
    on_every_accelerator(faults::indices_out_of_range_are_told_of_when_the_host_waits)
}

#[test]
fn scatters_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(indexing::scatters_agree_with_the_cpu)
}

#[test]
fn slices_and_lists_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(indexing::slices_and_lists_agree_with_the_cpu)
}

#[test]
fn embeddings_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(indexing::embeddings_agree_with_the_cpu)
}

#[test]
fn long_sorts_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(sorting::long_sorts_agree_with_the_cpu)
}

#[test]
fn replayed_training_is_training() -> Result<()> {
    on_every_accelerator(graphs::replayed_training_is_training)
}

#[test]
fn a_graph_has_memory_of_its_own() -> Result<()> {
    on_every_accelerator(graphs::a_graph_has_memory_of_its_own)
}

#[test]
fn what_cannot_be_captured_is_refused_without_harm() -> Result<()> {
    on_every_accelerator(graphs::what_cannot_be_captured_is_refused_without_harm)
}

#[test]
fn streams_of_a_graph_are_ordered() -> Result<()> {
    on_every_accelerator(graphs::streams_of_a_graph_are_ordered)
}

#[test]
fn graphs_share_pools_and_read_pinned_memory() -> Result<()> {
    on_every_accelerator(graphs::graphs_share_pools_and_read_pinned_memory)
}

#[test]
fn a_dry_capture_takes_the_same() -> Result<()> {
    on_every_accelerator(graphs::a_dry_capture_takes_the_same)
}

#[test]
fn norms_and_softmax_of_rows_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::norms_and_softmax_of_rows_agree_with_the_cpu)
}

#[test]
fn losses_of_rows_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::losses_of_rows_agree_with_the_cpu)
}

#[test]
fn losses_of_extreme_rows_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::losses_of_extreme_rows_agree_with_the_cpu)
}

#[test]
fn sums_of_equal_rows_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::sums_of_equal_rows_agree_with_the_cpu)
}

#[test]
fn sums_down_columns_agree_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::sums_down_columns_agree_with_the_cpu)
}

#[test]
fn gelu_agrees_with_the_cpu() -> Result<()> {
    on_every_accelerator(rows::gelu_agrees_with_the_cpu)
}

/// Those that ask the most of memory and take little time, but for the one that fills a limit to
/// the byte: pages of 20 MiB do not.
#[test]
fn programs_give_the_same_where_segments_expand() -> Result<()> {
    let programs: [fn(Device) -> Result<()>; 11] = [
        training::batch_norms_agree_with_the_cpu,
        memory::counters_say_what_is_held,
        memory::streams_order_themselves,
        memory::pinned_copies_do_not_need_the_host_to_wait,
        memory::memory_of_others_is_shared_and_given_back,
        taking_back::memory_is_taken_back_without_waiting_and_launches_are_timed,
        graphs::replayed_training_is_training,
        graphs::a_graph_has_memory_of_its_own,
        graphs::streams_of_a_graph_are_ordered,
        graphs::graphs_share_pools_and_read_pinned_memory,
        graphs::a_dry_capture_takes_the_same,
    ];
    programs.iter().try_for_each(|program| program(subject::expandable_device()))
}

#[test]
fn pages_come_and_go_under_live_tensors() -> Result<()> {
    expandable::pages_come_and_go_under_live_tensors(subject::expandable_device())
}

#[test]
fn pages_of_a_gpu_come_and_go() -> Result<()> {
    on_a_gpu(expandable::pages_of_a_gpu_come_and_go)
}

/// The bundle for GPUs runs the lists, and tests run by their names: nothing is in one of them
/// alone.
#[test]
fn every_program_of_the_lists_is_a_test() {
    let tests =
        [include_str!("devices.rs"), include_str!("optimizers.rs"), include_str!("scaling.rs")];
    for program in EVERYWHERE.iter().chain(&ON_A_GPU) {
        let test = format!("fn {}()", program.name);
        assert!(tests.iter().any(|file| file.contains(&test)), "`{}` is no test", program.name);
    }
}
