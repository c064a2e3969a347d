"""A sequence is decoded token by token into a list, stacked, learned from, and dropped."""
import random
import torch


class Seq2Seq(torch.nn.Module):
    def __init__(self, words=20, width=24):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.encoder = torch.nn.GRU(width, width, batch_first=True)
        self.cell = torch.nn.GRUCell(width, width)
        self.head = torch.nn.Linear(width, words)

    def forward(self, source, target, forcing):
        _, hidden = self.encoder(self.embed(source))
        hidden, token, logits = hidden[0], target[:, 0], []
        for t in range(1, target.shape[1]):
            hidden = self.cell(self.embed(token), hidden)
            logits.append(self.head(hidden))
            token = target[:, t] if random.random() < forcing else logits[-1].argmax(-1)
        return torch.stack(logits, 1)


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters())
for step in range(50):
    source = torch.randint(0, 20, (16, random.randint(4, 12)))
    target = source.flip(1)
    logits = model(source, target, forcing=1 - step / 50)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
