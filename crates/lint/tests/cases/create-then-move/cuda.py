import torch
x = torch.zeros(1024, 1024).cuda()  # expect: create-then-move
