import torch
from transformers import AutoModel

device = torch.device("cuda")
model = AutoModel.from_pretrained("bert-base-uncased").to(device).eval()
all_embeddings = []
with torch.no_grad():
    for batch in loader:
        outputs = model(input_ids=batch["input_ids"].to(device))
        all_embeddings.append(outputs.last_hidden_state.mean(dim=1))
embeddings = torch.cat(all_embeddings)
