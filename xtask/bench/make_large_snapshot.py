"""Writes a snapshot with a given number of events, in the shape of a long training run, as PyTorch writes it: parameters that stay, then steps
that make and drop the same.

    python make_large_snapshot.py EVENTS OUT.pickle

Written piece by piece with the opcodes of CPython's pickle (protocol 4), because ten million dictionaries do not fit into memory.
Frames, lists of frames and texts are shared as in PyTorch's own files; each event's dictionary is memoized, as CPython does.
"""

import io
import pickle
import random
import struct
import sys

EVENTS, PATH = int(sys.argv[1]), sys.argv[2]
LAYERS, FRAMES = 60, 20
PARAMETERS = min(2000, EVENTS // 100)
random.seed(7)


def stack(layer, phase):
    inner = [{"name": "forward", "filename": f"site-packages/torch/nn/modules/layer{layer}.py", "line": 100 + layer}]
    calls = [
        {"name": "_call_impl", "filename": "site-packages/torch/nn/modules/module.py", "line": 1700 + depth + phase}
        for depth in range(FRAMES - 4)
    ]
    outer = [
        {"name": "forward", "filename": "project/model.py", "line": 40 + layer},
        {"name": "train", "filename": "project/train.py", "line": 80 + phase},
        {"name": "<module>", "filename": "project/train.py", "line": 120},
    ]
    return inner + calls + outer


class Writer:
    """Memoizes like CPython's pickler and can write a list item by item."""

    def __init__(self, out):
        self.out, self.memo, self.known, self.pieces = out, 0, {}, {}
        out.write(b"\x80\x04")

    def remember(self, key):
        self.out.write(b"\x94")
        self.known[key] = self.memo
        self.memo += 1

    def reference(self, key):
        at = self.known[key]
        return b"h" + bytes([at]) if at < 256 else b"j" + struct.pack("<I", at)

    def again(self, key):
        if key not in self.known:
            return False
        self.out.write(self.reference(key))
        return True

    def text(self, text):
        if not self.again(text):
            data = text.encode()
            self.out.write(b"\x8c" + bytes([len(data)]) + data)
            self.remember(text)

    def number(self, value):
        if value < 256:
            self.out.write(b"K" + bytes([value]))
        elif value < 65536:
            self.out.write(b"M" + struct.pack("<H", value))
        elif value < 2**31:
            self.out.write(b"J" + struct.pack("<i", value))
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little")
            self.out.write(b"\x8a" + bytes([len(data)]) + data)

    def frames(self, key, frames):
        if self.again(key):
            return
        self.out.write(b"]")
        self.remember(key)
        self.out.write(b"(")
        for frame in frames:
            name = ("frame", frame["name"], frame["filename"], frame["line"])
            if not self.again(name):
                self.out.write(b"}")
                self.remember(name)
                self.out.write(b"(")
                for item in ("name", "filename"):
                    self.text(item)
                    self.text(frame[item])
                self.text("line")
                self.number(frame["line"])
                self.out.write(b"u")
        self.out.write(b"e")

    def event(self, action, addr, size, time, key, frames):
        """An event in full the first two times, then as the same bytes around another time: steps repeat."""
        place = (action, addr, key)
        pieces = self.pieces.get(place)
        if pieces:
            self.out.write(b"".join((pieces[0], b"\x8a\x07", time.to_bytes(7, "little"), pieces[1])))
            self.memo += 3
            return
        if key in self.known and action in self.known:
            out, self.out = self.out, io.BytesIO()
            self.whole_event(action, addr, size, time, key, frames)
            written = self.out.getvalue()
            self.out = out
            out.write(written)
            mark = b"\x8a\x07" + time.to_bytes(7, "little")
            assert written.count(mark) == 1
            self.pieces[place] = written.split(mark)
        else:
            self.whole_event(action, addr, size, time, key, frames)

    def whole_event(self, action, addr, size, time, key, frames):
        # The dictionary, its "N/A" and its pool are new objects in each event of PyTorch's, so each takes a place in the memo.
        self.out.write(b"}\x94(")
        self.memo += 1
        self.text("action")
        self.text(action)
        self.text("addr")
        self.number(addr)
        self.text("size")
        self.number(size)
        self.text("stream")
        self.number(0)
        self.text("time_us")
        self.number(time)
        self.text("compile_context")
        self.out.write(b"\x8c\x03N/A\x94")
        self.memo += 1
        self.text("user_metadata")
        self.text("")
        self.text("pool_id")
        self.out.write(b"K\x00K\x00\x86\x94")
        self.memo += 1
        self.text("frames")
        self.frames(key, frames)
        self.out.write(b"u")


def main():
    stacks = {(layer, phase): stack(layer, phase) for layer in range(LAYERS) for phase in range(4)}
    with open(PATH, "wb", buffering=1 << 20) as out:
        writer = Writer(out)
        out.write(b"}(")
        writer.text("segments")
        out.write(b"]")
        writer.text("device_traces")
        out.write(b"](](")
        time, count, free, next_addr = 1_700_000_000_000_000, 0, {}, 0x7F0000000000
        for index in range(PARAMETERS):
            time += 5
            size = 512 * (1 + (index * 53) % 2048)
            writer.event("alloc", next_addr, size, time, (index % LAYERS, 2), stacks[index % LAYERS, 2])
            next_addr += size
            count += 1
            if count % 1000 == 0:
                out.write(b"e(")
        while count < EVENTS:
            live = []
            for layer in range(LAYERS):
                size = 512 * (1 + (layer * 37) % 4096)
                pool = free.setdefault(size, [])
                if not pool:
                    pool.append(next_addr)
                    next_addr += size
                addr = pool.pop()
                live.append((addr, size, layer))
            for addr, size, layer in live:
                if count >= EVENTS:
                    break
                time += 7
                writer.event("alloc", addr, size, time, (layer, 0), stacks[layer, 0])
                count += 1
                if count % 1000 == 0:
                    out.write(b"e(")
            for addr, size, layer in reversed(live):
                for action in ("free_requested", "free_completed"):
                    if count >= EVENTS:
                        break
                    time += 3
                    writer.event(action, addr, size, time, (layer, 1), stacks[layer, 1])
                    count += 1
                    if count % 1000 == 0:
                        out.write(b"e(")
                free[size].append(addr)
        out.write(b"eeu.")
    if EVENTS <= 1_000_000:
        with open(PATH, "rb") as file:
            read = pickle.load(file)
        assert len(read["device_traces"][0]) == EVENTS


main()
