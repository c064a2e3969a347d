"""Out of memory: a sequence that is too long; its matrix of scores alone is larger than the limit."""
import torch

def attend(q):
    scores = q @ q.transpose(1, 2)
    return torch.softmax(scores, dim=-1) @ q

def main():
    torch.cuda.set_per_process_memory_fraction(1.5 * (1 << 30) / torch.cuda.get_device_properties(0).total_memory)
    kept = []
    q = torch.randn(8, 1024, 64, device="cuda")
    kept.append(attend(q))
    try:
        attend(torch.randn(8, 8192, 64, device="cuda"))
    except torch.OutOfMemoryError as e:
        kept.append(str(e))
    return kept
