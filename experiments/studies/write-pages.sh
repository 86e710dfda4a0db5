#!/bin/sh
# Writes docs/studies/*.md anew, from points in dist/studies: `npm run studies`. Some minutes; goes on where it was.
set -eu
mkdir -p dist/studies
for name in $(node bin/hca.js ask | sed -n 's/^hca ask \([a-z-]*\) .*/\1/p'); do
  node bin/hca.js ask "$name" --out "dist/studies/$name.jsonl" --html "dist/studies/$name.html" --markdown docs/studies
done
