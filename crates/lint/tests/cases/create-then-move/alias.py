import torch as th
x = th.eye(64).to("cuda")  # expect: create-then-move
