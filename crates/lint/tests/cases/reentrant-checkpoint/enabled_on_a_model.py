import torch
model.gradient_checkpointing_enable({"use_reentrant": True})
apply(model, use_reentrant=True)  # expect: reentrant-checkpoint
