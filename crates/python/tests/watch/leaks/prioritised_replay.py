"""A replay memory drops its lowest priorities, and keeps their transitions."""
# kind: value
# holder: .transitions
import heapq
import itertools
import random
import torch


class PrioritisedReplay:
    def __init__(self, most):
        self.most = most
        self.heap = []
        self.transitions = {}
        self.numbers = itertools.count()

    def push(self, priority, transition):
        number = next(self.numbers)
        self.transitions[number] = transition
        heapq.heappush(self.heap, (priority, number))
        if len(self.heap) > self.most:
            heapq.heappop(self.heap)

    def sample(self):
        return self.transitions[random.choice(self.heap)[1]]


def main():
    random.seed(1)
    q = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(q.parameters())
    memory = PrioritisedReplay(8)
    for _ in range(50):
        observation = torch.randn(64, 8)  # made
        memory.push(random.random(), observation)
        optimizer.zero_grad()
        q(memory.sample()).max(1).values.mean().backward()
        optimizer.step()


main()
