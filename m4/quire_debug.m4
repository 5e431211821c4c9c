# SPDX-License-Identifier: MIT
# QUIRE_ENABLE_DEBUG: --enable-debug turns on the O(n) tier of assertions
# (runtime/assert.h).  The macro stands in config.h and on the command line
# (DEBUG_CPPFLAGS), for files without config.h.
AC_DEFUN([QUIRE_ENABLE_DEBUG], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug], [check whole structures at every change (slow)])],
    [], [enable_debug=no])
  DEBUG_CPPFLAGS=
  AS_IF([test "x$enable_debug" != xno],
    [enable_debug=yes
     DEBUG_CPPFLAGS=-DQUIRE_DEBUG=1
     AC_DEFINE([QUIRE_DEBUG], [1], [Check whole structures at every change.])])
  AC_SUBST([DEBUG_CPPFLAGS])
])
