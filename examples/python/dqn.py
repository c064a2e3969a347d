"""Deep Q-learning: walkers on a line learn to go to their goals and to stay there.

The replay buffer is a few tensors that are allocated once and written in place, round and round: its bytes are the same in
the first step and in the last. A buffer that is a list of tensors grows, and keeps graphs alive if it is fed with what is
still recorded. `python dqn.py --steps 400 --device cpu`"""

import argparse
import copy

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.nn import functional as F

DISCOUNT = 0.8
STRIDE = 0.1  # how far one action goes: left, nowhere or right


class Replay:
    """The last transitions, in tensors of a fixed size."""

    def __init__(self, rows, device):
        self.rows, self.written = rows, 0
        self.states, self.next_states = (pm.zeros(rows, 2, device=device).mark_input() for _ in range(2))
        self.actions = pm.zeros(rows, 1, dtype=pm.int64, device=device).mark_input()
        self.rewards = pm.zeros(rows, 1, device=device).mark_input()

    def tables(self):
        return self.states, self.actions, self.rewards, self.next_states

    def write(self, state, action, reward, next_state):
        """Puts transitions in the place of the oldest. Their number divides that of the rows."""
        place = slice(self.written % self.rows, self.written % self.rows + state.shape[0])
        for table, values in zip(self.tables(), (state, action, reward, next_state)):
            table[place].copy_(values)
        self.written += state.shape[0]

    def sample(self, count):
        """Random transitions."""
        chosen = pm.randint(min(self.written, self.rows), (count,), device=self.states.device)
        return [table.index_select(0, chosen) for table in self.tables()]


class Training:
    """Walkers, the network of action values, and its slow copy. It never looks at a value, so it also runs dry."""

    def __init__(self, device, walkers=16, rows=2048, batch=64, width=32):
        pm.manual_seed(0)
        self.device, self.batch = device, batch
        self.values = nn.Sequential(
            nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3)
        ).to(device)
        self.slow = copy.deepcopy(self.values).requires_grad_(False)
        self.optimizer = optim.Adam(self.values.parameters(), lr=3e-3)
        self.replay = Replay(rows, device)
        self.state = self.starts(walkers)  # where each walker is, and its goal
        self.reward = None

    def starts(self, walkers):
        """Places and goals between -1 and 1."""
        return pm.rand(walkers, 2, device=self.device).mul_(2).sub_(1)

    @pm.no_grad()
    def act(self):
        """One action of each walker, mostly the best one known; some start again afterwards."""
        state = self.state
        walkers = state.shape[0]
        best = self.values(state).argmax(1, keepdim=True)
        explore = pm.rand(walkers, 1, device=self.device) < 0.2
        action = pm.where(explore, pm.randint(3, (walkers, 1), device=self.device), best)
        place = (state[:, :1] + STRIDE * (action - 1)).clamp_(-1, 1)
        next_state = pm.cat([place, state[:, 1:]], dim=1)
        self.reward = -(next_state[:, :1] - next_state[:, 1:]).abs()
        self.replay.write(state, action, self.reward, next_state)
        again = pm.rand(walkers, 1, device=self.device) < 0.05
        self.state = pm.where(again, self.starts(walkers), next_state)

    def step(self):
        """One action of each walker and one step of the network; gives its loss."""
        self.act()
        state, action, reward, next_state = self.replay.sample(self.batch)
        target = reward + DISCOUNT * self.slow(next_state).amax(1, keepdim=True)
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.values(state).gather(1, action), target)
        loss.backward()
        self.optimizer.step()
        with pm.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.values.parameters()):
                slow.lerp_(fast, 0.1)
        return loss.detach()


def report(device, settled):
    """Where the memory was when the most was in use, and whether it stood still from step 100 on."""
    for kind, size in pm.memory_by_kind(device, peak=True).items():
        print(f"{kind:>16}  {size:>10,} bytes at the peak")
    now = pm.memory_allocated(device)
    if settled is not None:
        print(f"in use after step 100: {settled:,} bytes, at the end: {now:,}")
        assert now == settled, "the bytes in use have changed"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args(arguments)
    # On the CPU a device of its own, so that nobody else's bytes are counted.
    device = pm.private_cpu() if options.device == "cpu" else options.device
    training, settled = Training(device), None
    losses = []
    for step in range(options.steps):
        losses.append(training.step().item())  # a number: the tensor would keep its memory
        if step == 99:
            settled = pm.memory_allocated(device)
        if step % 50 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}  distance to the goal {-training.reward.mean().item():.3f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    report(device, settled)
    return losses


if __name__ == "__main__":
    main()
