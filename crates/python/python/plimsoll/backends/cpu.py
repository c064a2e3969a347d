"""What the processor can do."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """PyTorch's word for the widest instructions in use; kernels choose theirs at run time by themselves."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="ignore") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        flags = ""
    if "avx512f" in flags:
        return "AVX512"
    import platform

    return "AVX2" if "avx2" in flags else "DEFAULT" if platform.machine() == "x86_64" else "NO AVX"
