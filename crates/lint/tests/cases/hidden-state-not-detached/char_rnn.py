import torch
import torch.nn as nn


class CharModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(out), state


model = CharModel(96, 256)
optimizer = torch.optim.Adam(model.parameters())
loss_fn = nn.CrossEntropyLoss()
state = None
for x, y in dataloader:
    optimizer.zero_grad()
    logits, state = model(x, state)  # expect: hidden-state-not-detached
    loss = loss_fn(logits.flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
