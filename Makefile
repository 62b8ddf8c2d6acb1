EXTENSION = ttl_index
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)

MODULE_big = $(EXTENSION)
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
PGFILEDESC = "ttl_index - rows that expire by the date they carry"

# The current definition is one file; a release adds a script from the one before.
DATA = $(wildcard sql/$(EXTENSION)--*--*.sql)
DATA_built = sql/$(EXTENSION)--$(EXTVERSION).sql
EXTRA_CLEAN = sql/$(EXTENSION)--$(EXTVERSION).sql

# setup comes first: it creates the extension and keeps the monitor out.
REGRESS = setup $(filter-out setup,$(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql))))
REGRESS_OPTS = --inputdir=test --outputdir=.
ISOLATION = $(sort $(patsubst test/specs/%.spec,%,$(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --outputdir=.
TAP_TESTS = 1
PROVE_TESTS ?= test/t/*.pl

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

all: sql/$(EXTENSION)--$(EXTVERSION).sql

sql/$(EXTENSION)--$(EXTVERSION).sql: sql/$(EXTENSION).sql $(EXTENSION).control
	cp $< $@

$(OBJS): src/ttl_index.h src/compat.h src/rfc3339.h src/statefile.h

# Fuzzes the code that reads documents, each target for so many seconds.
FUZZ_SECONDS ?= 30
.PHONY: fuzz
fuzz:
	PG_CONFIG="$(PG_CONFIG)" test/fuzz/run $(FUZZ_SECONDS)

# Measures what expiring rows costs, in about 25 minutes, and writes the results to
# bench/; LARGE=1: with up to 50 million rows.
BENCH = bench/RESULTS-expire$(if $(LARGE),-large).md
.PHONY: bench
bench:
	PG_CONFIG="$(PG_CONFIG)" LARGE="$(LARGE)" bench/expire > $(BENCH).new
	mv $(BENCH).new $(BENCH)
	bench/chart < $(BENCH) > bench/expire$(if $(LARGE),-large).svg

# Formats the C files as PostgreSQL's own are (Debian: pg-bsd-indent).
.PHONY: indent
indent:
	for f in src/*.c src/*.h; do \
		pg_bsd_indent -bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 -nfc1 \
			-i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4 -Utypedefs.list < $$f | \
			sed -E 's/^([A-Za-z_][A-Za-z0-9_]*)[ \t]+\*$$/\1 */' > $$f.new && \
		{ cmp -s $$f $$f.new && rm $$f.new || mv $$f.new $$f; }; \
	done
