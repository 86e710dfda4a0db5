import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../../base/bytes.ts';
import { configRequest } from '../function/function-bench.ts';
import { answer, linkPair, memoryRead, memoryWrite, onReceive, runPair } from '../link/link-bench.ts';
import type { PcieLinkPort } from '../link/link-port.ts';
import { ackNak, DLLP_UPDATE_FC_NP, updateFc, updateFcTypeOf } from './dllp.ts';
import { NON_POSTED, STATUS_UNSUPPORTED_REQUEST, TLP_KIND_NAMES } from './tlp.ts';
import { tlpHeaderOf } from './tlp-header.ts';
import { decodeTlpHeader, encodeTlpHeader, formatTlpHeader } from './tlp-layout.ts';

/** Header bytes, and the four dwords of the header log, of what `send` sends. */
function headerOf(send: (port: PcieLinkPort) => void): { hex: string; log: string } {
  const bench = linkPair();
  const seen = { hex: '', log: '' };
  onReceive(bench.host, (offset) => {
    seen.hex = toHex(encodeTlpHeader(bench.host.reader, offset));
    const log = tlpHeaderOf(bench.host.reader, offset).map((dword) => dword.toString(16).padStart(8, '0'));
    seen.log = log.join('').slice(0, seen.hex.length);
  });
  bench.device.completerId = 0x0100;
  send(bench.device);
  runPair(bench.deviceLp, bench.hostLp, 125_000, 1_000_000);
  return seen;
}

const zeros = new Uint8Array(256);

/** Bytes worked out by hand from figures 2-5, 2-13 … 2-29. */
const cases: [name: string, send: (port: PcieLinkPort) => void, hex: string][] = [
  [
    'a 32-bit memory read of 64 bytes: MRd, 16 DW, tag 0x2a, all bytes enabled',
    (port) =>
      memoryRead(port, {
        address: 0x1234_5000,
        trafficClass: 4,
        lengthBytes: 64,
        tag: 0x2a,
        requesterId: 0x0100,
      }),
    '00000010' + '01002aff' + '12345000',
  ],
  [
    'a 64-bit memory write of 6 bytes from byte 3: MWr, 3 DW, first enables 8, last 1, relaxed ordering',
    (port) =>
      memoryWrite(port, {
        address: 0x12_3456_7003,
        trafficClass: 5,
        source: zeros,
        lengthBytes: 6,
        flags: 2,
      }),
    '60002003' + '00000018' + '00000012' + '34567000',
  ],
  [
    'a completion with 256 bytes of 300 still to come: CplD, 64 DW',
    (port) =>
      answer(port, {
        tag: 0x2a,
        requesterId: 0x0008,
        trafficClass: 4,
        data: zeros.subarray(0, 256),
        byteCount: 300,
        address: 0x40,
      }),
    '4a000040' + '0100012c' + '00082a40',
  ],
  [
    'a refused request: Cpl, status 1, byte count 4',
    (port) =>
      answer(port, { tag: 7, requesterId: 0x0008, trafficClass: 12, status: STATUS_UNSUPPORTED_REQUEST }),
    '0a000000' + '01002004' + '00080700',
  ],
  [
    'a configuration read of BAR0: CfgRd0, 1 DW, bus 1',
    (port) => port.sendConfigRead({ ...configRequest(3), register: 0x10, requesterId: 0 }),
    '04000001' + '0000030f' + '01000010',
  ],
  [
    'a configuration write of one byte at 0x3d: CfgWr0, enable 2',
    (port) =>
      port.sendConfigWrite({
        ...configRequest(3),
        register: 0x3d,
        lengthBytes: 1,
        value: 0xff,
        requesterId: 0,
      }),
    '44000001' + '00000302' + '0100003c',
  ],
  [
    'Assert_INTB: Msg, local, code 0x21',
    (port) => port.sendMessage(0x21, 14, 0x0100),
    '34000000' + '01000021' + '00000000' + '00000000',
  ],
];

describe('a TLP header on the link', () => {
  it.each(cases)('PCIe 2.2: %s', (_, send, hex) => {
    const seen = headerOf(send);
    expect(seen.hex).toBe(hex);
    // The header log of the function, derived apart from it, agrees.
    expect(seen.log).toBe(hex);
  });

  it.each(cases)('PCIe 2.2: is decoded as what it is: %s', (name, _, hex) => {
    const decoded = decodeTlpHeader(fromHex(hex))!;
    expect(name.includes(TLP_KIND_NAMES[decoded.tlp]!) || decoded.kind === 'message').toBe(true);
    if (decoded.kind === 'memory64') {
      expect(decoded.fields).toMatchObject({
        addressHigh: 0x12,
        addressLow: 0x3456_7000,
        relaxedOrdering: 1,
      });
    }
    if (decoded.kind === 'completion') expect([256 + 44, 4]).toContain(decoded.fields.byteCount);
    if (decoded.kind === 'config') expect(decoded.fields.targetId).toBe(0x0100);
  });

  it('prints as a line of a trace', () => {
    expect(formatTlpHeader(fromHex('0000001001002aff12345000'))).toBe(
      'MRd lengthDwords=0x10 requesterId=0x100 tag=0x2a lastByteEnables=0xf firstByteEnables=0xf address=0x12345000',
    );
    expect(formatTlpHeader(fromHex('ff000000000000000000000000000000'))).toBe('unknown TLP');
  });
});

describe('a DLLP', () => {
  it('PCIe 3.4, figure 3-8: packs flow-control credits', () => {
    // HdrFC 0x40 in bits 21..14, DataFC 0x123 in bits 11..0.
    const bytes = updateFc.encode({ type: DLLP_UPDATE_FC_NP, headerCredits: 0x40, dataCredits: 0x123 });
    expect(toHex(bytes)).toBe('901001230000');
    expect(updateFcTypeOf(NON_POSTED)).toBe(DLLP_UPDATE_FC_NP);
  });

  it('PCIe 3.4, figure 3-6: packs a sequence number', () => {
    expect(toHex(ackNak.encode({ sequence: 0xabc }))).toBe('00000abc0000');
  });
});
