# SPDX-License-Identifier: MIT
# QUIRE_CAS128: is there a 128-bit compare-and-swap that works?  Without it the page FIFO
# is built with a lock.  quire_cv_cas128=no on the command line asks for that, as a
# package must that is to run on the first x86-64 processors, which have none.
#
# It is tried and not only looked for: ck's for AArch64 with LSE (its --enable-lse) has
# said yes for no and no for yes.  A cross compiler cannot try, and refuses that one.
m4_define([_QUIRE_CAS128_PROGRAM], [AC_LANG_PROGRAM([[
#include <ck_pr.h>
#ifndef CK_F_PR_CAS_64_2
#error none
#endif
$1
]], [[
  static uint64_t word[2] __attribute__((aligned(16))) = {1, 2};
  uint64_t old[2] = {1, 2}, set[2] = {3, 4};
  int right = ck_pr_cas_64_2(word, old, set) && !ck_pr_cas_64_2(word, old, set);

  return !(right && word[0] == 3 && word[1] == 4);
]])])

AC_DEFUN([QUIRE_CAS128], [
  AC_CACHE_CHECK([for a 128-bit compare-and-swap], [quire_cv_cas128], [
    quire_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CK_CFLAGS"
    AC_RUN_IFELSE([_QUIRE_CAS128_PROGRAM()],
      [quire_cv_cas128=yes], [quire_cv_cas128=no],
      [AC_COMPILE_IFELSE([_QUIRE_CAS128_PROGRAM([
#ifdef CK_MD_LSE_ENABLE
#error wrong
#endif
])], [quire_cv_cas128=yes], [quire_cv_cas128=no])])
    CPPFLAGS=$quire_save_CPPFLAGS])
  AS_IF([test "x$quire_cv_cas128" = xyes],
    [AC_DEFINE([QUIRE_HAVE_CAS128], [1], [There is a 128-bit compare-and-swap.])])
  AM_CONDITIONAL([HAVE_CAS128], [test "x$quire_cv_cas128" = xyes])
])
