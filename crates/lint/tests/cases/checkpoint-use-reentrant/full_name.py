import torch
import torch.utils.checkpoint
def forward(layer, *inputs):
    return torch.utils.checkpoint.checkpoint(layer, *inputs)  # expect: checkpoint-use-reentrant
