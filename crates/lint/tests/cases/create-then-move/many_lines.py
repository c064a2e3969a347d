import torch
x = torch.zeros(  # expect: create-then-move
    1024,
    1024,
).cuda()
