# SPDX-License-Identifier: MIT
"""What the commands of a plan trace come to, by sections 3 to 7 of docs/trace-format.md.

There are no threads and nothing retires late here: a page given back is free at once.  A
draft is a speculative submit; it is undone by putting back all that there was before it,
which is what the page asks for.
"""
import collections
import copy
import struct

import plan_trace_read as trace
from plan_trace_step import Refusal, Step, Stream, ceil_div
from xxh3 import xxh3_64

ENDED = ("DEVICE", "CALLBACK", "CANCELLED")       # with its runtime
LEFT_OUT = ("AGAIN", "HELD", "WOULD_BLOCK", "TIMEOUT") + ENDED
NAMES_MAX = 64


def is_left_out(recorded):
    """Does the command have its recorded outcome, whatever it asks?"""
    return recorded and (recorded["status"] in LEFT_OUT or
                         (recorded["outside"] and recorded["status"] != "OK"))


class Outcome:
    def __init__(self, status=None, detail=0, digest=0, pages=()):
        self.become(status, detail, digest, pages)

    def become(self, status, detail=0, digest=0, pages=()):
        self.status, self.detail = status, detail
        self.digest, self.pages = digest, list(pages)


class Pool:
    """The free pages in order, the stash first; and how many owners every page has."""

    def __init__(self, pages, sink):
        self.free = collections.deque(range(1 if sink else 0, pages))
        self.owners = [0] * pages
        self.none = pages       # stands for a page that is not there
        self.begin()

    def begin(self):
        self.fits, self.need = len(self.free), 0
        self.taken, self.gone, self.log = [], [], []

    def own(self, page, owners):
        if page != self.none:
            self.owners[page] += owners
            self.log.append((page, owners))

    def is_shared(self, page):
        return page != self.none and self.owners[page] > 1

    def take(self):
        self.need += 1
        page = self.free.popleft() if self.free else self.none
        if page != self.none:
            self.taken.append(page)
        self.own(page, 1)
        return page

    def give_up(self, page):
        self.own(page, -1)
        if page != self.none and self.owners[page] == 0:
            self.gone.append(page)

    def end(self):
        """The command stands: what lost its last owner joins the free pages."""
        self.free.extend(self.gone)

    def undo(self):
        for page, owners in self.log:
            self.owners[page] -= owners
        self.free.extendleft(reversed(self.taken))


class Draft:
    """before: all that there was before it, where it had an effect."""

    def __init__(self, line, base, outcome, recorded):
        self.line, self.base, self.outcome = line, base, outcome
        self.recorded = recorded
        self.fate, self.is_planned, self.is_late, self.before = "open", False, False, None

    def rests_on(self, other):
        draft = self
        while draft is not None and draft is not other:
            draft = draft.base
        return draft is other


