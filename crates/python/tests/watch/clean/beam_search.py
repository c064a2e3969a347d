"""Beams grow by a token a step and are sorted anew; every sentence begins with an empty cache."""
import torch


class Decoder(torch.nn.Module):
    def __init__(self, words=40, width=32):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.head = torch.nn.Linear(width, words)

    def forward(self, token, cache):
        q, k, v = self.qkv(self.embed(token)).unsqueeze(1).chunk(3, -1)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        h = torch.softmax(q @ k.transpose(1, 2), -1) @ v
        return torch.log_softmax(self.head(h[:, 0]), -1), (k, v)


@torch.inference_mode()
def search(model, start, beams, length):
    tokens, scores, cache = torch.full((1, 1), start), torch.zeros(1), None
    for _ in range(length):
        log_p, cache = model(tokens[:, -1], cache)
        total = (scores[:, None] + log_p).flatten()
        scores, best = total.topk(beams)
        parents = best // log_p.shape[1]
        tokens = torch.cat([tokens[parents], (best % log_p.shape[1])[:, None]], 1)
        cache = tuple(part[parents] for part in cache)
    return tokens[0].tolist()


def main():
    model = Decoder().eval()
    for sentence in range(8):
        print(len(search(model, sentence, beams=4, length=16)))


main()
