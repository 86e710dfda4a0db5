import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../base/parameter.ts';
import type { LinkFraming } from './link-framing.ts';
import { framingOf, linkGenerations } from './link-framings.ts';
import { linkParameters } from './link-parameters.ts';
import { LinkSerializer, linkRateOf } from './link-rate.ts';

const defaults = defaultsOf(linkParameters);

describe('the framing of a link', () => {
  it.each([
    // STP and END, sequence number, LCRC; SDP and END around six bytes.
    [[1, 2], 2 + 2 + 4, 1 + 6 + 1],
    // The STP token that contains the sequence number, LCRC; the SDP token and six bytes.
    [[3, 4, 5], 4 + 4, 2 + 6],
  ])(
    'PCIe 3.5.2, 4.2: uses 8 bytes around a TLP and for a DLLP, in different arrangements: generations %j',
    (served, tlp, dllp) => {
      for (const generation of served) {
        const { tlpBytes, dllpBytes } = framingOf(generation);
        expect([tlpBytes, dllpBytes]).toEqual([tlp, dllp]);
      }
    },
  );

  it('covers the generations for which a link may be configured, each once', () => {
    expect(linkGenerations).toEqual([1, 2, 3, 4, 5]);
    expect([linkParameters.generation.min, linkParameters.generation.max]).toEqual([1, 5]);
  });

  it('may consist of flits, whose DLLPs have separate room: the rate and the lanes need nothing else', () => {
    // PCIe 6.0: 64 GT/s without a line code; 236 of a flit's 256 bytes are for TLPs, the rest for DLLPs, CRC and FEC.
    const flits: LinkFraming = {
      megatransfers: new Map([[6, 64_000]]),
      code: { useful: 236, sent: 256 },
      skipShare: () => ({ useful: 1, sent: 1 }),
      tlpBytes: 0,
      dllpBytes: 0,
    };
    const rate = linkRateOf({ ...defaults, generation: 6, lanes: 16 }, flits);
    expect(rate.gigabitsPerSecond).toBeCloseTo((64 * 16 * 236) / 256, 9);
    const lanes = new LinkSerializer(rate, 4, flits.dllpBytes);
    // 236 bytes need the 2 ns of a flit of 256 bytes at 128 GB/s, regardless of DLLPs.
    expect(lanes.sendTlp(0, 236)).toBe(2000);
    lanes.passDllp(0);
    expect(lanes.sendTlp(0, 236)).toBe(4000);
  });
});
