import torch
from mylib import checkpoint
def save(model):
    checkpoint(model, "x.pt")
