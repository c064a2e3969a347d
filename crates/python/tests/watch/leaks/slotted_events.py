"""A writer of summaries buffers events in a slotted class and flushes never."""
# kind: value
# holder: ._events
import typing
import torch


class Event:
    __slots__ = ("step", "tag", "value")

    def __init__(self, step, tag, value):
        self.step, self.tag, self.value = step, tag, value


class SummaryWriter:
    def __init__(self):
        self._events: typing.List[Event] = []

    def add_histogram(self, tag, value, step):
        self._events.append(Event(step, tag, value))


def main():
    writer = SummaryWriter()
    model = torch.nn.Linear(40, 40)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        optimizer.zero_grad()
        model(torch.randn(4, 40)).var().backward()
        optimizer.step()
        writer.add_histogram("weight", model.weight.detach().clone(), step)  # made


main()
