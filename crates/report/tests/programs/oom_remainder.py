"""Out of memory: the batcher puts all that remains into one last batch, whose one-hot matrix does not fit; no leak before it."""
import torch
from torch import nn
import torch.nn.functional as F

VOCAB = 8000

def batches(documents, size, full):
    for i in range(full):
        yield documents[i * size:(i + 1) * size]
    yield documents[full * size:]  # the remainder, however long

def bag_of_words(tokens):
    return F.one_hot(tokens, VOCAB).sum(dim=1).float()

def main():
    torch.cuda.set_per_process_memory_fraction((1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    documents = torch.randint(0, VOCAB, (1000, 64))
    encoder, decoder = nn.Linear(VOCAB, 128).cuda(), nn.Linear(128, VOCAB).cuda()
    opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    losses, skipped = [], []
    for number, tokens in enumerate(batches(documents, size=24, full=20)):
        try:
            bag = bag_of_words(tokens.cuda())
            log_probs = F.log_softmax(decoder(torch.tanh(encoder(bag))), dim=1)
            loss = -(bag * log_probs).sum(dim=1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        except torch.cuda.OutOfMemoryError:
            skipped.append(number)
    return encoder, decoder, opt, losses, skipped
