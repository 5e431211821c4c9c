# SPDX-License-Identifier: MIT
"""Random plan traces without outcomes: tight limits, and all faults that a step may have.

The reader's own model says what there is, so that most commands make sense.  What they
come to is for somebody else to say.  Bases are left to the order of the file.
"""
import random

import plan_trace_read as trace
import plan_trace_run as plan_trace

COMMANDS = 150
LABELS = ["main", "a", "b", "\u00e9t\u00e9", "\u6f22\u5b57"]
CACHE = {"layout": "NHD", "dtype": "f32", "num_layers": 1, "num_kv_heads": 1,
         "head_dim": 1}


class Maker:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.size = rng.randint(1, 5)
        self.sink = rng.random() < 0.8
        self.limits = {"rows": 6, "tokens": rng.choice((9, 40)), "requests": 3,
                       "seq_tokens": rng.choice((17, 1000)), "labels": rng.randint(2, 4),
                       "tables": rng.randint(1, 4), "table_pages": rng.choice((4, 9, 99))}
        self.is_many = rng.random() < 0.1   # more labels than a trace may name
        self.drafting = rng.choice((0, 0.2, 0.6))
        self.drafts, self.id, self.place = [], 0, 1
        self.header_line = self.header()
        self.head = trace.header(self.header_line)
        self.model = plan_trace.Model(self.head)

    def header(self):
        return {"quire": "plan-trace", "version": 1,
                "cache": {**CACHE, "page_size": self.size},
                "pool": {"num_pages": self.rng.randint(6, 30), "sink": self.sink},
                "limits": self.limits}

    def label(self):
        if self.is_many and self.rng.random() < 0.2:
            return "l%d" % self.rng.randint(1, 90)
        count = self.limits["labels"] + (self.rng.random() < 0.05)
        return self.rng.choice(["main"] + LABELS[:count])

    def label_of(self, request):
        """Mostly one that is there."""
        there = list(self.model.requests.get(request, {}))
        if there and self.rng.random() < 0.9:
            return self.rng.choice(there)
        return self.label()

    def request(self):
        there = list(self.model.requests)
        return self.rng.choice(there) if there and self.rng.random() < 0.97 else 4

    def length(self, request, label):
        stream = self.model.requests.get(request, {}).get(label)
        return stream.length if stream else 0

    def pairs(self):
        found = []
        for _ in range(self.rng.choice((0, 0, 0, 0, 1, 1, 2, 3))):
            pair = [self.label(), self.label()]
            is_sound = pair[0] != pair[1] and pair[1] not in [to for _, to in found]
            if is_sound or self.rng.random() < 0.03:
                found.append(pair)
        return found

    def segments(self, pre_forks):
        rng, found, used = self.rng, [], set()
        for _ in range(rng.choice((1, 1, 2, 3, 5))):
            stream = self.request(), self.label()
            if stream in used and rng.random() < 0.97:
                continue
            used.add(stream)
            length = self.length(*stream)
            there = self.model.requests.get(stream[0], {})
            for source, target in pre_forks:
                if target == stream[1] and source in there:
                    length = self.length(stream[0], source)
            least = 0 if stream[1] in there or rng.random() < 0.1 else 2
            span = rng.choice((least, 1, 1, 1, self.size, 2 * self.size + 1, 8))
            at = rng.choice((None, length + 1)) if rng.random() < 0.1 else length
            found.append([*stream, span, at])
        return found

    def combined(self, segments):
        rng, labels = self.rng, list(dict.fromkeys(segment[1] for segment in segments))
        if rng.random() < 0.7:
            return {}
        rng.shuffle(labels)
        odd = rng.random()
        if odd < 0.1:
            labels += [self.label()]
        cut = rng.randint(0 if odd > 0.95 else 1, len(labels))
        found = {rng.choice(("both", "both", "main", labels[0])): labels[:cut]}
        if labels[cut:] and rng.random() < 0.5:
            found["rest"] = labels[cut:]
        return found

    def submit(self):
        rng, pre_forks, post_forks = self.rng, self.pairs(), self.pairs()
        segments = self.segments(pre_forks)
        self.id += rng.randint(1, 3)
        line = {"do": "submit", "id": self.id, "segments": segments}
        if rng.random() < 0.2:
            line["bucket"] = [rng.randint(1, 30), rng.randint(1, 7)]
        lists = {"combined": self.combined(segments), "pre_forks": pre_forks,
                 "post_forks": post_forks}
        line.update({name: value for name, value in lists.items() if value})
        for name, value, often in (("commit", False, 0.1), ("copy", True, 0.2),
                                   ("no_wait", True, 0.1)):
            if rng.random() < often:
                line[name] = value
        if rng.random() < self.drafting:
            line["speculative"] = True
            self.drafts.append(self.id)
        return line

    def open_drafts(self):
        return [id for id in self.drafts if self.model.drafts[id].fate == "open"]

    def decide(self):
        ticket = self.rng.choice(self.open_drafts()[:1] + self.open_drafts())
        if self.rng.random() < 0.05:
            ticket = self.rng.choice(self.drafts + [self.id + 1])
        do = self.rng.choice(("promote", "promote", "abandon"))
        return {"do": do, "ticket": ticket}

    def other(self):
        rng = self.rng
        do = rng.choices(("open", "close", "reset", "rewind", "release_front"),
                         (4, 1, 2, 4, 4))[0]
        line = {"do": do, "request": self.request()}
        if do == "open":
            line["request"] = rng.randint(1, 4)
        if do in ("reset", "rewind", "release_front"):
            line["label"] = self.label_of(line["request"])
        if do == "reset":
            line["keep"] = rng.random() < 0.5
        if do in ("rewind", "release_front"):
            length = self.length(line["request"], line["label"])
            line["tokens"] = rng.randint(0, length + (rng.random() < 0.1))
        return line

    def line(self):
        kind = self.rng.random()
        if self.open_drafts() and (kind < 0.35 or len(self.model.parked) > 30):
            return self.decide()
        # Few that wait for a fate: what stands behind them rests on nothing.
        if kind < (0.4 if self.model.live else 0.6):
            return self.other()
        return self.submit()

    def lines(self):
        yield self.header_line
        for request in (1, 2, 3):
            yield self.given({"do": "open", "request": request})
        for _ in range(COMMANDS):
            yield self.given(self.line())

    def given(self, line):
        self.place += 1
        command = trace.command(line, self.head, 0)
        self.model.apply({**command, "line": self.place})
        return line
