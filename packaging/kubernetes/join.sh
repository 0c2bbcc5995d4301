#!/bin/sh
# Makes the home of a node: the configuration and the master key that all of them share. SHARED is a folder with the
# key; with a file `key` in it, `openfang` on the node asks as an administrator.
set -eu
mkdir -p -m 0700 "$OPENFANG_HOME"
install -m 0600 "$SHARED/master.key" "$OPENFANG_HOME/master.key"
if [ -e "$SHARED/key" ]; then install -m 0600 "$SHARED/key" "$OPENFANG_HOME/key"; fi
sed -e "s|@DATABASE@|$DATABASE_URL|" -e "s|@ADDRESS@|$NODE_ADDRESS|" "$CONFIG" > "$OPENFANG_HOME/config.toml"
