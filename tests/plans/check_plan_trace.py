# SPDX-License-Identifier: MIT
"""Tests of the reader plan_trace.py beside quire.

usage: check_plan_trace.py QUIRE FOLDER SPECIFICATION [MODEL]

QUIRE is the command, FOLDER one for files, SPECIFICATION tests/runtime/specification.py,
and MODEL the folder of the executable specification that it needs.
"""
import collections
import importlib.util
import json
import os
import subprocess
import sys

import plan_trace
import plan_trace_read as trace
import plan_trace_run as model
import random_trace
from xxh3 import xxh3_64

RANDOM, SPECIFIED = 60, 25      # traces
STATUSES = {"OK", "NO_PAGES", "STALE", "NO_REQUEST", "NO_LABEL", "LIMIT", "INVALID",
            "ABANDONED"}
# The published vectors of xxHash's own sanity check, by bytes of its buffer: one of every
# way to hash at least.
VECTORS = {0: 0x2D06800538D394C2, 1: 0xC44BDFF4074EECDB, 6: 0x27B56A84CD2D7325,
           12: 0xA713DAF0DFBB77E7, 24: 0xA3FE70BF9D3510EB, 48: 0x397DA259ECBA1F11,
           80: 0xBCDEFBBB2C47C90A, 195: 0xCD94217EE362EC3A, 403: 0xCDEB804D65C6DEA4,
           512: 0x617E49599013CB6B, 2048: 0xDD59E2C3A5F038E0, 2240: 0x6E73A90539CF2948,
           2367: 0xCB37AEB9E5D361ED}
HEADER = ('{"quire":"plan-trace","version":1,"cache":{"layout":"NHD","dtype":"bf16",'
          '"num_layers":1,"num_kv_heads":1,"head_dim":8,"page_size":4},'
          '"pool":{"num_pages":8,"sink":true},'
          '"limits":{"rows":3,"tokens":64,"requests":4,"seq_tokens":64,'
          '"labels":4,"tables":4,"table_pages":64},"source":"by hand"}')
# What stands in a header, what is put in its place, the field that is named.
BAD_HEADERS = (
    ('"plan-trace"', '"plan"', "quire"), ('"version":1', '"version":2', "version"),
    ('"cache":', '"cash":', "cache"), ('"NHD"', '"XYZ"', "cache.layout"),
    ('"bf16"', '"int8"', "cache.dtype"),
    ('"num_layers":1', '"num_layers":0', "num_layers"),
    ('"head_dim":8', '"head_dim":2147483648', "cache.head_dim"),
    ('"NHD","dtype":"bf16","num_layers":1,"num_kv_heads":1',
     '"MLA","dtype":"bf16","num_layers":1,"num_kv_heads":2', "cache.num_kv_heads"),
    ('"page_size":4', '"page_size":4.0', "cache.page_size"),
    ('"page_size":4', '"page_size":1048577', "cache.page_size"),
    ('"num_pages":8', '"num_pages":16777217', "pool.num_pages"),
    ('"num_pages":8', '"num_pages":1', "pool.num_pages"),
    ('"sink":true', '"sink":1', "pool.sink"), ('"rows":3', '"rows":65537', "limits.rows"),
    ('"tokens":64', '"tokens":16777217', "limits.tokens"),
    ('"requests":4', '"requests":1048577', "limits.requests"),
    ('"labels":4', '"labels":65', "limits.labels"),
    ('"tables":4', '"tables":17', "limits.tables"),
    (',"table_pages":64', "", "table_pages"),
    ('"table_pages":64', '"table_pages":64,"row_pages":0', "limits.row_pages"),
    ('"by hand"', '"%s"' % ("x" * 256), "source"), ('"by hand"', "null", "source"),
    ('"by hand"', '"x","later":9223372036854775808', "64 bits"),
    ('"by hand"', '"x","source":"y"', "source"), ("{", "\ufeff{", ""), ("{", "[{", ""))
