import torch
y = x.cpu().to("cuda")  # expect: round-trip-to-host
