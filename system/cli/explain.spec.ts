/** What `hca explain` says of the end of a request that has no CQE. */
import { expect, it } from 'vitest';
import { hcaWithin } from './testing/in-process.ts';

it.each([
  ['send-bw', 'RC', 'its acknowledgement, for it has no CQE.'],
  ['send-bw', 'UD', 'the departure of its last packet, for it has no CQE.'],
  ['write-bw', 'UC', 'the departure of its last packet, for it has no CQE.'],
])('%s over %s: it ends with %s', async (test, connection, end) => {
  const size = ['-s', '64', '-n', '8', '--inline', '64', '--op', '3'];
  const { code, out } = await hcaWithin({}, ['explain', test, '-c', connection, ...size]);
  expect([code, out]).toEqual([0, expect.stringContaining(`ns from there to ${end}`)]);
});
