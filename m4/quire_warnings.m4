# SPDX-License-Identifier: MIT
# QUIRE_WARNINGS: the one place that names warning flags (WARN_CFLAGS).  They become
# errors with `make WERROR_CFLAGS=-Werror`, never by themselves.
AC_DEFUN([QUIRE_WARNINGS], [
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes"
  WARN_CFLAGS="$WARN_CFLAGS -Wvla -Wpointer-arith"
  AC_MSG_CHECKING([whether $CC takes the warning flags])
  quire_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $WARN_CFLAGS"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     WARN_CFLAGS=])
  CFLAGS=$quire_save_CFLAGS
  AC_SUBST([WARN_CFLAGS])
])
