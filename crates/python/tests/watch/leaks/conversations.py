"""Keys and values of every conversation stay in a table after it has ended."""
# kind: value
# holder: SESSIONS
import torch

SESSIONS = {}


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, past):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k = torch.cat([past[0], k], dim=1)  # made
            v = torch.cat([past[1], v], dim=1)  # made
        scores = torch.softmax(q @ k.transpose(1, 2) / x.shape[-1] ** 0.5, dim=-1)
        return self.out(scores @ v), (k, v)


@torch.no_grad()
def reply(model, conversation, tokens):
    x = torch.randn(1, 8, 256)
    for _ in range(tokens):
        x, SESSIONS[conversation] = model(x[:, -1:], SESSIONS.get(conversation))


def main():
    model = Attention(256)
    for conversation in range(30):
        reply(model, conversation, 10)


main()
