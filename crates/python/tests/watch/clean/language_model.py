"""A recurrent language model whose state is detached between segments, with tied weights and a test every epoch."""
import torch


class LanguageModel(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.lstm = torch.nn.LSTM(width, width, num_layers=2)
        self.head = torch.nn.Linear(width, words)
        self.head.weight = self.embed.weight

    def forward(self, tokens, state):
        h, state = self.lstm(self.embed(tokens), state)
        return self.head(h), state


def repackage(state):
    return None if state is None else tuple(part.detach() for part in state)


def run(model, tokens, optimizer=None):
    state, total = None, 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for at in range(0, tokens.shape[0] - 8, 8):
            state = repackage(state)
            logits, state = model(tokens[at : at + 8], state)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[at + 1 : at + 9].flatten())
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
                optimizer.step()
            total += loss.item()
    return total


model = LanguageModel(30, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
training, testing = torch.randint(0, 30, (121, 8)), torch.randint(0, 30, (41, 8))
for epoch in range(4):
    run(model, training, optimizer)
    run(model, testing)
