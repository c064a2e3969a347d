import torch
x = [1, 2, 3]
y = x[0:2]
del x
