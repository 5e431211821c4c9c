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
REQUESTS = 4
NUMBERS = {"OK": 0, "NO_PAGES": 1, "AGAIN": 2, "STALE": 3, "NO_REQUEST": 5, "NO_LABEL": 6,
           "LIMIT": 7, "INVALID": 8, "ABANDONED": 11}
LABELS = ("main", "a", "b")
# What a list must be there for, counted over all of them.
PATHS = ("pre_copies", "post_copies", "freed", "stacked", "base resolved",
         "base left out", "open at the end", "again", "first_write_copies", "promote",
         "abandon", "rewind", "release_front")
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


def plan_digest(tables, pre_copies, post_copies):
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
    for copies in (pre_copies, post_copies):
        data += i32s(len(copies), *(number for copy in copies for number in copy))
    return xxh3(data)


def run_digest(run, status, detail, digest):
    """docs/trace-format.md, section 7."""
    return xxh3(struct.pack("<QiqQ", run, NUMBERS[status], detail, digest))


class Writer:
    """One list: commands drawn so that most make sense, and what the specification says.

    The specification is fed in the order in which commands are given.  The trace is the
    order in which they took effect there, with the bases and the final outcomes.
    """

    def __init__(self, spec, seed):
        self.rng = rng = random.Random(seed)
        self.pages, self.page_size = rng.randint(4, 40), rng.randint(1, 5)
        self.sink, self.seq_tokens = rng.random() < 0.7, rng.choice((1 << 20, 20))
        self.speculative = rng.choice((0, 0.2, 0.5, 0.8))
        self.model = spec.Model(self.pages, self.page_size, self.sink, 0, self.seq_tokens)
        self.fates, self.count = spec.Tickets(), 0  # of the trace, as a reader sees it
        self.lines, self.digest = [], 0
        self.derived = {}  # speculative submit -> does the order of the trace tell its base?
        self.statuses, self.paths = collections.Counter(), collections.Counter()

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

    def forks(self):
        pairs = []
        for _ in range(self.rng.choice((0, 0, 0, 0, 1, 1, 2, 3))):
            source, target = self.rng.choice(LABELS), self.rng.choice(LABELS)
            sound = source != target and target not in [to for _, to in pairs]
            if sound or self.rng.random() < 0.03:
                pairs.append([source, target])
        return pairs

    def segments(self, pre_forks):
        rng, segments, used = self.rng, [], set()
        for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
            request, label = self.request(), rng.choice(("main",) + LABELS)
            if (request, label) in used and rng.random() < 0.97:
                continue
            used.add((request, label))
            lengths = {name: self.length(request, name) for name in LABELS}
            for source, target in pre_forks:
                if lengths[source] is not None:
                    lengths[target] = lengths[source]
            length = lengths[label]
            span = rng.choice((1 if length is None else 0, 1, 1, 1, self.page_size,
                               2 * self.page_size + 1, 7))
            at = length or 0
            if rng.random() < 0.07:
                at = rng.choice((None, at + 1))
            segments.append({"request": request, "label": label, "span": span, "at": at})
        return segments

    def step(self):
        rng, pre_forks, post_forks = self.rng, self.forks(), self.forks()
        segments = self.segments(pre_forks)
        step = {"segments": segments}
        for name, pairs in (("pre_forks", pre_forks), ("post_forks", post_forks)):
            if pairs:
                step[name] = pairs
        if (pre_forks or post_forks) and rng.random() < 0.2:
            step["copy"] = "all"
        if rng.random() < self.speculative:
            step["speculative"] = True
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
        self.count += 1
        if do == "submit" and self.rng.random() < 0.03:
            self.model.recorded_again.add(self.count)
            fields["no_wait"] = True
        self.model.feed({"id": self.count, "do": do, **fields})

    def resolve(self):
        rng, open_ids = self.rng, self.model.tickets.unresolved
        ticket = rng.randint(1, self.count + 2)
        if open_ids and rng.random() < 0.95:
            ticket = rng.choice((open_ids[0], rng.choice(open_ids)))
        self.add(rng.choice(("promote", "promote", "abandon")), {"ticket": ticket})

    def request(self):
        """Mostly one that is open."""
        there = list(self.model.state.requests)
        return self.rng.choice(there) if there and self.rng.random() < 0.9 else \
            self.rng.randint(1, REQUESTS)

    def one(self):
        rng, request = self.rng, self.request()
        if rng.random() < (0.4 if self.model.tickets.unresolved else 0.01):
            return self.resolve()
        do = rng.choices(("open", "close", "reset", "rewind", "release_front", "submit"),
                         (4, 2, 4, 8, 5, 70))[0]
        if do == "open":
            request = rng.randint(1, REQUESTS)
        fields = {"request": request}
        if do in ("reset", "rewind", "release_front"):
            fields["label"] = rng.choice(LABELS)
        if do == "reset":
            fields["keep"] = rng.random() < 0.5
        if do in ("rewind", "release_front"):
            length = self.length(request, fields["label"]) or 0
            fields["tokens"] = rng.randint(0, length + (rng.random() < 0.1))
        if do == "submit":
            fields = self.step()
        if fields:
            self.add(do, fields)

    def share_and_write(self):
        """Fork, rewind into a page that is shared, write on both sides."""
        rng, request = self.rng, self.request()
        segments = [{"request": request, "label": "main", "span": 2 * self.page_size,
                     "at": self.length(request, "main")}]
        self.add("submit", {"segments": segments, "post_forks": [["main", "a"]]})
        for label in ("main", "a"):
            self.add("rewind", {"request": request, "label": label,
                                "tokens": min(self.length(request, label) or 0,
                                              rng.randint(1, self.page_size))})
        step = {"segments": [{"request": request, "label": label, "span": 1, "at": None}
                             for label in ("main", "a")]}
        if rng.random() < self.speculative:
            step["speculative"] = True
        self.add("submit", step)

    def commands(self):
        """Commands in effect order; those whose fate is open at the end come to nothing."""
        for request in range(1, REQUESTS):
            self.add("open", {"request": request})
        for _ in range(COMMANDS):
            if self.rng.random() < 0.02:
                self.share_and_write()
            else:
                self.one()
        while self.model.tickets.unresolved and self.rng.random() < 0.85:
            self.resolve()
        commands = list(self.model.trace)
        for ticket in list(self.model.tickets.unresolved):
            self.paths["open at the end"] += 1
            self.add("abandon", {"ticket": ticket})
        return commands

    def outcome(self, command):
        answer = self.model.outcomes[command["id"]]
        status, digest = answer["status"], 0
        detail = answer[DETAILS[status]] if status in DETAILS else 0
        outcome = {"status": status, "detail": detail}
        if "tables" in answer:
            digest = plan_digest(answer["tables"], answer["pre_copies"], answer["post_copies"])
            outcome["digest"] = f"{digest:016x}"
            for path in ("pre_copies", "post_copies", "freed", "first_write_copies"):
                self.paths[path] += bool(answer[path])
        self.statuses[status] += 1
        self.digest = run_digest(self.digest, status, detail, digest)
        return outcome

    def line(self, command):
        line = {**command, "outcome": self.outcome(command)}
        do, base = line["do"], line.get("base")
        self.paths[do] += 1
        self.paths["again"] += line["outcome"]["status"] == "AGAIN"
        if do == "submit":
            line["segments"] = [[s["request"], s["label"], s["span"], s["at"]]
                                for s in line["segments"]]
        if "copy" in line:
            line["copy"] = True
        if not line.get("speculative"):
            del line["id"]
        if do in ("submit", "promote", "abandon"):
            self.follow(command, base)
        else:
            self.fates.draw(command)
        return line

    def follow(self, command, base):
        """The fates as a reader of the trace has them."""
        fates, name = self.fates, command["id"]
        fates.draw({field: value for field, value in command.items() if field != "base"})
        if not command.get("speculative"):
            return
        self.derived[name] = fates.base[name] == base
        self.paths["stacked"] += base is not None
        self.paths["base resolved"] += fates.base[name] != base
        fates.base[name] = base
        if fates.fate.get(base) == "abandon":
            fates.end(name)

    def written(self, line):
        """The line in the file: a base is left out now and then where the order says it."""
        if self.derived.get(line.get("id")) and self.rng.random() < 0.3:
            self.paths["base left out"] += 1
            return {name: value for name, value in line.items() if name != "base"}
        return line

    def write(self, path):
        for command in self.commands():
            self.lines.append(self.line(command))
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(self.header()) + "\n")
            for line in self.lines:
                file.write(json.dumps(self.written(line)) + "\n")


