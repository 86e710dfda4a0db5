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
    'perf write-lat --fault packet=lost,psn=+2',
    'fault 1 (packet), field psn, is "+2", expected left out with',
  ],
  [
    'why write-lat --fault packet=lost,qpn=64',
    'fault 1 (packet), field qpn, is "64", expected left out with',
  ],
  [
    'move --fault packet=lost,only=requests',
    'fault 1 (packet), field only, is "requests", expected left out',
  ],
  [
    'sweep --workload write-lat,size=64 --vary driver.mpaCrc=true,false --fault packet=lost,opcode=RC_SEND_ONLY',
    'sweep is "refused at every point", expected points that can run; the first: fault 1 (packet), field opcode, is',
  ],
  ['serve --socket iwarp.socket', 'hca.capability.transport is "iwarp", expected ibta for guests'],
])('hca %s is refused with a sentence', async (words, sentence) => {
  const { code, out, err } = await hca(...words.split(' '), ...iwarp);
  expect([code, out, err]).toEqual([2, '', expect.stringContaining(`hca: ${sentence}`)]);
});

it('hca why names a cause over iWARP, and says what a completion tells', async () => {
  const lossy = ['--fault', 'packet=lost,node=0,nth=2-99999'];
  const { out } = await hca('why', 'write-lat', '-n', '5', ...lossy, ...iwarp);
  expect(out).toContain('TCP has sent its SYN again');
  expect(out).toContain('[tcp-no-answer]');
  const well = await hca('why', 'write-lat', '-n', '5', ...iwarp);
  expect(well.out).toContain('over iWARP a WRITE or SEND completes when TCP has it');
});
