import torch
for step in range(1000):
    action = policy(obs).cpu().numpy()
    obs, reward, done, info = env.step(action)
    obs = torch.tensor(obs).to(device)