def replay(quire, way, path, writer):
    """What is wrong with a replay, or nothing."""
    done = subprocess.run([quire, "replay", "--json", *way, path], capture_output=True,
                          text=True, check=False, timeout=60)
    digest = json.loads(done.stdout or "{}").get("digest")
    if done.returncode == 0 and digest == f"{writer.digest:016x}":
        return None
    return (f"exit {done.returncode}, digest {digest}, expected {writer.digest:016x}: "
            f"{done.stderr}")


def recorded(path, writer):
    """What is wrong with the record of a replay, or nothing."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file][1:]
    if len(lines) != len(writer.lines):
        return f"{len(lines)} commands recorded, expected {len(writer.lines)}"
    for number, (got, expected) in enumerate(zip(lines, writer.lines), 2):
        if got != expected:
            return f"line {number} recorded as {got}, expected {expected}"
    return None


def main():
    model, quire, first, lists = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    sys.dont_write_bytecode = True
    sys.path.insert(0, model)
    spec = __import__("quire_model")
    statuses, paths = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, record = os.path.join(folder, "list.plan"), os.path.join(folder, "record.plan")
        for seed in range(first, first + lists):
            writer = Writer(spec, seed)
            writer.write(path)
            statuses += writer.statuses
            paths += writer.paths
            for way in (*WAYS, ["--outcomes", record]):
                wrong = replay(quire, way, path, writer)
                if wrong:
                    sys.exit(f"seed {seed}, {' '.join(way)}: {wrong}")
            wrong = recorded(record, writer)
            if wrong:
                sys.exit(f"seed {seed}: {wrong}")
    print(dict(statuses), dict(paths))
    missing = set(NUMBERS) - set(statuses) | set(PATHS) - set(+paths)
    if missing:
        sys.exit(f"never met: {missing}")


if __name__ == "__main__":
    main()
