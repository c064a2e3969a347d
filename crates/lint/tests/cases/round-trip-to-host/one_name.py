import torch
for batch in loader:
    batch = batch.cpu().numpy()  # expect: round-trip-to-host
    batch = normalise(batch)
    batch = torch.from_numpy(batch).cuda()
