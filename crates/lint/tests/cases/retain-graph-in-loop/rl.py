import torch

for episode in range(1000):
    state = env.reset()
    log_probs, rewards = rollout(policy, env, state)
    returns = discount(rewards)
    policy_loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    policy_loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
    optimizer.step()
