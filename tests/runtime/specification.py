# SPDX-License-Identifier: MIT
"""Random command lists, decided by an executable specification and replayed by quire.

usage: specification.py MODEL_FOLDER QUIRE FIRST_SEED LISTS

The specification answers every command: status, detail, and the tables of a plan, page ids
among them.  What it answers is written down as a recorded plan trace, with digests made here
from docs/trace-format.md alone; then quire replays the trace in several ways, and finds the
first answer of its own that differs.  The run's digest must be the one computed here.
"""
import collections
import ctypes
import ctypes.util
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

COMMANDS = 120
NUMBERS = {"OK": 0, "NO_PAGES": 1, "STALE": 3, "NO_REQUEST": 5, "NO_LABEL": 6, "LIMIT": 7,
           "INVALID": 8}
DETAILS = {"NO_PAGES": "pages_short", "STALE": "got"}
WAYS = (["--check"],
        ["--threads", "caller", "--device", "cpu:inline", "--depth", "5"],
        ["--depth", "1", "--seed-delays", "1"])

xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)


def xxh3(data):
    return xxhash.XXH3_64bits(data, len(data))


def i32s(*numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def named(name):
    return i32s(len(name.encode())) + name.encode()


def plan_digest(tables):
    """docs/trace-format.md, section 6."""
    data = i32s(len(tables))
    for name, t in tables.items():
        rows = sum(request != -1 for request in t["row_request"])
        data += named(name) + i32s(rows, t["qo_indptr"][rows], len(t["kv_indices"]),
                                   len(t["row_request"]), len(t["slot_page"]))
        for key in ("qo_indptr", "kv_indptr", "kv_indices", "kv_last_page_len", "last_token",
                    "slot_page", "slot_offset", "position"):
            data += i32s(*t[key])
        data += struct.pack(f"<{len(t['row_request'])}q", *t["row_request"])
        for label in t["row_label"]:
            data += i32s(-1) if label is None else named(label)
    return xxh3(data + i32s(0, 0))


def run_digest(run, status, detail, digest):
    """docs/trace-format.md, section 7."""
    return xxh3(struct.pack("<QiqQ", run, NUMBERS[status], detail, digest))


class Writer:
    """One list: commands drawn so that most make sense, and what the specification says."""

    def __init__(self, spec, seed):
        self.rng = rng = random.Random(seed)
        self.pages, self.page_size = rng.randint(4, 40), rng.randint(1, 5)
        self.sink, self.seq_tokens = rng.random() < 0.7, rng.choice((1 << 20, 30))
        self.model = spec.Model(self.pages, self.page_size, self.sink, 0, self.seq_tokens)
        self.lines, self.digest, self.statuses = [], 0, collections.Counter()

    def header(self):
        return {"quire": "plan-trace", "version": 1,
                "cache": {"layout": "NHD", "dtype": "f32", "num_layers": 1, "num_kv_heads": 1,
                          "head_dim": 2, "page_size": self.page_size},
                "pool": {"num_pages": self.pages, "sink": self.sink},
                "limits": {"rows": 64, "tokens": 4096, "requests": 64,
                           "seq_tokens": self.seq_tokens, "labels": 8, "tables": 16,
                           "table_pages": 100000}}

    def length(self, request, label):
        stream = self.model.state.requests.get(request, {}).get(label)
        return None if stream is None else stream.length

    def segments(self):
        rng, segments, used = self.rng, [], set()
        for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
            request, label = rng.randint(1, 5), rng.choice(("main", "main", "a", "b"))
            if (request, label) in used and rng.random() < 0.97:
                continue
            if request not in self.model.state.requests and rng.random() < 0.9:
                continue
            used.add((request, label))
            length = self.length(request, label)
            span = rng.choice((1 if length is None else 0, 1, 1, 1, self.page_size,
                               2 * self.page_size + 1, 7))
            at = length or 0
            if rng.random() < 0.07:
                at = rng.choice((None, at + 1))
            segments.append({"request": request, "label": label, "span": span, "at": at})
        return segments

    def step(self):
        rng, segments = self.rng, self.segments()
        step = {"segments": segments}
        if rng.random() < 0.15:
            step["commit"] = False
        labels = list(dict.fromkeys(s["label"] for s in segments))
        if len(labels) > 1 and rng.random() < 0.4:
            rng.shuffle(labels)
            step["combined"] = {"both": labels[:2]}
        if self.sink and rng.random() < 0.3:
            step["bucket"] = [rng.randint(1, 30), rng.randint(1, 7)]
        return step if segments else None

    def add(self, do, fields):
        name = f"c{len(self.lines)}"
        self.model.feed({"id": name, "do": do, **fields})
        answer = self.model.outcomes[name]
        status = answer["status"]
        detail = answer[DETAILS[status]] if status in DETAILS else 0
        outcome, digest = {"status": status, "detail": detail}, 0
        if "tables" in answer:
            digest = plan_digest(answer["tables"])
            outcome["digest"] = f"{digest:016x}"
        line = {"do": do, **fields, "outcome": outcome}
        if do == "submit":
            line["segments"] = [[s["request"], s["label"], s["span"], s["at"]]
                                for s in fields["segments"]]
        self.lines.append(line)
        self.statuses[status] += 1
        self.digest = run_digest(self.digest, status, detail, digest)

    def write(self, path):
        rng = self.rng
        for _ in range(COMMANDS):
            request = rng.randint(1, 5)
            do = rng.choices(("open", "close", "reset", "submit"), (10, 3, 6, 70))[0]
            fields = {"request": request}
            if do == "reset":
                fields.update(label=rng.choice(("main", "a", "b")), keep=rng.random() < 0.5)
            if do == "submit":
                fields = self.step()
            if fields:
                self.add(do, fields)
        with open(path, "w", encoding="utf-8") as file:
            for line in [self.header()] + self.lines:
                file.write(json.dumps(line) + "\n")


def main():
    model, quire, first, lists = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    sys.dont_write_bytecode = True
    sys.path.insert(0, model)
    spec = __import__("quire_model")
    statuses = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.plan")
        for seed in range(first, first + lists):
            writer = Writer(spec, seed)
            writer.write(path)
            statuses += writer.statuses
            for way in WAYS:
                done = subprocess.run([quire, "replay", "--json", *way, path],
                                      capture_output=True, text=True, check=False)
                digest = json.loads(done.stdout or "{}").get("digest")
                if done.returncode != 0 or digest != f"{writer.digest:016x}":
                    sys.exit(f"seed {seed}, {' '.join(way)}: exit {done.returncode}, digest "
                             f"{digest}, expected {writer.digest:016x}: {done.stderr}")
    print(dict(statuses))
    missing = set(NUMBERS) - set(statuses)
    if missing:
        sys.exit(f"never met: {missing}")


main()
