#!/bin/sh
# From the root of the checkout, after npm ci. Further arguments go to hca guest: --write-budget FILE, --module mine.ko …
exec npx hca guest --budget examples/guest-ci/budget.json \
  --run "pair 'ib_write_bw -n 1000 -s 64 -Q 1' 'ib_write_bw -n 1000 -s 64 -Q 1 localhost'" \
  --run "pair 'ib_read_bw -n 1000 -s 4096' 'ib_read_bw -n 1000 -s 4096 localhost'" "$@"
