import torch
for i in range(12):
    model.layers[i].register_forward_hook(save)
