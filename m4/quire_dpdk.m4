# SPDX-License-Identifier: MIT
# QUIRE_DPDK: are DPDK's rings there, for `make bench-alloc` to compare with?  Nothing else
# uses them.
#
# Sets DPDK_CFLAGS, DPDK_LIBS, the conditional HAVE_DPDK and quire_dpdk_summary.  The
# headers are not clean of our warnings, so they are system headers here.  Of the many
# libraries that pkg-config names, the shared one of the rings brings what it needs.
AC_DEFUN([QUIRE_DPDK], [
  quire_have_dpdk=no
  PKG_CHECK_EXISTS([libdpdk >= 22.11], [
    DPDK_CFLAGS=`$PKG_CONFIG --cflags libdpdk | $SED 's/-I */-isystem /g'`
    DPDK_LIBS="`$PKG_CONFIG --libs-only-L libdpdk` -lrte_ring"
    quire_save_CFLAGS=$CFLAGS
    quire_save_LIBS=$LIBS
    CFLAGS="$CFLAGS $DPDK_CFLAGS"
    LIBS="$DPDK_LIBS $LIBS"
    AC_MSG_CHECKING([for the rings of DPDK])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <rte_ring.h>
#include <rte_ring_elem.h>
]], [[
  static struct rte_ring ring;
  int page = 0;
  return rte_ring_get_memsize_elem(sizeof(page), 2) > 0 &&
         rte_ring_init(&ring, "", 2, RING_F_MP_RTS_ENQ | RING_F_MC_HTS_DEQ) == 0 &&
         rte_ring_enqueue_bulk_elem(&ring, &page, sizeof(page), 1, 0) == 1;
]])], [quire_have_dpdk=yes])
    AC_MSG_RESULT([$quire_have_dpdk])
    CFLAGS=$quire_save_CFLAGS
    LIBS=$quire_save_LIBS])
  AS_IF([test $quire_have_dpdk = yes],
    [quire_dpdk_summary="`$PKG_CONFIG --modversion libdpdk`, for make bench-alloc"
     AC_DEFINE([QUIRE_HAVE_DPDK], [1], [The rings of DPDK are there to compare with.])],
    [quire_dpdk_summary="no: make bench-alloc leaves its rings out"])
  AC_SUBST([DPDK_CFLAGS])
  AC_SUBST([DPDK_LIBS])
  AM_CONDITIONAL([HAVE_DPDK], [test $quire_have_dpdk = yes])
])
