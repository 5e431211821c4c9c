#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads, runs and checks a plan trace.  It is written from docs/trace-format.md alone.

usage: plan_trace.py TRACE

Exit status: 0: all is as recorded; 1: the first difference is named; 2: the file is at
fault.
"""
import sys

import plan_trace_read as trace
import plan_trace_run as model


def difference(given, got):
    """(field, recorded, got) of what was recorded and is not so, or None."""
    recorded = given["outcome"] or {}
    compared = ["status", "detail"]
    if given["do"] == "submit" and got.status == "OK":
        compared += ["pages", "digest"]
    for field in compared:
        if field in recorded and recorded[field] != getattr(got, field):
            return field, recorded[field], getattr(got, field)
    return None


def shown(field, value):
    return "%016x" % value if field == "digest" else str(value)


def run(path):
    """[(command, outcome)], and the fault that the file ends with, if there is one: then
    the commands are those whose outcomes are known for good."""
    commands, runtime = [], None
    try:
        read = trace.read(path)
        runtime = model.Model(next(read))
        for given in read:
            about = {name: given[name] for name in ("line", "do", "outcome")}
            commands.append((about, runtime.apply(given)))
    except trace.Refused as fault:
        first = runtime.unsettled() if runtime else None
        return [one for one in commands if first is None or one[0]["line"] < first or
                one[0]["do"] in ("promote", "abandon")], fault
    runtime.end()
    return commands, None


def main(path):
    commands, fault = run(path)
    for given, got in commands:
        found = difference(given, got)
        if found:
            field, recorded, value = found
            print("%s:%d: outcome.%s: %s was recorded, it comes to %s"
                  % (path, given["line"], field, shown(field, recorded),
                     shown(field, value)),
                  file=sys.stderr)
            return 1
    if fault:
        print("%s:%s" % (path, fault), file=sys.stderr)
        return 2
    print("commands %d" % len(commands))
    print("steps %d" % sum(given["do"] == "submit" and got.status == "OK"
                           for given, got in commands))
    print("takes %d" % sum(len(got.pages) for _, got in commands))
    print("digest %016x" % model.run_digest(got for _, got in commands))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        sys.exit(2)
    try:
        sys.exit(main(sys.argv[1]))
    except OSError as error:
        print("%s: %s" % (error.filename, error.strerror), file=sys.stderr)
        sys.exit(2)
