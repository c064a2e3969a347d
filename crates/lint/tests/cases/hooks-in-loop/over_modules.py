import torch
for module in model.modules():
    module.register_forward_hook(save)
for name, layer in model.named_children():
    layer.register_full_backward_hook(save)
