import { expect, test } from 'vitest';
import { LinkType, readCapture } from '../../analyser/capture/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import { captureFile } from './capture-file.ts';

test('a capture of an Ethernet port has its frames unchanged, in their link type', () => {
  const bytes = Uint8Array.from({ length: 60 }, (_, at) => at);
  const packets = [{ atPs: 5 as ExactPs, direction: 'outbound' as const, bytes, note: 'lost on the cable' }];
  const file = captureFile([
    {
      node: 0,
      port: 1,
      name: 'hca0',
      isEthernet: true,
      bitsPerSecond: 10n ** 10n,
      packets,
      droppedPackets: 0,
    },
  ]);
  const { interfaces, frames } = readCapture(file);
  expect(interfaces[0]!.linkType).toBe(LinkType.ETHERNET);
  expect(frames.map((frame) => frame.bytes)).toEqual([bytes]);
});
