/** Ethernet ports under the stock mlx4_en, and raw packets, of two guests in this process. */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { commandCounts, testInsideScenario } from './inside-suite.ts';

const arpBytes = [0x08, 0x06];

/** Frames of this length, without FCS, that the first HCA has sent and received, without ARP, which padding lengthens to 60 bytes. */
function framesOf(file: string, lengthBytes: number): readonly [sent: number, received: number] {
  const frames = readCapture(readFileSync(file)).frames.filter(
    ({ interface: end, originalBytes, bytes }) =>
      end === 0 && originalBytes === lengthBytes && arpBytes.some((byte, at) => bytes[12 + at] !== byte),
  );
  const sent = frames.filter(({ direction }) => direction === 'outbound').length;
  return [sent, frames.length - sent];
}

await testInsideScenario('raw-packets', ({ report, capture }) => {
  // Both programs send 100 frames, the second one both ways. perftest counts the four bytes of the FCS in its sizes.
  const { file } = capture.options;
  expect([framesOf(file, 1000 - 4), framesOf(file, 64 - 4)]).toEqual([
    [100, 0],
    [100, 100],
  ]);
  // Every rule was removed: those of programs at their end, those of mlx4_en when its interface was closed.
  for (const node of [0, 1]) {
    const [attached, detached] = commandCounts(report, ['FLOW_ATTACH', 'FLOW_DETACH'], node);
    expect(attached).toBeGreaterThan(0);
    expect(detached).toBe(attached);
  }
});

await testInsideScenario('ethernet-offloads');
await testInsideScenario('ethernet');
