import torch
def finish_episode(policy, optimizer, rewards, env):
    log_probs = []
    for t in range(1000):
        probs = policy(state)
        dist = torch.distributions.Categorical(probs)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
    policy_loss = []
    for log_prob, reward in zip(log_probs, rewards):
        policy_loss.append(-log_prob * reward)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
