from functools import lru_cache
from torch.utils.data import Dataset
class Images(Dataset):
    @lru_cache  # expect: cache-on-method
    def load(self, i):
        return read(i)
