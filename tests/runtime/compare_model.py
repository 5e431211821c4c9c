# SPDX-License-Identifier: MIT
"""The tests' own model against an executable specification, over random command lists.

usage: print_model FIRST LISTS COMMANDS | compare_model.py MODEL_FOLDER LISTS

Both decide the same lists; compared are every final outcome with its details, tables,
copies and page ids, which step rests on which, and the state at the end.
"""
import collections
import json
import sys

LABELS = ("main", "a", "b", "c", "both", "pair")
KEYS = {"NO_PAGES": ("pages_short", "request", "label"),
        "STALE": ("expected", "got", "request", "label"), "LIMIT": ("request", "label"),
        "NO_LABEL": ("request", "label"), "NO_REQUEST": ("request",)}
TABLES = ("qo_indptr", "kv_indptr", "kv_indices", "kv_last_page_len", "last_token",
          "slot_page", "slot_offset", "position", "row_request")
STATES = {"OK", "NO_PAGES", "STALE", "NO_REQUEST", "NO_LABEL", "LIMIT", "INVALID",
          "ABANDONED", "pre-copies", "post-copies", "first writes", "stacked", "held at the end"}


def name(label):
    return -1 if label is None else LABELS.index(label)


def plan_of(outcome, page_size, step):
    """The tables in the form of the tests' images."""
    plan = [["step", step, page_size, len(outcome["tables"]), 0]]
    for label, t in outcome["tables"].items():
        rows = sum(request != -1 for request in t["row_request"])
        plan.append(["table", name(label)])
        plan.append(["rows tokens pages bucket_rows bucket_tokens", rows,
                     t["qo_indptr"][rows], len(t["kv_indices"]), len(t["row_request"]),
                     len(t["slot_page"])])
        plan += [[key, *t[key]] for key in TABLES]
        plan.append(["row_label", *map(name, t["row_label"])])
    for which in ("pre_copies", "post_copies"):
        plan.append([which, *(number for copy in outcome[which] for number in copy)])
    return plan


def answer_differs(model, command, got, page_size):
    """A sentence about one command's answer, or None."""
    number, expected = command["id"], model.outcomes.get(command["id"])
    if (got is None) != (expected is None):
        return f"{number} ({command['do']}): {got} for {expected}"
    if got is None:
        return None
    status = expected["status"]
    if got["status"] != status:
        return f"{number} ({command['do']}): {got['status']} for {status}"
    met[status] += 1
    for key in KEYS.get(status, ()):
        if key in expected and got.get(key) != expected[key]:
            return f"{number}: {key} of {status}: {got.get(key)} for {expected[key]}"
    if command.get("speculative") and got.get("base") != model.tickets.base[number]:
        return f"{number}: rests on {got.get('base')}, not {model.tickets.base[number]}"
    if got.get("released") != expected.get("released"):
        return f"{number}: released {got['released']} for {expected['released']}"
    if "tables" not in expected:
        return None
    return plan_differs(number, got, expected, page_size)


def plan_differs(number, got, expected, page_size):
    """The same of a step's plan."""
    plan = [section for section in got["plan"] if section[0] != "row_tag"]
    wanted = plan_of(expected, page_size, plan[0][1])
    if plan != wanted:
        pairs = [f"{a} for {b}" for a, b in zip(plan, wanted) if a != b]
        return f"{number}: " + "; ".join(pairs)
    if got["taken"] != len(expected["taken"]):
        return f"{number}: {got['taken']} pages taken, not {len(expected['taken'])}"
    met["pre-copies"] += bool(expected["pre_copies"])
    met["post-copies"] += bool(expected["post_copies"])
    met["first writes"] += bool(expected["first_write_copies"])
    met["stacked"] += "base" in got
    return None


def end_differs(model, end):
    """The same of the state at the end."""
    state, free = model.state, list(model.free)
    if end["last_step"] != state.last_step or end["free"] != free:
        return f"at the end: step {end['last_step']}, free {end['free']}, not {free}"
    streams = sorted([s.request, s.label, s.length, s.released, list(s.pages),
                      [list(pair) for pair in s.changes][-11:]] for s in state.streams())
    if sorted(end["streams"]) != streams:
        return f"at the end: {sorted(end['streams'])} for {streams}"
    met["held at the end"] += bool(model.held)
    return None


def difference(spec, line):
    """A sentence about the first difference, or None."""
    model = spec.Model(**line["config"])
    model.run(line["commands"])
    if model.broken or model.bytes.wrong:
        return f"the specification breaks its rules: {model.broken} {model.bytes.wrong}"
    for command in line["commands"]:
        if command["do"] not in ("promote", "abandon"):
            found = answer_differs(model, command, line["answers"].get(command["id"]),
                                   line["config"]["page_size"])
            if found:
                return found
    return end_differs(model, line["state"])


met = collections.Counter()


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv[1])
    spec = __import__("quire_model")
    lists = 0
    for text in sys.stdin:
        line = json.loads(text)
        found = difference(spec, line)
        if found:
            sys.exit(f"seed {line['seed']}: {found}")
        lists += 1
    print(f"{lists} lists agree: {dict(met)}")
    if lists != int(sys.argv[2]):
        sys.exit(f"only {lists} lists came")
    if STATES - set(met):
        sys.exit(f"never met: {STATES - set(met)}")


main()
