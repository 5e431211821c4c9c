# SPDX-License-Identifier: MIT
# QUIRE_CUDA: the CUDA toolkit, found by itself on PATH, then in /usr/local/cuda.
#
#   --with-cuda        an error when it cannot be built
#   --with-cuda=DIR    the toolkit in DIR, an error when it cannot be built
#   --without-cuda     no look
#
# Sets NVCC, NVCC_GENCODE, NVCC_HOSTFLAGS, CUDA_CPPFLAGS, CUDA_LIBS, the conditional
# HAVE_CUDA and quire_cuda_summary.  The runtime is linked statically, so the library
# loads on a host without it.

# QUIRE_CUDA_FIND: NVCC and quire_cuda_dir, the root of its toolkit.
AC_DEFUN([QUIRE_CUDA_FIND], [
  AS_CASE([$with_cuda],
    [yes|check],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
  quire_cuda_dir=
  AS_IF([test -n "$NVCC"],
    [quire_nvcc_file=`readlink -f "$NVCC" || AS_ECHO(["$NVCC"])`
     quire_nvcc_bin=`AS_DIRNAME(["$quire_nvcc_file"])`
     quire_cuda_dir=`AS_DIRNAME(["$quire_nvcc_bin"])`
     AS_CASE([$with_cuda], [yes|check], [], [quire_cuda_dir=$with_cuda])],
    [quire_cuda_why="nvcc not found"])
])

# QUIRE_CUDA_GENCODE: code for the chips we know of, as far as nvcc does, and PTX of the
# newest for later ones.  NVCCFLAGS that choose an architecture are left alone.
AC_DEFUN([QUIRE_CUDA_GENCODE], [
  NVCC_GENCODE=
  quire_cuda_archs=
  AS_CASE([" $NVCCFLAGS"],
    [*" -gencode"*|*" --generate-code"*|*" -arch"*|*" --gpu-architecture"*],
      [quire_cuda_archs="as NVCCFLAGS say"],
    [quire_cuda_known=`"$NVCC" --list-gpu-arch 2>&AS_MESSAGE_LOG_FD`
     for quire_arch in 80 90 100; do
       AS_CASE([" "`AS_ECHO(["$quire_cuda_known"]) | tr '\n' ' '`],
         [*" compute_$quire_arch "*],
           [quire_code=arch=compute_$quire_arch,code=sm_$quire_arch
            NVCC_GENCODE="$NVCC_GENCODE -gencode $quire_code"
            quire_cuda_archs="${quire_cuda_archs:+$quire_cuda_archs }sm_$quire_arch"
            quire_ptx=arch=compute_$quire_arch,code=compute_$quire_arch])
     done
     AS_IF([test -n "$quire_cuda_archs"],
       [NVCC_GENCODE="$NVCC_GENCODE -gencode $quire_ptx"
        quire_cuda_archs="$quire_cuda_archs + PTX"],
       [quire_cuda_why="$NVCC knows none of sm_80, 90, 100"])])
])

# QUIRE_CUDA_TRY: does a kernel compile, and does a C program that knows the runtime link
# with its object?  The legacy launch sequence and no exceptions keep libstdc++ out; it is
# linked where nvcc lacks them.
AC_DEFUN([QUIRE_CUDA_TRY], [
  AC_MSG_CHECKING([whether $NVCC works for $quire_cuda_archs])
  AC_LANG_CONFTEST([AC_LANG_SOURCE([[
#include <cuda_runtime_api.h>
int launch(int *p);
int main(void) { return launch(0) + (int)cudaGetLastError(); }]])])
  cat >conftest_kernel.cu <<'QUIRE_EOF'
#include <cuda_runtime.h>
__global__ void kernel(int *p) { *p = 1; }
extern "C" int launch(int *p)
{
	kernel<<<1, 1>>>(p);
	return (int)cudaGetLastError();
}
QUIRE_EOF
  for quire_try in plain libstdcxx; do
    NVCC_HOSTFLAGS="--legacy-launch-seq -Xcompiler=-fno-exceptions"
    CUDA_LIBS="-L$quire_cuda_libdir -lcudart_static -lrt -ldl"
    AS_IF([test $quire_try = libstdcxx],
      [NVCC_HOSTFLAGS=
       CUDA_LIBS="$CUDA_LIBS -lstdc++"])
    AS_IF([{ "$NVCC" $NVCC_GENCODE $NVCCFLAGS $NVCC_HOSTFLAGS -Xcompiler=-fPIC \
               -c conftest_kernel.cu -o conftest_kernel.$OBJEXT &&
             $CC $CUDA_CPPFLAGS $CFLAGS $LDFLAGS conftest.$ac_ext \
               conftest_kernel.$OBJEXT $CUDA_LIBS $LIBS -o conftest$EXEEXT; } >&AS_MESSAGE_LOG_FD 2>&1],
      [quire_have_cuda=yes
       break])
  done
  AC_MSG_RESULT([$quire_have_cuda])
  AS_IF([test $quire_have_cuda = no], [quire_cuda_why="$NVCC failed, see config.log"])
  rm -f conftest.$ac_ext conftest_kernel.* conftest$EXEEXT
])

AC_DEFUN([QUIRE_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
       [build the CUDA device @<:@found by itself: PATH, /usr/local/cuda@:>@])],
    [], [with_cuda=check])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
  : "${NVCCFLAGS=-O2}"
  quire_have_cuda=no
  quire_cuda_why=
  CUDA_CPPFLAGS=
  AS_IF([test "x$with_cuda" = xno], [quire_cuda_why="not wanted"], [QUIRE_CUDA_FIND])
  AS_IF([test -z "$quire_cuda_why"], [QUIRE_CUDA_GENCODE])
  AS_IF([test -z "$quire_cuda_why"],
    [quire_cuda_libdir=$quire_cuda_dir/lib64
     AS_IF([test -d "$quire_cuda_libdir"], [], [quire_cuda_libdir=$quire_cuda_dir/lib])
     AS_IF([test "$quire_cuda_dir" != /usr],
       [CUDA_CPPFLAGS="-isystem $quire_cuda_dir/include"])
     QUIRE_CUDA_TRY])
  AS_IF([test $quire_have_cuda = yes],
    [quire_cuda_summary="$NVCC, $quire_cuda_archs"
     AC_DEFINE([HAVE_CUDA], [1], [The CUDA device is built.])],
    [CUDA_CPPFLAGS=
     CUDA_LIBS=
     quire_cuda_summary="no: $quire_cuda_why"
     AS_CASE([$with_cuda],
       [no], [],
       [check], [AS_IF([test -n "$NVCC"],
                  [AC_MSG_WARN([building without CUDA: $quire_cuda_why])])],
       [AC_MSG_ERROR([--with-cuda was given, but $quire_cuda_why])])])
  AC_SUBST([NVCC_GENCODE])
  AC_SUBST([NVCC_HOSTFLAGS])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AM_CONDITIONAL([HAVE_CUDA], [test $quire_have_cuda = yes])
])
