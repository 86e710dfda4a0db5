/**
 * Speed and width of a link by the offsets and codes of IBTA volume 1, 14.2.5.6 and 15.2.5.16, written out here: nothing of the layouts
 * is used.
 */
import { describe, expect, it } from 'vitest';
import type { WireConfig } from '../../../wire/index.ts';
import { broughtUp, must } from '../testing/bring-up.ts';

const [get, set] = [0x01, 0x02];
const [portInfo, vendorPortInfo] = [0x15, 0xff90];
const dataAt = 0x40;

/** A MAD of subnet management to port 1; the answer's attribute. */
function smpOf(bench: ReturnType<typeof broughtUp>, method: number, attribute: number, data?: Uint8Array) {
  const request = new Uint8Array(256);
  request.set([1, 0x01, 1, method]);
  const view = new DataView(request.buffer);
  view.setUint16(0x10, attribute);
  view.setUint32(0x14, 1);
  if (data !== undefined) request.set(data, dataAt);
  const handling = { portNumber: 1, checksMkey: false, cycle: bench.cycle };
  const answer = bench.commandSet.state.parts.agents.handle(request, handling) as Uint8Array;
  expect([answer[4], answer[5]]).toEqual([0, 0]);
  return answer.slice(dataAt, dataAt + 64);
}

/** Rate of the path from port 1 to itself, as its embedded subnet manager answers a PathRecord by the source LID. */
function pathRate(bench: ReturnType<typeof broughtUp>): number {
  const mad = new Uint8Array(256);
  const view = new DataView(mad.buffer);
  mad.set([1, 3, 2, get]);
  view.setUint16(0x10, 0x35);
  view.setBigUint64(0x30, (1n << 4n) | (1n << 5n));
  view.setUint16(0x38 + 40, 1);
  view.setUint16(0x38 + 42, 1);
  expect(bench.control.management.managers[0]!.answer(mad)).toBe(true);
  return mad[0x38 + 55]! & 0x3f;
}

function linkUp(link: Pick<WireConfig, 'speed' | 'lanes'>) {
  const bench = broughtUp({}, {}, [0, 1], link);
  must(bench, 'INIT_PORT', { inputModifier: 1 });
  bench.cable.set(true);
  bench.run();
  return bench;
}

describe('the link of a port', () => {
  // Supported, enabled and active speeds; the same extended; bit 14 of the capabilities: extended speeds; rate of 4X.
  it.each([
    ['SDR', 1, 1, 0, 0, 0, 0, 3],
    ['DDR', 3, 2, 0, 0, 0, 0, 6],
    ['QDR', 7, 4, 0, 0, 0, 0, 7],
    ['FDR10', 7, 4, 0, 0, 0, 0, 7],
    ['FDR', 7, 4, 1, 1, 1, 0, 12],
    ['EDR', 7, 4, 3, 2, 1, 0, 16],
    ['HDR', 7, 4, 7, 4, 1, 0x20, 17],
    ['NDR', 7, 4, 15, 8, 1, 0x420, 21],
  ] as const)('IBTA 14.2.5.6: has the speeds of its cable in PortInfo: %s', (speed, ...expected) => {
    const [supported, active, extended, extendedActive, isExtended, mask2, rate] = expected;
    const bench = linkUp({ speed, lanes: '4' });
    const info = smpOf(bench, get, portInfo);
    const view = new DataView(info.buffer);
    expect([info[32]! >> 4, info[35]! & 15, info[35]! >> 4]).toEqual([supported, supported, active]);
    expect([info[62]! & 15, info[63]! & 31, info[62]! >> 4]).toEqual([extended, extended, extendedActive]);
    expect([(view.getUint32(20) >>> 14) & 1, view.getUint16(60)]).toEqual([isExtended, mask2]);
    // CapabilityMask2 is valid.
    expect((view.getUint32(20) >>> 15) & 1).toBe(mask2 === 0 ? 0 : 1);
    expect(smpOf(bench, get, vendorPortInfo)[15]).toBe(speed === 'FDR10' ? 1 : 0);
    expect(must(bench, 'QUERY_PORT', { inputModifier: 1, outBytes: 256 }).outBox[4]! & 15).toBe(active);
    expect(pathRate(bench)).toBe(rate);
  });

  it.each([
    ['1', 1, 1, 3],
    // 2X is of release 1.4: bit 4 (Linux include/rdma/ib_verbs.h, IB_WIDTH_2X).
    ['2', 17, 16, 6],
    ['4', 3, 2, 7],
    ['8', 7, 4, 9],
    ['12', 11, 8, 10],
  ] as const)(
    'IBTA 14.2.5.6: has the width of its cable in PortInfo: %sX',
    (lanes, supported, active, rate) => {
      const bench = linkUp({ speed: 'QDR', lanes });
      expect([...smpOf(bench, get, portInfo).subarray(29, 32)]).toEqual([supported, supported, active]);
      expect(must(bench, 'QUERY_PORT', { inputModifier: 1, outBytes: 256 }).outBox[6]).toBe(supported & 15);
      expect(pathRate(bench)).toBe(rate);
    },
  );

  it.each([
    // 2.5, 5, 10, 20 and 30 Gb/s (Linux include/rdma/ib_verbs.h, enum ib_rate).
    ['SDR', 2, 5, 3, 6, 4],
    ['FDR', 11, 19, 12, 13, 14],
    ['EDR', 15, 20, 16, 17, 18],
    ['HDR', 20, 16, 17, 21, 22],
    ['NDR', 16, 17, 21, 23, 24],
  ] as const)('IBTA 15.2.5.16: has the rate of its width in path records: %s', (speed, ...codes) => {
    const rates = (['1', '2', '4', '8', '12'] as const).map((lanes) => pathRate(linkUp({ speed, lanes })));
    expect(rates).toEqual(codes);
  });

  it('IBTA 14.2.5.6: enables what a manager sets, 0 changes nothing, all bits are what is supported', () => {
    const bench = linkUp({ speed: 'EDR', lanes: '4' });
    const enabled = (width: number, speed: number, extended: number): number[] => {
      const info = smpOf(bench, get, portInfo);
      info[29] = width;
      info[32] = info[32]! & 0xf0;
      info[33] = 0;
      info[35] = (info[35]! & 0xf0) | speed;
      info[63] = extended;
      const answer = smpOf(bench, set, portInfo, info);
      return [answer[29]!, answer[35]! & 15, answer[63]! & 31];
    };
    expect(enabled(2, 4, 2)).toEqual([2, 4, 2]);
    expect(enabled(0, 0, 0)).toEqual([2, 4, 2]);
    expect(enabled(255, 15, 31)).toEqual([3, 7, 3]);
  });
});
