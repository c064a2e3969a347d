import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.full((64, 64), 0.5).to(device)  # expect: create-then-move
