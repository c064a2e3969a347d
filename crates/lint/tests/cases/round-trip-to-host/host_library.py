import torch
from scipy.optimize import linear_sum_assignment
for cost in loader:
    rows = linear_sum_assignment(cost.cpu().numpy())
    rows = torch.tensor(rows).cuda()
