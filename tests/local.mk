# SPDX-License-Identifier: MIT
# tests: what concerns the whole house; the folders' own tests are in tests/<folder>/.
# Tests find the sources and the build by these, whatever folder they run in.
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; \
	public_headers='$(include_HEADERS) $(nobase_quireinclude_HEADERS)'; \
	CC='$(CC)'; test_cxx='$(TEST_CXX)'; \
	export top_srcdir top_builddir public_headers CC test_cxx;
if HAVE_CXX
TEST_CXX = $(CXX)
endif
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(SHELL)

house_tests = \
	%D%/test_arrows.sh \
	%D%/test_exports.sh \
	%D%/test_headers.sh \
	%D%/test_readme.sh
TESTS += $(house_tests)
EXTRA_DIST += $(house_tests) \
	%D%/fuzz.sh \
	%D%/mutants \
	%D%/mutants.sh \
	%D%/mutants_thread \
	%D%/run_suite.h \
	%D%/sanitize.sh

check-thread check-address:
	$(SHELL) $(top_srcdir)/tests/sanitize.sh $(@:check-%=%)

fuzz:
	$(SHELL) $(top_srcdir)/tests/fuzz.sh

mutants:
	$(SHELL) $(top_srcdir)/tests/mutants.sh
	$(SHELL) $(top_srcdir)/tests/mutants.sh --thread

.PHONY: check-thread check-address fuzz gpu-programs mutants
