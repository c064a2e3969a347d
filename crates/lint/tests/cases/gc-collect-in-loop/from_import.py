from gc import collect
import torch
for x in loader:
    output = model(x)
    collect()  # expect: gc-collect-in-loop
