import torch
x = (torch.zeros(64, 64)).cuda()  # expect: create-then-move
y = torch.zeros(64, (64)).cuda()  # expect: create-then-move
z = torch.zeros(64, 64,).cuda()  # expect: create-then-move
