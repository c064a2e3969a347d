import torch
for epoch in range(10):
    net.register_forward_pre_hook(save)  # expect: hooks-in-loop
    train(net)
