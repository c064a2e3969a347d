import torch
hidden = []
with torch.inference_mode():
    for batch in loader:
        out = model(batch)
        hidden.append(out.last_hidden_state[:, -1, :])  # expect: slice-keeps-storage
