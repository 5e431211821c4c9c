# SPDX-License-Identifier: MIT
"""XXH3-64 with seed 0, written from its specification (xxHash, doc/xxhash_spec.md).

It is slow, but needs nothing but Python, and is not the library that Quire uses.
"""
import struct

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
MASK = (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
STRIPES = 16            # of a block: (192 - 64) / 8
BLOCK = 64 * STRIPES


def u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def swap(number, size):
    return int.from_bytes(number.to_bytes(size, "little"), "big")


def fold(a, b):
    product = a * b
    return (product ^ (product >> 64)) & MASK


def avalanche(h):
    h ^= h >> 37
    h = h * PRIME_MX1 & MASK
    return h ^ (h >> 32)


def avalanche_64(h):
    h = (h ^ (h >> 33)) * P64_2 & MASK
    h = (h ^ (h >> 29)) * P64_3 & MASK
    return h ^ (h >> 32)


def up_to_3(data):
    n = len(data)
    word = (data[0] << 16) | (data[n >> 1] << 24) | data[n - 1] | (n << 8)
    return avalanche_64(word ^ (u32(SECRET, 0) ^ u32(SECRET, 4)))


def up_to_8(data):
    n = len(data)
    word = u32(data, n - 4) + (u32(data, 0) << 32)
    h = word ^ (u64(SECRET, 8) ^ u64(SECRET, 16))
    h ^= ((h << 49) | (h >> 15)) & MASK ^ ((h << 24) | (h >> 40)) & MASK
    h = h * PRIME_MX2 & MASK
    h ^= (h >> 35) + n
    h = h * PRIME_MX2 & MASK
    return h ^ (h >> 28)


def up_to_16(data):
    n = len(data)
    low = u64(data, 0) ^ (u64(SECRET, 24) ^ u64(SECRET, 32))
    high = u64(data, n - 8) ^ (u64(SECRET, 40) ^ u64(SECRET, 48))
    return avalanche((n + swap(low, 8) + high + fold(low, high)) & MASK)


def mix(data, at, secret):
    return fold(u64(data, at) ^ u64(SECRET, secret),
                u64(data, at + 8) ^ u64(SECRET, secret + 8))


def up_to_128(data):
    n = len(data)
    h = n * P64_1
    for i in range((n - 1) // 32, -1, -1):
        h += mix(data, 16 * i, 32 * i) + mix(data, n - 16 * (i + 1), 32 * i + 16)
    return avalanche(h & MASK)


def up_to_240(data):
    n = len(data)
    h = n * P64_1
    for i in range(8):
        h += mix(data, 16 * i, 16 * i)
    h = avalanche(h & MASK)
    for i in range(8, n // 16):
        h += mix(data, 16 * i, 16 * (i - 8) + 3)
    h += mix(data, n - 16, 136 - 17)
    return avalanche(h & MASK)


def accumulate(acc, stripe, secret):
    """One stripe of eight lanes; acc may grow past 64 bits until it is masked."""
    for i, (lane, key) in enumerate(zip(stripe, secret)):
        acc[i ^ 1] += lane
        key ^= lane
        acc[i] += (key & 0xFFFFFFFF) * (key >> 32)


def above_240(data):
    lanes = struct.Struct("<8Q")
    secrets = [lanes.unpack_from(SECRET, 8 * i) for i in range(STRIPES)]
    scramble = lanes.unpack_from(SECRET, len(SECRET) - 64)
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    n = len(data)
    blocks = (n - 1) // BLOCK
    for block in range(blocks):
        for i in range(STRIPES):
            accumulate(acc, lanes.unpack_from(data, BLOCK * block + 64 * i), secrets[i])
        for i in range(8):
            lane = acc[i] & MASK
            acc[i] = ((lane ^ (lane >> 47) ^ scramble[i]) * P32_1) & MASK
    for i in range((n - 1 - BLOCK * blocks) // 64):
        accumulate(acc, lanes.unpack_from(data, BLOCK * blocks + 64 * i), secrets[i])
    last = lanes.unpack_from(SECRET, len(SECRET) - 64 - 7)
    accumulate(acc, lanes.unpack_from(data, n - 64), last)
    h = n * P64_1
    for i in range(4):
        low, high = acc[2 * i] & MASK, acc[2 * i + 1] & MASK
        h += fold(low ^ u64(SECRET, 11 + 16 * i), high ^ u64(SECRET, 19 + 16 * i))
    return avalanche(h & MASK)


def xxh3_64(data):
    n = len(data)
    if n == 0:
        return avalanche_64(u64(SECRET, 56) ^ u64(SECRET, 64))
    for most, hashed in ((3, up_to_3), (8, up_to_8), (16, up_to_16), (128, up_to_128),
                         (240, up_to_240)):
        if n <= most:
            return hashed(data)
    return above_240(data)
