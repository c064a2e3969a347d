import torch
optimizer.zero_grad()
