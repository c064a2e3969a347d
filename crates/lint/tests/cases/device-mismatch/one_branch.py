import torch
a = torch.zeros(3)
b = torch.zeros(3)
if torch.cuda.is_available():
    a = a.cuda()
    b = b.cuda()
c = a + b
