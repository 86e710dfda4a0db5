import { describe, expect, it } from 'vitest';
import { linkBench } from './link-bench.ts';
import { MEMORY_WRITE, PAYLOAD_OFFSET, POSTED } from './tlp.ts';

describe('a link port', () => {
  it('delivers a 64 byte write after its serialisation and the latency', () => {
    const bench = linkBench();
    const source = Uint8Array.from({ length: 64 }, (_, at) => at);
    bench.device.sendMemoryWrite(0x1000, 5, source, 0, 64);
    bench.run(1_000_000);
    // 12 B header + 64 B + 8 B framing = 84 B; Gen3 x8: 8e12 / (64e9 × 128/130 × 369/370) = 127.2971 ps per byte: 10,692.96.
    expect(bench.atHost).toEqual([{ kind: MEMORY_WRITE, timePs: 125_000 + 10_693, bytes: [...source] }]);
    expect(bench.host.receiver.received.linkBytes[5]).toBe(84);
    expect(PAYLOAD_OFFSET).toBe(64);
    expect(bench.device.transmitter.tlpCount[POSTED]).toBe(1);
  });
});
