/** Frames of IPv4 and UDP, byte by byte: 14 bytes of Ethernet, 20 of IPv4 (RFC 791), 8 of UDP (RFC 768), then 12 of a BTH. */
import { expect, it } from 'vitest';
import { flowHashOf } from './flow-hash.ts';

const frameBytes = 60;
const place = { ttl: 22, source: 26, udpSource: 34, udpLength: 38, udpChecksum: 40, psn: 51 } as const;

function hashWith(changes: Partial<Record<keyof typeof place, number>>): number {
  const frame = new Uint8Array(frameBytes);
  frame.set([0x08, 0x00, 0x45], 12);
  frame[23] = 17;
  frame.set([10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0x00, 0x12, 0xb7], place.source);
  for (const [name, value] of Object.entries(changes)) frame[place[name as keyof typeof place]] = value;
  return flowHashOf(frame, frameBytes, 1);
}

it('RFC 2992: the hash of a flow covers addresses and ports, and nothing that differs between its packets', () => {
  const flow = hashWith({});
  for (const changes of [{ ttl: 3 }, { udpLength: 1 }, { udpChecksum: 9 }, { psn: 7 }])
    expect(hashWith(changes)).toBe(flow);
  for (const changes of [{ source: 11 }, { udpSource: 0xc1 }]) expect(hashWith(changes)).not.toBe(flow);
});
