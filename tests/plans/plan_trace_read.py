# SPDX-License-Identifier: MIT
"""Reads a plan trace by sections 1 to 4 of docs/trace-format.md; runs nothing."""
import io
import json
import math
import shutil
import subprocess

LINE_MAX = 16777216
I31, I63 = 2**31 - 1, 2**63 - 1
STATUS = ("OK NO_PAGES AGAIN STALE OFFLOADED NO_REQUEST NO_LABEL LIMIT INVALID HELD "
          "WOULD_BLOCK ABANDONED CANCELLED DEVICE CALLBACK NO_MEMORY TIMEOUT NOT_OWNED "
          "CLOSED BROKEN IO FORMAT END").split()
RESERVED = {"offload", "reload", "hold", "drop", "adopt", "offer"}


class Refused(Exception):
    """What is wrong with a file: the line, the field ("" is the whole line), and why."""

    def __init__(self, line, field, why):
        super().__init__("%d: %s%s" % (line, field + ": " if field else "", why))


class Wrong(Exception):
    """The same, while the line is not known yet."""

    def __init__(self, field, why):
        super().__init__(field, why)
        self.field, self.why = field, why


# Lines

def decompressed(path):
    """A binary file of the trace's lines, and the process that makes it, if any."""
    file = open(path, "rb", buffering=0)
    magic = file.read(4)
    file.seek(0)
    skippable = magic[1:] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F
    if magic != b"\x28\xb5\x2f\xfd" and not skippable:
        return io.BufferedReader(file), None
    if not shutil.which("zstd"):
        raise Refused(1, "", "compressed with zstd, and there is no zstd here to undo it")
    tool = subprocess.Popen(["zstd", "-dcq", "--long=27"], stdin=file,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return tool.stdout, tool


def lines(path):
    """(number, bytes) of every line, its line feed included."""
    file, tool = decompressed(path)
    number = 0
    while True:
        number += 1
        line = file.readline(LINE_MAX + 1)
        if len(line) > LINE_MAX and not line.endswith(b"\n"):
            raise Refused(number, "", "more than %d bytes" % LINE_MAX)
        if not line:
            break
        yield number, line
    if tool:
        why = tool.stderr.read().decode(errors="replace").strip()
        if tool.wait() != 0:
            raise Refused(number, "", "truncated or damaged: " + why)


# JSON

class Unique(dict):
    def __init__(self, pairs):
        super().__init__(pairs)
        if len(self) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise Wrong(twice, "the name stands twice in an object")


def no_constant(text):
    raise Wrong("", text + " is not JSON")


def parse_int(text):
    if len(text) > 20 or not -2**63 <= int(text) <= I63:
        raise Wrong("", "an integer of more than 64 bits")
    return int(text)


def parse_float(text):
    if math.isinf(float(text)):
        raise Wrong("", "a number that no double holds")
    return float(text)


def parsed(line):
    """The object of a line."""
    try:
        text = line.decode("utf-8")
        value = json.loads(text, object_pairs_hook=Unique, parse_constant=no_constant,
                           parse_int=parse_int, parse_float=parse_float)
    except (ValueError, RecursionError) as error:
        raise Wrong("", "not JSON: %s" % error) from None
    if not isinstance(value, dict):
        raise Wrong("", "an object is wanted")
    if "\\u" in text:
        no_odd_character(value)
    return value


def no_odd_character(value):
    """Refuses half a surrogate pair, which only an escape can bring in."""
    if isinstance(value, str):
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise Wrong("", "a string with half a surrogate pair")
    elif isinstance(value, list):
        for one in value:
            no_odd_character(one)
    elif isinstance(value, dict):
        no_odd_character([*value.keys(), *value.values()])


# Values

def number(value, low, high, field):
    if type(value) is not int or not low <= value <= high:
        raise Wrong(field, "an integer %d..%d is wanted" % (low, high))
    return value


def flag(value, field):
    if not isinstance(value, bool):
        raise Wrong(field, "true or false is wanted")
    return value


def string(value, least, most, field):
    if (isinstance(value, str) and "\0" not in value and
            least <= len(value.encode("utf-8")) <= most):
        return value
    raise Wrong(field, "a string of %d..%d bytes is wanted" % (least, most))


def label(value, field):
    return string(value, 1, 31, field)


def choice(value, allowed, field):
    if not isinstance(value, str) or value not in allowed:
        raise Wrong(field, "one of %s is wanted" % ", ".join(allowed))
    return value


def array(value, least, most, field):
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise Wrong(field, "a list of %d..%d values is wanted" % (least, most))
    return value


def table(value, field):
    if not isinstance(value, dict):
        raise Wrong(field, "an object is wanted")
    return value


def needed(value, name, field=None):
    if name not in value:
        raise Wrong(field or name, "is missing")
    return value[name]


# The header

SHAPE = {"num_layers": I31, "num_kv_heads": I31, "head_dim": I31, "page_size": 2**20}
LIMITS = {"rows": 2**16, "tokens": 2**24, "requests": 2**20, "seq_tokens": I31,
          "labels": 64, "tables": 16, "table_pages": I31}


def numbers(value, field, bounds):
    value = table(value, field)
    found = {}
    for name, most in bounds.items():
        place = field + "." + name
        found[name] = number(needed(value, name, place), 1, most, place)
    return found


def header(value):
    """page_size, num_pages, sink and the limits: what decides outcomes."""
    choice(needed(value, "quire"), ("plan-trace",), "quire")
    number(needed(value, "version"), 1, 1, "version")
    cache = table(needed(value, "cache"), "cache")
    layout = choice(needed(cache, "layout", "cache.layout"), ("NHD", "HND", "MLA"),
                    "cache.layout")
    choice(needed(cache, "dtype", "cache.dtype"), ("f32", "f16", "bf16", "e4m3", "e5m2"),
           "cache.dtype")
    found = numbers(cache, "cache", SHAPE)
    if layout == "MLA" and found["num_kv_heads"] != 1:
        raise Wrong("cache.num_kv_heads", "1 is wanted with MLA")
    pool = table(needed(value, "pool"), "pool")
    found.update(numbers(pool, "pool", {"num_pages": 2**24}))
    found["sink"] = flag(needed(pool, "sink", "pool.sink"), "pool.sink")
    number(found["num_pages"], 2 if found["sink"] else 1, 2**24, "pool.num_pages")
    limits = table(needed(value, "limits"), "limits")
    found.update(numbers(limits, "limits", LIMITS))
    found["row_pages"] = number(limits.get("row_pages", I31), 1, I31, "limits.row_pages")
    if "source" in value:
        string(value["source"], 0, 255, "source")
    return found


# Commands

def segment(value, field):
    value = array(value, 3, 4, field)
    at = value[3] if len(value) == 4 else None
    if at is not None:
        number(at, 0, I31, field)
    return (number(value[0], 0, I63, field), label(value[1], field),
            number(value[2], 0, 2**24, field), at)


def pairs(value, field):
    value = array(value, 0, 64, field)
    return [tuple(label(name, field) for name in array(pair, 2, 2, field))
            for pair in value]


def combined(value):
    value = table(value, "combined")
    if len(value) > 16:
        raise Wrong("combined", "at most 16 names are wanted")
    return [(label(name, "combined"), [label(source, "combined")
                                       for source in array(sources, 0, 64, "combined")])
            for name, sources in value.items()]


def bucket(value):
    value = array(value, 2, 2, "bucket")
    return number(value[0], 1, 2**24, "bucket"), number(value[1], 1, 2**16, "bucket")


def submit(value, head):
    segments = array(needed(value, "segments"), 1, head["rows"], "segments")
    got = {"segments": [segment(one, "segments[%d]" % i)
                        for i, one in enumerate(segments)],
           "bucket": bucket(value["bucket"]) if "bucket" in value else None,
           "combined": combined(value.get("combined", {})),
           "commit": flag(value.get("commit", True), "commit"),
           "pre_forks": pairs(value.get("pre_forks", []), "pre_forks"),
           "post_forks": pairs(value.get("post_forks", []), "post_forks")}
    for name in ("no_wait", "copy", "speculative"):
        got[name] = flag(value.get(name, False), name)
    if got["speculative"] and "id" not in value:
        raise Wrong("id", "a speculative submit needs one")
    if "base" in value:
        if not got["speculative"]:
            raise Wrong("base", "only a speculative submit has one")
        if value["base"] is not None:
            number(value["base"], 1, value["id"] - 1, "base")
        got["base"] = value["base"]
    return got


def prefix(value):
    value = table(value, "prefix")
    number(needed(value, "tokens", "prefix.tokens"), 1, I31, "prefix.tokens")
    keys = needed(value, "keys", "prefix.keys")
    for key in array(keys, 0, LINE_MAX, "prefix.keys"):
        number(key, 0, I63, "prefix.keys")


def of_stream(value, tokens):
    got = {"label": label(value.get("label", "main"), "label")}
    if tokens:
        got["tokens"] = number(needed(value, "tokens"), 0, I31, "tokens")
    else:
        got["keep"] = flag(value.get("keep", False), "keep")
    return got


def fields(do, value, head):
    if do in ("promote", "abandon"):
        return {"ticket": number(needed(value, "ticket"), 1, I63, "ticket")}
    if do == "submit":
        return submit(value, head)
    got = {"request": number(needed(value, "request"), 0, I63, "request")}
    if do == "open" and "prefix" in value:
        prefix(value["prefix"])
    if do in ("reset", "rewind", "release_front"):
        got.update(of_stream(value, do != "reset"))
    return got


def outcome(value, head):
    value = table(value, "outcome")
    name = choice(needed(value, "status", "outcome.status"), STATUS, "outcome.status")
    got = {"status": name,
           "detail": number(value.get("detail", 0), -2**63, I63, "outcome.detail"),
           "outside": flag(value.get("outside", False), "outcome.outside")}
    if "digest" in value:
        digest = string(value["digest"], 16, 16, "outcome.digest")
        if set(digest) - set("0123456789abcdef"):
            raise Wrong("outcome.digest", "16 digits 0-9a-f are wanted")
        got["digest"] = int(digest, 16)
    if "pages" in value:
        pages = array(value["pages"], 0, LINE_MAX, "outcome.pages")
        got["pages"] = [number(page, 0, head["num_pages"] - 1, "outcome.pages")
                        for page in pages]
    return got


def command(value, head, last_id):
    do = needed(value, "do")
    if isinstance(do, str) and do in RESERVED:
        raise Wrong("do", do + " is reserved: this reader does not run it")
    choice(do, ("open", "close", "reset", "rewind", "release_front", "submit", "promote",
                "abandon"), "do")
    if "id" in value:
        number(value["id"], last_id + 1, I63, "id")
    got = {"do": do, "id": value.get("id"), "outcome": None, **fields(do, value, head)}
    if "outcome" in value:
        got["outcome"] = outcome(value["outcome"], head)
    if "times" in value:
        for time in array(value["times"], 2, 3, "times"):
            number(time, 0, I63, "times")
    return got


def read(path):
    """Yields the header, then every command with its "line"; raises Refused."""
    head, last_id, at = None, 0, 0
    for at, line in lines(path):
        try:
            try:
                value = parsed(line)
            except Wrong as wrong:
                if not line.endswith(b"\n"):
                    raise Wrong("", "truncated: no line feed at the end") from wrong
                raise
            if head is None:
                head = header(value)
                yield head
                continue
            got = command(value, head, last_id)
        except Wrong as wrong:
            raise Refused(at, wrong.field, wrong.why) from None
        last_id = got["id"] or last_id
        got["line"] = at
        yield got
    if head is None:
        raise Refused(1, "", "a header is wanted")
