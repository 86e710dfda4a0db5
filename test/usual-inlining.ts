/**
 * Sets V8's inlining limits back to its defaults in the processes of specs. The machines of a spec run briefly: compiling with the
 * limits of `runtime/inlining.ts` takes more processor time than the compiled code saves (bench/notes/cold-start.md). Commands that a
 * spec starts as processes keep the raised limits.
 */
import '../runtime/node.ts';
import { setFlagsFromString } from 'node:v8';

/** Defaults of V8 13.6 (`node --v8-options`). */
const limits = [
  '--max-inlined-bytecode-size=460',
  '--max-inlined-bytecode-size-cumulative=920',
  '--max-inlined-bytecode-size-absolute=4600',
];

for (const limit of limits) setFlagsFromString(limit);
