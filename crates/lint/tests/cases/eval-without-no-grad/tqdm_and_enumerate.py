import torch
from tqdm import tqdm
net.eval()
for i, (x, y) in enumerate(tqdm(testloader)):
    outputs = net(x)  # expect: eval-without-no-grad
