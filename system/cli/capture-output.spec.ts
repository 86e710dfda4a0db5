import { afterEach, expect, it, vi } from 'vitest';
import { reportFullCapture } from './capture-output.ts';

afterEach(() => vi.restoreAllMocks());

it('a capture that was full is said to be, by end, whoever has made it', async () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  const drops = [
    { process: 'hca0', kept: 3, dropped: 4 },
    { process: 'hca1', kept: 7, dropped: 0 },
  ];
  const machine = { captureDrops: async () => drops };
  await reportFullCapture(machine, { capture: { ends: [], sizeBytes: 1, file: 'a.pcapng' } });
  await reportFullCapture(machine, {});
  expect(lines).toEqual([
    'hca: a.pcapng has the first 3 packets at hca0; 4 later ones were not kept: --pcap-size\n',
  ]);
});
