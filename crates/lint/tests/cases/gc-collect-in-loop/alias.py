import gc as garbage
import torch
for x in loader:
    output = model(x)
    garbage.collect()  # expect: gc-collect-in-loop
