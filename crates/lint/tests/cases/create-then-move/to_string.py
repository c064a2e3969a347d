import torch
x = torch.ones(1024, 1024, dtype=torch.float16).to("cuda:0")  # expect: create-then-move
