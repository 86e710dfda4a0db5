/** `hca explain` on the end of a request without a CQE; the timeline of the request extends to that end. */
import { afterAll, expect, it } from 'vitest';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import { hcaWithin } from '../testing/in-process.ts';

const folder = makeTemporaryFolder('hca-explain-spec-');
afterAll(() => folder.remove());

it.each([
  ['send-bw', 'RC', 'its acknowledgement, for it has no CQE.'],
  ['send-bw', 'UD', 'the departure of its last packet, for it has no CQE.'],
  ['write-bw', 'UC', 'the departure of its last packet, for it has no CQE.'],
])('%s over %s: it ends with %s', async (test, connection, end) => {
  const size = ['-s', '64', '-n', '8', '--inline', '64', '--op', '3'];
  const { code, out } = await hcaWithin({}, ['explain', test, '-c', connection, ...size]);
  expect([code, out]).toEqual([0, expect.stringContaining(`ns from there to ${end}`)]);
});

it('--timeline-operations shows the whole life of a request without a CQE, like a window of that time', async () => {
  const test = ['write-bw', '-s', '64', '-n', '20'];
  const told = await hcaWithin({}, ['explain', ...test, '--op', '5', '--json', '-']);
  const { postedPs, latencyPs } = JSON.parse(told.out) as { postedPs: number; latencyPs: number };
  const recordsOf = async (...choice: string[]): Promise<string | undefined> => {
    const { out } = await hcaWithin({ cwd: folder.path }, [
      'perf',
      ...test,
      '--timeline',
      'x.pftrace',
      ...choice,
    ]);
    return /^Recorded (\d+) events/m.exec(out)?.[1];
  };
  const window = `${postedPs}ps..${postedPs + latencyPs + 1}ps`;
  expect(await recordsOf('--timeline-operations', '5')).toBe(await recordsOf('--timeline-window', window));
});
