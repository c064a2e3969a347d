import torch


def finish_episode(policy, optimizer, gamma=0.99):
    returns, policy_losses = [], []
    R = 0
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_losses.append(-log_prob * R)
    optimizer.zero_grad()
    loss = torch.cat(policy_losses).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
