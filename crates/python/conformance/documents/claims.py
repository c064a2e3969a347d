"""What the blocks say of memory, what is so, and where that is asserted: a test of `crates/python/tests`, as `file::test`, or a
section of a page of the guide, whose blocks are tested too, as `page#section`. A test looks whether each of them exists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What is so, in one sentence, and where it is asserted."""

    truth: str
    where: tuple[str, ...]


TRAINING = "test_memory_claims.py::test_"
DEVICE = "test_document_claims.py::test_"
BYTES = "test_documents.py::test_the_documents_"
GUIDE = "what-pytorch-really-does.md#"


def _so(truth: str, *where: str) -> Claim:
    return Claim(truth, where)


_KEPT_LOSS = _so(
    "A kept loss costs itself after backward, and what its graph saved without; a number costs nothing",
    TRAINING + "losses_kept_after_backward_cost_themselves", TRAINING + "losses_kept_without_backward_keep_what_was_saved",
    TRAINING + "losses_kept_as_numbers_cost_nothing",
)  # fmt: skip
_EVALUATION = _so(
    "Without recording only the result stays",
    TRAINING + "evaluation_without_recording_keeps_the_result_alone",
)
_FIGURES = _so("Allocated, reserved and peak bytes", "test_memory.py::test_bytes_are_counted_and_freed")
_BUFFER = _so(
    "A loop gets the same memory each time; a buffer saves the calls, not the bytes",
    DEVICE + "a_buffer_made_in_a_loop_is_the_same_memory_each_time", TRAINING + "preallocated_buffers",
)  # fmt: skip
_IN_PLACE = _so("In place takes no second tensor", TRAINING + "in_place_takes_no_second_tensor")
_LEAF = _so(
    "It raises because x is a leaf; under no_grad it breaks backward where the old value was saved",
    GUIDE + "In-place operations",
)
_PROFILER = _so("Bytes of operations are the ledger's", "test_profiler.py::test_self_bytes_are_the_ledgers")
_SNAPSHOT = _so("Snapshots in PyTorch's layout", "test_memory.py::test_snapshots")
_LAYOUT = _so(
    "A view is free, `contiguous` and `reshape` of it copies; strided is not slow by itself",
    DEVICE + "a_transposed_view_is_free_and_a_contiguous_one_a_copy", GUIDE + "Layout and broadcasting",
)  # fmt: skip
_EMPTY = _so(
    "It lowers reserved bytes, never allocated ones",
    DEVICE + "emptying_the_cache_lowers_what_is_reserved_and_nothing_else",
)
_MOVED = _so("A batch that is moved is one batch on the device", DEVICE + "moving_each_batch_holds_one_batch")
_CLEANED = _so(
    "Backward frees what was saved; `.item()` frees nothing",
    TRAINING + "backward_frees_what_was_saved",
    DEVICE + "a_number_read_frees_nothing",
)
_CHECKPOINTS = _so(
    "Checkpoints of single layers save nothing or cost memory, one around them all saves",
    TRAINING + "checkpoints_of_linear_layers", TRAINING + "checkpoints_of_a_perceptron",
    DEVICE + "every_layer_checkpointed_costs_more_than_none",
)  # fmt: skip
_COPY_BACK = _so(
    "A copy on the host frees nothing on the device; dropping the source does",
    DEVICE + "a_copy_on_the_host_frees_nothing_on_the_device",
)