# A command, and the field that is named.
BAD_LINES = (
    ("", ""), ("[1]", ""), ('{"do":"open","request":1} x', ""), ("{}", "do"),
    ('{"do":"opn","request":1}', "do"), ('{"do":"offload","request":1}', "offload"),
    ('{"do":"adopt","request":1}', "adopt"), ('{"do":"drop","hold":1}', "drop"),
    ('{"do":"open","request":1,"request":1}', "request"),
    ('{"do":"open","request":1,"x":{"y":1,"y":2}}', "y"),
    ('{"do":"open","request":1,"x":9223372036854775808}', "64 bits"),
    ('{"do":"open","request":1,"x":NaN}', "JSON"),
    ('{"do":"reset","request":1,"label":"a\\u0000"}', "label"),
    ('{"do":"open","request":1,"x":["\\ud800"]}', "surrogate"),
    ('{"do":"open","request":1,"\\udc00":1}', "surrogate"),
    ('{"do":"open"}', "request"), ('{"do":"open","request":-1}', "request"),
    ('{"do":"open","request":true}', "request"),
    ('{"do":"open","request":1.0}', "request"),
    ('{"do":"open","request":1,"id":0}', "id"),
    ('{"do":"open","request":1,"prefix":{"tokens":0,"keys":[]}}', "prefix.tokens"),
    ('{"do":"open","request":1,"prefix":{"tokens":1,"keys":[-1]}}', "prefix.keys"),
    ('{"do":"open","request":1,"prefix":{"tokens":1}}', "prefix.keys"),
    ('{"do":"open","request":1,"times":[1]}', "times"),
    ('{"do":"open","request":1,"times":[1,2,3,4]}', "times"),
    ('{"do":"open","request":1,"times":[1,-2]}', "times"),
    ('{"do":"open","request":1,"outcome":{}}', "outcome.status"),
    ('{"do":"open","request":1,"outcome":{"status":"FINE"}}', "outcome.status"),
    ('{"do":"open","request":1,"outcome":{"status":"OK","detail":null}}',
     "outcome.detail"),
    ('{"do":"open","request":1,"outcome":{"status":"OK","digest":"0"}}',
     "outcome.digest"),
    ('{"do":"open","request":1,"outcome":{"status":"OK","digest":"00AB34cd56ef7890"}}',
     "outcome.digest"),
    ('{"do":"open","request":1,"outcome":{"status":"OK","pages":[8]}}', "outcome.pages"),
    ('{"do":"open","request":1,"outcome":{"status":"OK","outside":0}}',
     "outcome.outside"),
    ('{"do":"reset","request":1,"label":""}', "label"),
    ('{"do":"reset","request":1,"label":"%s"}' % ("\u00e9" * 16), "label"),
    ('{"do":"reset","request":1,"keep":0}', "keep"),
    ('{"do":"rewind","request":1}', "tokens"),
    ('{"do":"release_front","request":1,"tokens":2147483648}', "tokens"),
    ('{"do":"promote"}', "ticket"), ('{"do":"abandon","ticket":0}', "ticket"),
    ('{"do":"submit"}', "segments"), ('{"do":"submit","segments":[]}', "segments"))
# The same of a submit that has one segment.
BAD_SUBMITS = (
    ('"segments":[[1,"a",1],[2,"a",1],[3,"a",1],[4,"a",1]]', "segments"),
    ('"segments":[[1,"a"]]', "segments[0]"),
    ('"segments":[[1,"a",1,0,0]]', "segments[0]"),
    ('"segments":[[1,"a",-1]]', "segments[0]"),
    ('"segments":[[1,"a",16777217]]', "segments[0]"),
    ('"segments":[[1,"a",1,2147483648]]', "segments[0]"), ('"bucket":null', "bucket"),
    ('"bucket":[1]', "bucket"), ('"bucket":[0,1]', "bucket"),
    ('"bucket":[1,65537]', "bucket"),
    ('"combined":[]', "combined"), ('"combined":{"":["a"]}', "combined"),
    ('"combined":{"b":[%s]}' % ",".join(['"a"'] * 65), "combined"),
    ('"combined":{%s}' % ",".join('"b%d":[]' % i for i in range(17)), "combined"),
    ('"commit":0', "commit"), ('"no_wait":1', "no_wait"), ('"copy":"all"', "copy"),
    ('"speculative":true', "id"), ('"base":null', "base"),
    ('"id":3,"speculative":true,"base":3', "base"), ('"pre_forks":[["a"]]', "pre_forks"),
    ('"post_forks":[%s]' % ",".join(['["a","b"]'] * 65), "post_forks"))
