# SPDX-License-Identifier: MIT
"""check_timeline.py TRACE TIMELINE [killed] - do the two belong together?

Slices of a lane do not overlap; the counters add up to the pool; every step that was
planned and issued has its arrow, in time and inside its slices; times are the trace's.
"""
import json
import sys

NUM_PAGES = 7
PLANNER, EXECUTOR, DEVICE, CLIENTS = 1, 2, 3, 4


def check(condition, *what):
    if not condition:
        sys.exit("timeline: " + " ".join(str(w) for w in what))


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def read_timeline(path, killed):
    text = open(path, encoding="utf-8").read()
    check(text.startswith("["), "is no array")
    if not killed:
        check(text.endswith("\n]\n"), "has no end")
        return json.loads(text)
    check("\n]" not in text, "is not killed")
    # As the readers do: whole events, what is behind the last one is let go.
    return json.loads(text[: text.rindex("},\n{") + 1] + "]")


def read_trace(path, killed):
    lines = open(path, encoding="utf-8").read().split("\n")
    check(killed or lines[-1] == "", "the trace has no end")
    return [json.loads(line) for line in lines[1:-1]]


def check_slices(events):
    """Of each lane by time: none begins before the one before has ended."""
    lanes = {}
    for event in events:
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            lanes.setdefault(event["tid"], []).append(
                (start, start + nanoseconds(event["dur"]), event["name"]))
    for lane, slices in lanes.items():
        slices.sort()
        for before, after in zip(slices, slices[1:]):
            check(before[1] <= after[0], "lane", lane, "overlaps:", before, after)
    return lanes


def check_flows(events, lanes, trace, killed):
    flows = {}
    for event in events:
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event)
    planned = {line["id"]: line for line in trace
               if line["do"] == "submit" and line["outcome"]["status"] == "OK"}
    check(len(planned) > (5 if killed else 100), len(planned), "steps are too few")
    whole = 0
    for ticket, flow in flows.items():
        check(ticket in planned or killed, "an arrow of", ticket)
        phases = "".join(event["ph"] for event in flow)
        check(phases == "stf"[: len(phases)] and (killed or phases == "stf"),
              ticket, "has", phases)
        whole += phases == "stf"
        times = [nanoseconds(event["ts"]) for event in flow]
        check(times == sorted(times), ticket, "goes back", times)
        names = (("plan", PLANNER), ("issue", EXECUTOR), ("step", DEVICE))
        for event, (name, lane) in zip(flow, names):
            check(event["tid"] == lane, ticket, event)
            at = nanoseconds(event["ts"])
            check(any(s[0] <= at <= s[1] and s[2] == f"{name} {ticket}"
                      for s in lanes[lane]), ticket, "is outside of its", name)
    check(whole > 0, "no whole arrow")
    check(killed or set(flows) == set(planned), "steps without an arrow")


def check_times(lanes, trace, killed):
    """What was decided, given and issued when, in both."""
    planner, executor, client = (
        {s[2]: s for s in lanes[lane]} for lane in (PLANNER, EXECUTOR, CLIENTS + 1))
    for line in trace[1:]:  # the first one is the main thread's
        if "id" not in line:
            continue
        name = {"submit": "plan"}.get(line["do"], line["do"])
        times = line["times"]
        decided = planner.get(f"{name} {line['id']}")
        if killed and decided is None:
            continue
        check(decided is not None, "no slice of", line)
        check(decided[1] == times[1], "decided", decided, line)
        issued = executor.get(f"issue {line['id']}")
        check(killed or (issued is not None) == (len(times) == 3), "issued", line)
        check(issued is None or issued[1] == times[2], "issued", line)
        given = client.get(f"{line['do']} {line['id']}")
        check(given[0] == times[0], "given", given, line)


def main():
    killed = len(sys.argv) > 3
    trace = read_trace(sys.argv[1], killed)
    events = read_timeline(sys.argv[2], killed)
    names = {e["tid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    check(names.get(PLANNER) == "planner" and names.get(EXECUTOR) == "executor" and
          names.get(DEVICE) == "device" and names.get(CLIENTS) == "client 1" and
          names.get(CLIENTS + 1) == "client 2" and len(names) == 5,
          "lanes are", names)
    check(all(e["tid"] in names for e in events if e["ph"] != "M"), "a nameless lane")
    lanes = check_slices(events)
    check_flows(events, lanes, trace, killed)
    check_times(lanes, trace, killed)
    counters = [e["args"] for e in events if e["ph"] == "C"]
    check(counters[0] == {"free": NUM_PAGES - 1, "retiring": 0, "owned": 1},
          "at first there is", counters[0])
    for pages in counters:
        check(sum(pages.values()) == NUM_PAGES and min(pages.values()) >= 0 and
              set(pages) == {"free", "retiring", "owned"}, "pages", pages)
    waits = {e["name"] for e in events if e.get("cat") == "wait"}
    check("wait for pages" in waits, "waits are", waits)
    marks = {e["name"].split()[0] for e in events if e["ph"] == "i"}
    check(marks == {"promote", "abandon"} or killed, "marks are", marks)


main()