CLAIMS: dict[str, Claim] = {
    "000:43": _FIGURES,
    "000:69": _so(
        "Gradients add up in place: wrong values, the same bytes",
        TRAINING + "gradients_that_are_not_zeroed_add_up_in_place",
        TRAINING + "set_to_none_frees_the_gradients",
    ),
    "000:96": _KEPT_LOSS,
    "000:124": _so(
        "The second backward raises; an LSTM's state is a tuple",
        TRAINING + "a_chained_state_with_backward_is_an_error_and_no_leak",
        TRAINING + "the_state_of_an_lstm_is_a_tuple",
    ),
    "000:148": _EVALUATION,
    "000:174": _so("The collector frees such a cycle, later", TRAINING + "only_cycles_wait_for_the_collector"),
    "000:197": _EMPTY,
    "000:211": _IN_PLACE,
    "000:237": _LAYOUT,
    "000:262": _MOVED,
    "000:290": _so("The broadcast operand has stride 0; only the result is made", GUIDE + "Layout and broadcasting"),
    "000:320": _BUFFER,
    "000:345": _so("There as a function", "test_parallel.py::test_checking_devices"),
    "000:376": _so(
        "A small batch under autocast takes more memory: copies of the weights",
        TRAINING + "autocast_of_a_small_batch_takes_more_memory",
    ),
    "000:409": _so(
        "Replicas on two devices, in bytes",
        "test_stand_in.py::test_data_parallel_gives_what_the_module_alone_gives",
    ),
    "000:438": _so("Peaks of a region", "test_memory.py::test_peaks_of_a_region"),
    "000:459": _PROFILER,
    "000:483": _SNAPSHOT,
    "000:509": _KEPT_LOSS,
    "000:528": _so(
        "It keeps every step where backward is never called",
        TRAINING + "a_hidden_state_that_is_chained_keeps_every_step",
    ),
    "000:547": _EVALUATION,
    "000:567": _COPY_BACK,
    "000:585": _LAYOUT,
    "000:602": _BUFFER,
    "000:624": _FIGURES,
    "000:637": _so(
        "Done as it says; the book names the line without a search",
        DEVICE + "where_memory_grows_is_found_by_running_more_of_the_loop",
    ),
    "000:646": _so("Peaks of a region", "test_memory.py::test_peaks_of_a_region"),
    "000:654": _so(
        "It is cache, not fragmentation",
        DEVICE + "much_more_reserved_than_allocated_is_cache_and_no_fragmentation",
    ),
    "000:668": _so("No claim of memory; the timer uses one thread", GUIDE + "Smaller corrections"),
    "000:693": _PROFILER,
    "000:701": _so(
        "Each of the four waits for the device, and the profiler says so",
        DEVICE + "reading_a_value_waits_for_the_device_and_is_told_of",
    ),
    "000:744": _so(
        "Gradients are freed, losses are numbers, evaluation records nothing",
        TRAINING + "set_to_none_frees_the_gradients",
        TRAINING + "losses_kept_as_numbers_cost_nothing",
        TRAINING + "evaluation_without_recording_keeps_the_result_alone",
    ),
    "001:27": _so("One storage for all views", DEVICE + "views_share_one_storage"),
    "001:49": _so("One storage for all views", DEVICE + "views_share_one_storage"),
    "001:70": _LAYOUT,
    "001:89": _LAYOUT,
    "001:112": _IN_PLACE,
    "001:131": _so("It does not raise: a power saves its input", GUIDE + "In-place operations"),
    "001:141": _so("The result is made once", TRAINING + "preallocated_buffers"),
    "001:158": _FIGURES,
    "001:169": _EMPTY,
    "001:182": _CLEANED,
    "001:204": _KEPT_LOSS,
    "001:220": _so("The slice keeps the whole storage, its clone does not", TRAINING + "a_slice_keeps_its_whole_storage"),
    "001:233": _SNAPSHOT,
    "001:249": _PROFILER,
    "001:266": _FIGURES,
    "002:21": _so("Freed with the last name, without the collector", DEVICE + "the_last_name_frees_with_the_collector_off"),
    "002:44": _so("Freed memory is cached and used again", DEVICE + "freed_memory_is_cached_and_used_again"),
    "002:64": _so("None frees as del does, if there is no other name", DEVICE + "none_frees_as_del_does"),
    "002:86": _EMPTY,
    "002:109": _so("It frees nothing; `x * 2` saves only a number", TRAINING + "detaching_and_copying_away_free_nothing"),
    "002:132": _COPY_BACK,
    "002:158": _KEPT_LOSS,
    "002:170": _KEPT_LOSS,
    "002:182": _EVALUATION,
    "002:196": _so("It frees nothing", TRAINING + "detaching_and_copying_away_free_nothing"),
    "002:214": _IN_PLACE,
    "002:236": _BUFFER,
    "002:263": _so(
        "Into a buffer no second tensor is made",
        DEVICE + "selecting_by_index_into_a_buffer_takes_no_second_one",
    ),
    "002:278": _MOVED,
    "002:287": _so("One batch waits beside the one in use", BYTES + "double_buffer_holds_two_batches"),
    "002:329": _so("At most four batches", DEVICE + "a_queue_of_two_holds_at_most_four_batches"),
    "002:383": _so("The caller's own name keeps the tensor", BYTES + "cleanups_free_nothing_that_the_caller_holds"),
    "002:431": _EVALUATION,
    "002:459": _CLEANED,
    "002:487": _so(
        "Only the batch in work is on the device",
        DEVICE + "features_gathered_on_the_host_leave_the_device_empty",
    ),
    "002:510": _so("Chunks bound what is between", TRAINING + "chunks_bound_what_is_between"),
    "002:548": _so(
        "Deleting before backward is no error; the graph keeps what it needs",
        TRAINING + "deleting_before_backward",
        TRAINING + "deleting_scores_before_backward",
    ),
    "002:563": _so(
        "Each emptying lets the next allocation ask the system",
        DEVICE + "emptying_the_cache_in_every_iteration_asks_the_system_every_time",
    ),
    "002:577": _KEPT_LOSS,
    "002:592": _LEAF,
    "003:8": _FIGURES,
    "003:28": _FIGURES,
    "003:68": _so("A linear layer saves nothing extra", TRAINING + "no_grad_saves_nothing_for_one_linear_layer"),
    "003:85": _so(
        "Views and operations are allowed; its tensors may not enter a graph",
        TRAINING + "inference_tensors_do_not_enter_graphs",
    ),
    "003:97": _so(
        "As written the second and third seem to cost more: the old result is alive",
        DEVICE + "three_ways_to_run_a_linear_layer_as_they_are_measured",
    ),
    "003:126": _EMPTY,
    "003:141": _EMPTY,
    "003:168": _so(
        "The fraction caps all reserved memory; resetting peaks does not reset it",
        DEVICE + "the_fraction_caps_what_is_reserved_and_resetting_peaks_leaves_it",
    ),
    "003:187": _CHECKPOINTS,
    "003:213": _CHECKPOINTS,
    "003:225": _CHECKPOINTS,
    "003:267": _so("In training and evaluation", TRAINING + "batch_norm_in_training_and_in_evaluation"),
    "003:286": _so("In training and evaluation", TRAINING + "dropout_in_training_and_in_evaluation"),
    "003:304": _so(
        "LayerNorm and BatchNorm save two numbers a row or a channel",
        TRAINING + "normalizations_keep_two_numbers_a_row_or_a_channel",
    ),
    "003:324": _so("Pruning triples a parameter until `remove`", TRAINING + "pruning_takes_memory"),
    "003:343": _so("Pinned memory, batch by batch", "test_utils_data.py::test_pinning_goes_into_what_a_batch_is_made_of"),
    "003:359": _so(
        "Workers go no further ahead than they may",
        "test_loader_processes.py::test_workers_go_no_further_ahead_than_they_may",
    ),
    "003:386": _PROFILER,
    "003:406": _so("Sampling misses peaks: the ledger does not", GUIDE + "Smaller corrections"),
    "000:306": _so("No claim of memory; the timer uses one thread", GUIDE + "Smaller corrections"),
}  # fmt: skip
