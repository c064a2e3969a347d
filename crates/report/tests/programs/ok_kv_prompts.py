"""Right: generation for one prompt after another; the key/value cache grows within a prompt and goes with it."""
import torch
from torch import nn
import torch.nn.functional as F

class Decoder(nn.Module):
    def __init__(self, vocab=4000, dim=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens, past=None):
        x = self.embed(tokens)
        q, k, v = self.qkv(x).split(x.shape[-1], dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.out(x[:, -1] + y[:, -1]), (k, v)

@torch.inference_mode()
def generate(model, prompt, new_tokens):
    token, past, text = prompt, None, []
    for _ in range(new_tokens):
        logits, past = model(token, past)
        token = logits.argmax(dim=-1, keepdim=True)
        text.append(token[:, 0].tolist())
    return text

def main():
    model = Decoder().cuda().eval()
    answers = []
    for length in (300, 120, 410, 260, 80, 350, 500, 200, 150, 440, 90, 320):
        prompt = torch.randint(0, 4000, (16, length), device="cuda")
        answers.append(generate(model, prompt, new_tokens=8))
    return model, answers
