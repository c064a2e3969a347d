"""What `on_host.py` and `on_device.py` share: how a figure is printed, and how the parts are gone through."""


def say(rule, **figures):
    parts = [f"{name}={value:,}" if isinstance(value, int) else f"{name}={value}" for name, value in figures.items()]
    print(f"{rule}: " + ", ".join(parts), flush=True)


def run_all(parts):
    for part in parts:
        try:
            part()
        except Exception as error:  # one part that fails must not hide the others
            print(f"{part.__name__}: FAILED {type(error).__name__}: {error}", flush=True)
