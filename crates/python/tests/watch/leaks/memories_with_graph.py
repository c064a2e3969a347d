"""A streaming encoder attends to its memories of earlier segments, with all their graphs."""
# kind: activation kept by a graph
# holder: `mems`
import torch


class Segment(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = torch.nn.Linear(width, width)
        self.mix = torch.nn.Linear(2 * width, width)

    def forward(self, x, mems):
        weights = torch.softmax(self.key(x) @ mems.t(), dim=-1)  # made
        return torch.tanh(self.mix(torch.cat([x, weights @ mems], dim=-1)))  # made


def stream(segments):
    encoder = Segment(24)
    mems = torch.zeros(12, 24)
    for segment in segments:
        mems = encoder(segment, mems)
    return mems


stream(torch.utils.data.DataLoader(torch.randn(50, 12, 24), batch_size=None))
