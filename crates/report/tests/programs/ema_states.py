"""An average of the weights is computed anew each step and all old averages stay in a list."""
import torch
from torch import nn

def main():
    net = nn.Linear(1024, 1024).cuda()
    opt = torch.optim.Adam(net.parameters())
    history = []
    ema = {k: v.detach().clone() for k, v in net.state_dict().items()}
    for i in range(14):
        loss = net(torch.randn(64, 1024, device="cuda")).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        ema = {k: 0.9 * ema[k] + 0.1 * v.detach() for k, v in net.state_dict().items()}
        history.append(ema)
    return net, opt, history
