#!/bin/sh
# Makes the first home and moves it to Postgres; a second time nothing changes. SHARED, if it is set, is a folder with
# the master key that all nodes have; else one is made.
set -eu
if [ -e "$OPENFANG_HOME/openfang.db.moved" ]; then exit 0; fi
mkdir -p -m 0700 "$OPENFANG_HOME"
if [ -n "${SHARED:-}" ]; then install -m 0600 "$SHARED/master.key" "$OPENFANG_HOME/master.key"; fi
openfang init
openfang storage migrate --to "$DATABASE_URL"
mv "$OPENFANG_HOME/openfang.db" "$OPENFANG_HOME/openfang.db.moved"
