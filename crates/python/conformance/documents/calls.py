"""What the text of a block does not say: how its functions and classes are called, and which of the prelude's things a name means
where it means something else than elsewhere (`prelude.py`). Everything that a block defines is called; a test counts."""

from __future__ import annotations

# By block: lines of Python that follow it.
CALLS: dict[str, list[str]] = {
    "000:43": ["diagnose_memory_growth()"],
    "000:668": ["train_step()"],
    "001:182": ["value = train_step(model, batch, target, optimizer)", "assert isinstance(value, float)"],
    "001:266": ["print_memory_summary()"],
    "002:182": ["evaluate(model, dataloader)"],
    "002:329": ["for batch in TripleBufferedLoader(dataloader, 'cuda'):", "    output = model(batch)"],
    "002:383": [
        "aggressive_cleanup(x)",
        "assert typical_cleanup(x) is None",
        "assert typical_cleanup(x.sum()) == x.sum().item()",
    ],
    "002:431": ["evaluate(model, dataloader)"],
    "002:459": ["train(model, dataloader, optimizer)"],
    "002:487": ["assert accumulate_features(model, dataloader).shape == (12, 32)"],
    "002:510": ["assert process_large_batch(model, large_input).shape == (80, 4)"],
    "003:141": ["inference_with_cache_management(model, data_loader)"],
    "003:187": ["output = ModelWithCheckpoint()(input_data)", "output.sum().backward()"],
    "003:343": ["for data, target in data_loader:", "    assert len(data) == len(target)"],
    "003:359": ["for data in loader:", "    assert data.shape == (8, 16)"],
}

# The same for one part, by its first marked line.
CALLS_OF_PARTS: dict[str, list[str]] = {
    "000:174": [
        "trainer = Trainer()",
        "trainer.model = model",
        "trainer.add_callback()",
        "trainer.callbacks[0]()",
    ],
    "000:183": ["trainer = Trainer()", "trainer.callbacks.append(print)", "trainer.clear_callbacks()"],
}

# By block: names of the text, and what they are called in the prelude.
MEANS: dict[str, dict[str, str]] = {
    "000:345": {"batch": "labelled_batch"},
    "000:744": {"dataset": "pairs", "val_loader": "loader_of_pairs"},
    "001:204": {"model": "model_of_a_loss"},
    "002:431": {"dataloader": "loader_of_labelled"},
    "002:459": {"dataloader": "loader_of_labelled"},
    "002:487": {"model": "model_with_features"},
    "003:141": {"data_loader": "loader_of_pairs"},
    "003:187": {"input_data": "wide_input"},
    "003:267": {"input_data": "wide_input"},
    "003:286": {"input_data": "wide_input"},
    "003:304": {"input_data": "wide_input"},
    "000:306": {"x": "cube", "y": "row"},
    "003:213": {"x": "input_data"},
    "002:592": {"x": "leaf"},
}

# A name that may be either of two things: the part runs a second time, under another name.
EITHER: dict[str, dict[str, str]] = {"000:124": {"rnn": "lstm"}}

# Names that the documents use and never define, by mistake.
MISTAKES = {"batch_idx"}
