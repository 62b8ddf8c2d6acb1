EXTENSION = ttl_index

# The sources may be elsewhere: make -f ../Makefile
top := $(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST))))
ifneq ($(top),.)
VPATH = $(top)
endif
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(top)/$(EXTENSION).control)

MODULE_big = $(EXTENSION)
OBJS = $(patsubst $(top)/%.c,%.o,$(sort $(wildcard $(top)/src/*.c $(top)/src/*/*.c)))
OUR_HEADERS = $(wildcard $(top)/src/*.h $(top)/src/*/*.h)
PG_CPPFLAGS = -I$(top)/src
PGFILEDESC = "ttl_index - delete rows some time after a date in the row"

# The current definition is one file; a release adds a script from the one before.
DATA = $(patsubst $(top)/%,%,$(wildcard $(top)/sql/$(EXTENSION)--*--*.sql))
SCRIPTS = ttl_index_report
DATA_built = sql/$(EXTENSION)--$(EXTVERSION).sql
EXTRA_CLEAN = sql/$(EXTENSION)--$(EXTVERSION).sql test/perl/rights.so

# setup comes first: it creates the extension and keeps the monitor out.
REGRESS = setup $(filter-out setup,$(sort $(basename $(notdir $(wildcard $(top)/test/sql/*.sql)))))
REGRESS_OPTS = --inputdir=test --outputdir=.
# workers comes first: it lets isolationtester see that a worker waits.
ISOLATION = workers $(filter-out workers,$(sort $(basename $(notdir $(wildcard $(top)/test/specs/*.spec)))))
ISOLATION_OPTS = --inputdir=test --outputdir=.
TAP_TESTS = 1
# The longest come first, so that prove -j does not end with one of them alone.
LONG_TESTS = $(patsubst %,test/t/%.pl,004_canceled_batches 005_databases 052_demo \
	062_many_indexes 061_marks 013_hold 006_cron)
TAP_FOLDERS = t frameworks monitoring citus
PROVE_TESTS ?= $(LONG_TESTS) $(filter-out $(LONG_TESTS),$(sort \
	$(patsubst $(top)/%,%,$(wildcard $(patsubst %,$(top)/test/%/*.pl,$(TAP_FOLDERS))))))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" does not run: install PostgreSQL's server headers (Debian: postgresql-server-dev-NN), or say make PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)

all: sql/$(EXTENSION)--$(EXTVERSION).sql

sql/$(EXTENSION)--$(EXTVERSION).sql: sql/$(EXTENSION).sql $(EXTENSION).control
	mkdir -p $(@D)
	cp $< $@

# Files for Prometheus, Grafana and cron, in a folder of their own: names such as
# alerts.yml are nobody's.
monitoring_dir = $(DESTDIR)$(datadir)/$(EXTENSION)/monitoring
.PHONY: install-monitoring uninstall-monitoring
install: install-monitoring
install-monitoring:
	$(MKDIR_P) '$(monitoring_dir)'
	$(INSTALL_DATA) $(wildcard $(top)/monitoring/*) '$(monitoring_dir)'
uninstall: uninstall-monitoring uninstall-advice
uninstall-monitoring:
	rm -f $(patsubst $(top)/monitoring/%,'$(monitoring_dir)/%',$(wildcard $(top)/monitoring/*))
	-rmdir '$(monitoring_dir)' '$(dir $(monitoring_dir))'

# A database outlives the files.
.PHONY: uninstall-advice
uninstall-advice:
	@echo 'Databases can still have the extension: SELECT datname FROM pg_database WHERE datallowconn;'
	@echo 'Drop it in each of them, and see "Uninstalling" and "Without the library" in the manual.'

# A build takes seconds, so a changed header rebuilds everything.
$(OBJS): $(OUR_HEADERS)
$(shell mkdir -p $(sort $(dir $(OBJS))))

# What tests preload to see whose functions run as whom.
test/perl/rights.so: test/perl/rights.c
	mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_SL) -shared -o $@ $<

installcheck: test/perl/rights.so

# Fuzzes the code that reads documents, each target for so many seconds.
FUZZ_SECONDS ?= 30
.PHONY: fuzz
fuzz:
	PG_CONFIG="$(PG_CONFIG)" test/fuzz/run $(FUZZ_SECONDS)

# Measures, and writes the results to bench/results/, most with a chart: all benchmarks, in one
# night, or those named, say BENCH=documents.  One that fails, such as citus where the server has
# no Citus, leaves its results as they were.  LARGE=1: bench/expire with up to 50 million rows.  A
# trial run is for the terminal: bench/expire --help.
BENCH ?= expire profile steady workers idle archive buckets documents ddl citus
BENCH_ARGS = $(if $(LARGE),--rounds 1 large_1 large_10 large_50)
ifdef LARGE
BENCH = expire
endif
.PHONY: bench
bench:
	@status=0; for name in $(BENCH); do \
		result=bench/results/$$name$(if $(LARGE),-large); \
		if PG_CONFIG="$(PG_CONFIG)" bench/$$name $(BENCH_ARGS) > $$result.new; then \
			mv $$result.new $$result.md; \
			! grep -q '^!\[' $$result.md || bench/chart < $$result.md > $$result.svg; \
		else \
			status=1; \
		fi; \
	done; exit $$status

# Formats the C files as PostgreSQL's own are (Debian: pg-bsd-indent).
.PHONY: indent
indent:
	@command -v pg_bsd_indent >/dev/null || { echo "make indent needs pg_bsd_indent (Debian: pg-bsd-indent)" >&2; exit 1; }
	set -e; for f in $(sort $(wildcard $(top)/src/*.c $(top)/src/*/*.c) $(OUR_HEADERS)); do \
		pg_bsd_indent -bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 -nfc1 \
			-i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4 -U$(top)/typedefs.list < $$f > $$f.tmp; \
		sed -E 's/^([A-Za-z_][A-Za-z0-9_]*)[ \t]+\*$$/\1 */' $$f.tmp > $$f.new; \
		rm $$f.tmp; \
		if cmp -s $$f $$f.new; then rm $$f.new; else mv $$f.new $$f; fi; \
	done