GOOD_LINES = (
    '{"do":"open","request":1}\r', ' { "do" : "\\u006fpen" , "request" : -0 } ',
    '{"do":"open","request":9223372036854775807,"x":[{"y":null}],"z":1.5e3}',
    '{"do":"close","request":1,'
    '"outcome":{"status":"NO_REQUEST","digest":"00ab34cd56ef7890"}}',
    '{"do":"open","request":1,"prefix":{"tokens":512,"keys":[0,17]},"times":[5,3]}',
    '{"do":"open","request":1,"label":7,"segments":0,"base":1,"times":[1,2,3]}',
    '{"do":"submit","segments":[[1,"main",0,null]],"combined":{},"pre_forks":[]}')

problems = []


def wrong(*words):
    problems.append(" ".join(str(word) for word in words))


def check_vectors():
    seed, data = 2654435761, bytearray()
    for _ in range(max(VECTORS)):
        data.append(seed >> 56)
        seed = seed * 11400714785074694797 % 2**64
    for size, expected in VECTORS.items():
        if xxh3_64(bytes(data[:size])) != expected:
            wrong("xxh3 of", size, "bytes")


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(line + "\n" for line in lines)


def replay(quire, path, *more):
    return subprocess.run([quire, "replay", "--json", "--threads", "caller", "--device",
                           "cpu:inline", *more, path], capture_output=True, text=True,
                          check=False, timeout=60)


def check_form(quire, path):
    """Both readers refuse the same lines, and take the same ones."""
    cases = [(1, [HEADER.replace(old, new, 1)], field) for old, new, field in BAD_HEADERS]
    lines = list(BAD_LINES)
    for more, field in BAD_SUBMITS:
        segments = "" if more.startswith('"segments"') else '"segments":[[1,"a",1,0]],'
        lines.append(('{"do":"submit",%s%s}' % (segments, more), field))
    cases += [(2, [HEADER, line], field) for line, field in lines]
    cases.append((3, [HEADER, '{"do":"open","request":1,"id":7}',
                      '{"do":"open","request":1,"id":7}'], "id"))
    cases += [(0, [HEADER, line], None) for line in GOOD_LINES]
    for number, text, field in cases:
        write(path, text)
        fault = plan_trace.run(path)[1]
        said = str(fault or "")
        if bool(fault) != bool(number) or number and not (
                said.startswith("%d: " % number) and field in said):
            wrong("line", number, "field", field, "of", text[-1][:99], "but:",
                  said or "taken")
        done = replay(quire, path)
        where = "%s:%d: " % (path, number) if number else ""
        if done.returncode != (2 if number else 0) or where not in done.stderr:
            wrong("quire:", text[-1][:99], "exit", done.returncode, done.stderr)


def check_commands(name, path, digest):
    """The reader has nothing against a recorded trace; its statuses."""
    commands, fault = plan_trace.run(path)
    for given, got in commands:
        found = plan_trace.difference(given, got)
        if found:
            wrong(name, "line", given["line"], *found)
            break
    if fault or "%016x" % model.run_digest(got for _, got in commands) != digest:
        wrong(name, fault or "another run digest")
    return collections.Counter(got.status for _, got in commands)


def check_random(quire, path):
    statuses = collections.Counter()
    for seed in range(1, RANDOM + 1):
        write(path, map(json.dumps, random_trace.Maker(seed).lines()))
        done = replay(quire, path, "--outcomes", path + ".record")
        if done.returncode != 0:
            wrong("random", seed, done.stderr)
            continue
        statuses += check_commands("random %d" % seed, path + ".record",
                                   json.loads(done.stdout)["digest"])
    if STATUSES - set(statuses):
        wrong("never met:", STATUSES - set(statuses))


def check_specified(specification, folder, path):
    """Traces whose outcomes come from the executable specification, not from quire."""
    sys.path.insert(0, folder)
    about = importlib.util.spec_from_file_location("specification", specification)
    specified = importlib.util.module_from_spec(about)
    about.loader.exec_module(specified)
    for seed in range(1000, 1000 + SPECIFIED):
        writer = specified.Writer(__import__("quire_model"), seed)
        writer.write(path)
        check_commands("specified %d" % seed, path, "%016x" % writer.digest)


def main(quire, folder, specification, spec_folder=None):
    sys.dont_write_bytecode = True
    path = os.path.join(folder, "case.plan")
    check_vectors()
    check_form(quire, path)
    check_random(quire, path)
    if spec_folder:
        check_specified(specification, spec_folder, path)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
