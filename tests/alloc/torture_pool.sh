#!/bin/sh
# SPDX-License-Identifier: MIT The short form of the torture for `make check`: a million
# takes and a million frees by four threads, then four other sizes.
set -e
torture=./tests/alloc/torture_pool
$torture --ops 1000000 --threads 4 --pages 64
$torture --ops 40000
