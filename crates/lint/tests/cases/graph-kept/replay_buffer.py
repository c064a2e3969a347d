import torch
from collections import deque

buffer = deque(maxlen=1000)
for step in range(10000):
    with torch.no_grad():
        action = policy(state)
    next_state, reward, done, _ = env.step(action)
    buffer.append((state, action, reward))
    state = next_state
    batch = sample(buffer)
    loss = critic_loss(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
