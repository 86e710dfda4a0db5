/** Commands on a machine of iWARP: what it lacks ends with exit code 2 and a sentence, before anything runs. */
import { expect, it, vi } from 'vitest';
import { hca } from './testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const iwarp = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.transport=iwarp'];

it.each([
  ['perf atomic-lat', 'test is "atomic-lat", expected a test of write, read or send over iWARP'],
  ['perf herd', 'test is "kv-rpc", expected kv-get or kv-put over iWARP'],
  ['perf write-lat -c UC', '--connection is "UC", expected RC over iWARP'],
  ['perf write-lat -m 1024', '--mtu is 1024, expected left out with iWARP'],
  ['perf write-lat -x 0', '--gid-index is 0, expected left out with iWARP'],
  ['perf write-lat --traffic-class 8', '--traffic-class is 8, expected left out with iWARP'],
  ['explain atomic-lat', 'test is "atomic-lat", expected a test of write, read or send over iWARP'],
  ['explain write-lat -m 1024', '--mtu is 1024, expected left out with iWARP'],
  [
    'why write-lat',
    'hca.capability.transport is "iwarp", expected ibta for hca why: it explains packets of IBTA',
  ],
  ['why examples/rdma-cm-echo.ts', 'hca.capability.transport is "iwarp", expected ibta for hca why'],
  ['serve --socket iwarp.socket', 'hca.capability.transport is "iwarp", expected ibta for guests'],
])('hca %s is refused with a sentence', async (words, sentence) => {
  const { code, out, err } = await hca(...words.split(' '), ...iwarp);
  expect([code, out, err]).toEqual([2, '', expect.stringContaining(`hca: ${sentence}`)]);
});
