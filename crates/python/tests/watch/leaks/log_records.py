"""A memory handler keeps log records until it is full, and every record keeps its arguments."""
# kind: value
# holder: .buffer
import logging
import logging.handlers
import torch

log = logging.getLogger("train")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(capacity=1_000_000, flushLevel=logging.CRITICAL, flushOnClose=False))


def main():
    model = torch.nn.Linear(32, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        optimizer.zero_grad()
        out = model(torch.randn(32, 32))  # made
        out.abs().mean().backward()
        optimizer.step()
        log.debug("step %d: activations %s", step, out.detach())


main()
