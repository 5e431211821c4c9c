# SPDX-License-Identifier: MIT
"""One step of a plan trace, by sections 3, 5 and 6 of docs/trace-format.md."""
import struct

from xxh3 import xxh3_64


class Refusal(Exception):
    def __init__(self, status, detail=0):
        super().__init__(status, detail)
        self.status, self.detail = status, detail


class Stream:
    """pages: those of the live tokens, then the spare ones."""

    def __init__(self):
        self.pages, self.length, self.released = [], 0, 0


def ceil_div(a, b):
    return -(-a // b)


class Row:
    """A segment once its span is written."""

    def __init__(self, request, label, span, stream):
        self.request, self.label, self.span, self.stream = request, label, span, stream
        self.length, self.released = stream.length + span, stream.released
        self.pages = []         # as the step's tables have them


class Step:
    """A refused step has changed pool and requests: the caller undoes that."""

    def __init__(self, head, pool, requests, given):
        self.head, self.pool, self.requests, self.given = head, pool, requests, given
        self.page_size = head["page_size"]
        self.batch = list(dict.fromkeys(segment[0] for segment in given["segments"]))
        self.rows, self.pre, self.post = [], [], []

    def run(self):
        """The step's digest; raises Refusal with its first fault."""
        given = self.given
        groups = self.check_form()
        if any(request not in self.requests for request in self.batch):
            raise Refusal("NO_REQUEST")
        self.fork_all(given["pre_forks"], self.pre)
        for segment in given["segments"]:
            self.write(*segment)
        for row in self.rows:
            row.pages = row.stream.pages[:ceil_div(row.length, self.page_size)]
            if given["commit"]:
                row.stream.length = row.length
        self.fork_all(given["post_forks"], self.post)
        tables = [(name, [row for label in labels for row in self.rows
                          if row.label == label]) for name, labels in groups]
        self.check_tables(tables)
        return self.digest(tables)

    # Form

    def check_form(self):
        """What is wrong whatever the state.  Returns [(table name, labels)]."""
        if len(self.given["combined"]) > self.head["tables"]:
            raise Refusal("LIMIT")
        streams = [segment[:2] for segment in self.given["segments"]]
        if len(set(streams)) < len(streams):
            raise Refusal("INVALID")
        for pairs in (self.given["pre_forks"], self.given["post_forks"]):
            targets = [target for _, target in pairs]
            if len(set(targets)) < len(targets) or any(a == b for a, b in pairs):
                raise Refusal("INVALID")
        self.check_bucket()
        return self.groups()

    def check_bucket(self):
        if self.given["bucket"] is None:
            return
        tokens, rows = self.given["bucket"]
        if not self.head["sink"]:
            raise Refusal("INVALID")
        if rows > self.head["rows"] or tokens > self.head["tokens"]:
            raise Refusal("LIMIT")

    def groups(self):
        present = list(dict.fromkeys(segment[1] for segment in self.given["segments"]))
        left = list(present)
        for name, labels in self.given["combined"]:
            if not labels or (name in present and name not in labels):
                raise Refusal("INVALID")
            for label in labels:
                if label not in left:
                    raise Refusal("INVALID")
                left.remove(label)
        found = self.given["combined"] + [(label, [label]) for label in left]
        if len(found) > self.head["tables"]:
            raise Refusal("LIMIT")
        return found

    # Pages

    def stream_to_change(self, request, label):
        labels = self.requests[request]
        if label not in labels:
            if len(labels) >= self.head["labels"]:
                raise Refusal("LIMIT")
            labels[label] = Stream()
        return labels[label]

    def fork_all(self, pairs, copies):
        for source, target in pairs:
            for request in self.batch:
                if source in self.requests[request]:
                    self.fork(self.requests[request][source],
                              self.stream_to_change(request, target), copies)

    def fork(self, old, new, copies):
        pages = []
        for i, page in enumerate(old.pages[:ceil_div(old.length, self.page_size)]):
            tokens = min(self.page_size, old.length - i * self.page_size)
            if tokens == self.page_size and not self.given["copy"]:
                self.pool.own(page, 1)
                pages.append(page)
            else:
                pages.append(self.pool.take())
                copies.append((page, pages[-1], tokens))
        for page in new.pages:
            self.pool.give_up(page)
        new.pages, new.length, new.released = pages, old.length, old.released

    def write(self, request, label, span, at):
        stream = self.requests[request].get(label)
        if stream is None and span == 0:
            raise Refusal("NO_LABEL")
        length = stream.length if stream else 0
        if at is not None and at != length:
            raise Refusal("STALE", length)
        stream = self.stream_to_change(request, label)
        if stream.released + length + span > self.head["seq_tokens"]:
            raise Refusal("LIMIT")
        if span:
            self.first_write(stream)
            while len(stream.pages) < ceil_div(length + span, self.page_size):
                stream.pages.append(self.pool.take())
        self.rows.append(Row(request, label, span, stream))

    def first_write(self, stream):
        first = stream.length // self.page_size
        if first == len(stream.pages) or not self.pool.is_shared(stream.pages[first]):
            return
        page = stream.pages[first]
        stream.pages[first] = self.pool.take()
        self.pre.append((page, stream.pages[first], stream.length % self.page_size))
        self.pool.give_up(page)

    # Tables

    def check_tables(self, tables):
        for _, rows in tables:
            tokens = sum(row.span for row in rows)
            if tokens > self.head["tokens"]:
                raise Refusal("LIMIT")
            bucket = self.given["bucket"]
            if bucket and (tokens > bucket[0] or len(rows) > bucket[1]):
                raise Refusal("INVALID")
        if self.pool.need > self.pool.fits:
            raise Refusal("NO_PAGES", self.pool.need - self.pool.fits)
        for _, rows in tables:
            pages = [len(row.pages) for row in rows]
            if sum(pages) > self.head["table_pages"] or \
                    max(pages) > self.head["row_pages"]:
                raise Refusal("LIMIT")

    def digest(self, tables):
        data = Bytes()
        data.i32(len(tables))
        for name, rows in tables:
            self.add_table(data, name, rows)
        for copies in (self.pre, self.post):
            data.i32(len(copies))
            first = {}          # page -> where its bytes are before the list
            for source, target, tokens in copies:
                first[target] = first.get(source, source)
                data.i32(first[target], target, tokens)
        return xxh3_64(bytes(data.data))

    def add_table(self, data, name, rows):
        size, qo, kv = self.page_size, [0], [0]
        indices, last_len, last, slots = [], [], [], []
        for row in rows:
            indices += row.pages
            qo.append(qo[-1] + row.span)
            kv.append(kv[-1] + len(row.pages))
            last_len.append(row.length % size or size)
            last.append(qo[-1] - 1 if row.span else -1)
            slots += [(row.pages[g // size], g % size, row.released + g)
                      for g in range(row.length - row.span, row.length)]
        tokens, padded = self.given["bucket"] or (qo[-1], len(rows))
        pad = padded - len(rows)
        slots += [(0, 0, 0)] * (tokens - qo[-1])
        data.text(name)
        data.i32(len(rows), qo[-1], kv[-1], padded, tokens)
        data.i32(*qo, *[qo[-1]] * pad)
        data.i32(*kv, *[kv[-1]] * pad)
        data.i32(*indices)
        data.i32(*last_len, *[size] * pad)
        data.i32(*last, *[-1] * pad)
        for column in range(3):
            data.i32(*[slot[column] for slot in slots])
        data.i64(*[row.request for row in rows], *[-1] * pad)
        for row in rows:
            data.text(row.label)
        data.i32(*[-1] * pad)


class Bytes:
    """Little-endian numbers, one after another."""

    def __init__(self):
        self.data = bytearray()

    def i32(self, *numbers):
        self.data += struct.pack("<%di" % len(numbers), *numbers)

    def i64(self, *numbers):
        self.data += struct.pack("<%dq" % len(numbers), *numbers)

    def text(self, string):
        encoded = string.encode("utf-8")
        self.i32(len(encoded))
        self.data += encoded
