import torch
for latents in loader:
    array = latents.cpu().numpy()
    noise = self.session.run(sample=array)[0]
    noise = torch.from_numpy(noise).to("cuda")