class Model:
    def __init__(self, head):
        self.head = head
        self.pool = Pool(head["num_pages"], head["sink"])
        self.requests = {}
        self.names = {"main"}
        self.drafts = {}        # by id
        self.live = []          # drafts that may still be undone, oldest first
        self.parked = collections.deque()
        self.other = 0          # line of the last other command: no base stands above it

    def apply(self, given):
        """The outcome of a command; it is final at the end of the trace."""
        outcome = Outcome()
        given["is_unnamed"] = not self.see_names(given)
        if given["do"] in ("promote", "abandon"):
            outcome.become(self.decide(given))
        elif given["do"] == "submit" and given["speculative"]:
            self.add_draft(given, outcome)
        else:
            self.parked.append((given, outcome, None))
            self.other = given["line"]
        self.go_on()
        return outcome

    def end(self):
        """Drafts whose fate is open when the trace ends are abandoned, but for those that
        were promoted behind its end."""
        while any(draft.fate == "open" for draft in self.live):
            draft = next(draft for draft in self.live if draft.fate == "open")
            if draft.recorded and draft.recorded["status"] != "ABANDONED":
                draft.fate = "promoted"
            else:
                self.abandon(draft)
            self.go_on()

    # Drafts

    def newest_open(self, but=()):
        found = [draft for draft in self.live
                 if draft.fate == "open" and draft.line > self.other and
                 not (draft.recorded and draft.recorded["status"] in but)]
        return found[-1] if found else None

    def base_of(self, given):
        """None of the open drafts stands behind it, nor any other command.  Those that ended
        with their runtime may have been decided before."""
        if "base" not in given:
            return self.newest_open()
        newest = self.newest_open(ENDED)
        base = self.drafts.get(given["base"])
        line = base.line if base else self.other if given["base"] is None else 0
        if line < (newest.line if newest else self.other):
            raise trace.Refused(given["line"], "base", "the submit cannot rest on that")
        return base

    def add_draft(self, given, outcome):
        draft = Draft(given["line"], self.base_of(given), outcome, given["outcome"])
        self.drafts[given["id"]] = draft
        if draft.base and draft.base.fate == "abandoned":
            draft.fate, draft.is_late = "abandoned", True
            outcome.become("ABANDONED")
            return
        self.live.append(draft)
        self.parked.append((given, outcome, draft))

    def plan_draft(self, given, outcome, draft):
        recorded = given["outcome"]
        draft.is_planned = True
        if is_left_out(recorded):
            self.carry_out(given, outcome)
        elif draft.base and draft.base.outcome.status != "OK":
            outcome.become("ABANDONED")
        elif recorded and given["no_wait"] and recorded["status"] == "ABANDONED":
            outcome.become("ABANDONED")
        else:
            before = copy.deepcopy((self.pool, self.requests))
            self.carry_out(given, outcome)
            draft.before = before if outcome.status == "OK" else None

    def decide(self, given):
        """A promote or an abandon."""
        draft, recorded = self.drafts.get(given["ticket"]), given["outcome"]
        if draft and draft.is_late:
            draft.is_late = False
            return "INVALID" if recorded and recorded["status"] == "INVALID" else "OK"
        if draft is None or draft.fate != "open":
            return "INVALID"
        draft.fate = "promoted"
        if given["do"] == "abandon":
            self.abandon(draft)
        return "OK"

    def abandon(self, draft):
        """It and all that rest on it, newest first."""
        for other in [other for other in reversed(self.live) if other.rests_on(draft)]:
            other.fate = "abandoned"
            other.outcome.become("ABANDONED")
            if other.before:
                self.pool, self.requests = other.before
            self.live.remove(other)

    def is_held(self):
        """Is there a draft that is planned and may still be undone?"""
        return bool(self.live) and self.live[0].is_planned

    def go_on(self):
        """Whatever can take effect does, in order; the others wait for a draft's fate."""
        while True:
            while self.is_held() and self.live[0].fate == "promoted":
                self.live.pop(0)
            if not self.parked:
                return
            given, outcome, draft = self.parked[0]
            if self.is_held() and (draft is None or
                                   draft.base is None and draft.fate != "abandoned"):
                return
            self.parked.popleft()
            if draft is None:
                self.carry_out(given, outcome)
            elif draft.fate != "abandoned":
                self.plan_draft(given, outcome, draft)

    # Commands

    def carry_out(self, given, outcome):
        recorded = given["outcome"]
        if is_left_out(recorded):
            outcome.become(recorded["status"], recorded["detail"])
            return
        self.pool.begin()
        try:
            if given["is_unnamed"]:
                raise Refusal("LIMIT")
            digest = getattr(self, given["do"])(given)
        except Refusal as refusal:
            outcome.become(refusal.status, refusal.detail)
            return
        self.pool.end()
        outcome.become("OK", 0, digest or 0, self.pool.taken)

    def see_names(self, given):
        """Are all labels of the line among the first of the trace?"""
        found = [given["label"]] if "label" in given else []
        if given["do"] == "submit":
            found += [segment[1] for segment in given["segments"]]
            for name, labels in given["combined"]:
                found += [name, *labels]
            for pair in given["pre_forks"] + given["post_forks"]:
                found += pair
        for name in found:
            if len(self.names) < NAMES_MAX:
                self.names.add(name)
        return self.names.issuperset(found)

    def open(self, given):
        if given["request"] in self.requests:
            return
        if len(self.requests) >= self.head["requests"]:
            raise Refusal("LIMIT")
        self.requests[given["request"]] = {"main": Stream()}

    def close(self, given):
        if given["request"] not in self.requests:
            raise Refusal("NO_REQUEST")
        for stream in self.requests.pop(given["request"]).values():
            self.cut(stream, 0, False)

    def stream(self, given):
        if given["request"] not in self.requests:
            raise Refusal("NO_REQUEST")
        if given["label"] not in self.requests[given["request"]]:
            raise Refusal("NO_LABEL")
        stream = self.requests[given["request"]][given["label"]]
        if given.get("tokens", 0) > stream.length:
            raise Refusal("INVALID")
        return stream

    def cut(self, stream, length, keep):
        """Pages past the length are given up, or only the shared ones."""
        live = ceil_div(length, self.head["page_size"])
        kept = stream.pages[:live]
        for page in stream.pages[live:]:
            if keep and not self.pool.is_shared(page):
                kept.append(page)
            else:
                self.pool.give_up(page)
        stream.pages, stream.length = kept, length

    def reset(self, given):
        stream = self.stream(given)
        self.cut(stream, 0, given["keep"])
        stream.released = 0

    def rewind(self, given):
        stream = self.stream(given)
        self.cut(stream, stream.length - given["tokens"], True)

    def release_front(self, given):
        stream, size = self.stream(given), self.head["page_size"]
        last = max(0, ceil_div(stream.length, size) - 1)
        pages = min(given["tokens"] // size, last)
        for page in stream.pages[:pages]:
            self.pool.give_up(page)
        del stream.pages[:pages]
        stream.length -= pages * size
        stream.released += pages * size

    def submit(self, given):
        before = {segment[0]: copy.deepcopy(self.requests[segment[0]])
                  for segment in given["segments"] if segment[0] in self.requests}
        try:
            return Step(self.head, self.pool, self.requests, given).run()
        except Refusal:
            self.requests.update(before)
            self.pool.undo()
            raise


def run_digest(outcomes):
    digest = 0
    for outcome in outcomes:
        digest = xxh3_64(struct.pack("<QiqQ", digest, trace.STATUS.index(outcome.status),
                                     outcome.detail, outcome.digest))
    return digest
