"""Out of memory: weights and gradients fit under the limit, the two moments that Adam makes at its first step do not."""
import torch
from torch import nn

def main():
    torch.cuda.set_per_process_memory_fraction(2 * (1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()  # about 600 MB of weights
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    losses, failure = [], None
    try:
        for step in range(20):
            x = torch.randn(4, 64, 1024, device="cuda")
            loss = (model(x) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    except torch.OutOfMemoryError as error:
        failure = str(error)
    return model, opt, losses, failure
