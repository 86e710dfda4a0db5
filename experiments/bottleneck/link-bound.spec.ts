import { describe, expect, it } from 'vitest';
import { withoutEffect } from '../../cli/perf/perf-options.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import type { PerfArgs } from '../workloads/perf-plan.ts';
import { resultOf } from '../workloads/perf-rates.ts';
import { isWithinLink, linkBound } from './link-bound.ts';

const args = (more: Partial<PerfArgs>): PerfArgs => ({
  verb: 'write',
  isLatency: false,
  sizeBytes: 1024,
  iterations: 1,
  qpCount: 1,
  txDepth: 1,
  rxDepth: 1,
  inlineBytes: 0,
  usesEvents: false,
  cqModeration: 1,
  mtuBytes: 1024,
  ...more,
});
const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
const config = configurationOf({ set: { 'wire.speed': 'QDR' } });
const { framingBytes } = config.wire;

describe('the bound of the link', () => {
  // 4X QDR carries 4e9 bytes per second. Around the payload: LRH 8, BTH 12, ICRC 4, VCRC 2; RETH 16, AETH 4.
  it.each<[Partial<PerfArgs>, number, number]>([
    [{}, 1024, 8 + 12 + 16 + 1024 + 4 + 2 + framingBytes],
    [{ sizeBytes: 1 }, 1, 8 + 12 + 16 + 4 + 4 + 2 + framingBytes],
    [{ sizeBytes: 2500 }, 2500, 2500 + 3 * (8 + 12 + 4 + 2 + framingBytes) + 16],
    [{ verb: 'send', sizeBytes: 2048 }, 2048, 2048 + 2 * (8 + 12 + 4 + 2 + framingBytes)],
    [{ verb: 'read', sizeBytes: 4096 }, 4096, 4096 + 4 * (8 + 12 + 4 + 2 + framingBytes) + 2 * 4],
    // UC has the headers of RC; a datagram adds a DETH of 8.
    [{ verb: 'send', connection: 'UC' }, 1024, 8 + 12 + 1024 + 4 + 2 + framingBytes],
    [{ verb: 'send', connection: 'UD' }, 1024, 8 + 12 + 8 + 1024 + 4 + 2 + framingBytes],
    [{ verb: 'send', connection: 'XRC' }, 1024, 8 + 12 + 4 + 1024 + 4 + 2 + framingBytes],
    [{ verb: 'read', connection: 'XRC' }, 1024, 8 + 12 + 4 + 1024 + 4 + 2 + framingBytes],
    // The request of an atomic: AtomicETH 28.
    [{ verb: 'atomic', sizeBytes: 8 }, 8, 8 + 12 + 28 + 4 + 2 + framingBytes],
    [{ sizeBytes: 4096, mtuBytes: 0 }, 4096, 8 + 12 + 16 + 4096 + 4 + 2 + framingBytes],
  ])('of %o is the share of payload in the message’s packets', (more, payload, linkBytes) => {
    expect(linkBound(config, args(more))).toBeCloseTo((4e9 * payload) / linkBytes, 0);
  });

  // 10 Gb/s carry 1.25e9 bytes per second. Around the BTH and everything after it: preamble 8, header 14, GRH 40 or
  // IPv4 20 and UDP 8, FCS 4, gap 12.
  it.each<['v1' | 'v2', Partial<PerfArgs>, number, number]>([
    ['v1', {}, 1024, 8 + 14 + 40 + 12 + 16 + 1024 + 4 + 4 + 12],
    ['v2', {}, 1024, 8 + 14 + 28 + 12 + 16 + 1024 + 4 + 4 + 12],
    ['v2', { sizeBytes: 2048, mtuBytes: 0 }, 2048, 2048 + 2 * (8 + 14 + 28 + 12 + 4 + 4 + 12) + 16],
  ])('of RoCE %s, %o, includes the frames', (roce, more, payload, linkBytes) => {
    const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': roce };
    expect(linkBound(configurationOf({ set }), args(more))).toBeCloseTo((1.25e9 * payload) / linkBytes, 0);
  });

  // Segments of IPv4 and TCP without options leave 1500 - 40 bytes; MPA's length and CRC take 6 of them, DDP's header 14
  // if tagged, else 18; an FPDU is padded to 4 bytes (RFC 5044, 4; RFC 5041, 4). Around it: preamble 8, header 14, FCS 4, gap 12.
  const around = 8 + 14 + 20 + 20 + 4 + 12;
  it.each<[string, Partial<PerfArgs>, number, number]>([
    ['WRITE', { sizeBytes: 1440 }, 1440, 2 + 14 + 1440 + 4 + around],
    ['WRITE', { sizeBytes: 1441 }, 1441, 2 + 14 + 1440 + 4 + around + (2 + 14 + 1 + 3 + 4) + around],
    ['SEND', { verb: 'send', sizeBytes: 1436 }, 1436, 2 + 18 + 1436 + 4 + around],
    ['SEND', { verb: 'send', sizeBytes: 1440 }, 1440, 1460 + around + (2 + 18 + 4 + 4) + around],
    ['READ', { verb: 'read', sizeBytes: 4320 }, 4320, 3 * (1460 + around)],
    ['WRITE', { sizeBytes: 65_536 }, 65_536, 45 * (1460 + around) + (2 + 14 + 736 + 4) + around],
    ['WRITE in both directions', { sizeBytes: 1440, isBidirectional: true }, 2 * 1440, 1460 + around],
  ])('of iWARP, %s of %o, includes segments and FPDUs', (_, more, payload, linkBytes) => {
    const bound = linkBound(configurationOf({ set: iwarp }), args({ mtuBytes: 0, ...more }));
    expect(bound).toBeCloseTo((1.25e9 * payload) / linkBytes, 0);
  });

  // Markers: 4 bytes in each 512 of the stream; a segment of 1460 bytes has at most 3 of them (RFC 5044, 4.3, 4.5).
  // Timestamps: 12 bytes of each segment (RFC 7323, appendix A).
  it.each<[object, number, number]>([
    [{ 'driver.tcpTimestamps': true }, 1428, 2 + 14 + 1428 + 4 + 12 + around],
    [{ 'driver.mpaMarkers': true }, 1428, ((2 + 14 + 1428 + 4) * 512) / 508 + around],
    [{ 'ethernet.mtuBytes': 9000 }, 8940, 2 + 14 + 8940 + 4 + around],
  ])('of iWARP with %o includes it', (set, payload, linkBytes) => {
    const config = configurationOf({ set: { ...iwarp, ...set } });
    const bound = linkBound(config, args({ sizeBytes: payload, mtuBytes: 0 }));
    expect(bound).toBeCloseTo((1.25e9 * payload) / linkBytes, 0);
  });

  it('of drawn lengths is that of the most efficient one: the number of draws is unknown', () => {
    const sizes = [64, 65_536, 1].map((bytes) => ({ bytes, weight: 1 }));
    const longest = linkBound(config, args({ sizeBytes: 65_536 }));
    expect(linkBound(config, args({ sizeBytes: 65_536, sizes }))).toBeCloseTo(longest, 0);
  });

  it('rejects a peak beyond it', () => {
    const bound = linkBound(config, args({}));
    const messagePs = (1024 / bound) * 1e12;
    const at = (factor: number) => resultOf(1024, 1, [0], [1], [messagePs * factor], 1);
    expect(isWithinLink(at(1), bound)).toBe(true);
    expect(isWithinLink(at(0.99), bound)).toBe(false);
  });
});

it('an option without effect in a test is named', () => {
  expect(withoutEffect('write-bw', { txDepth: 64, cqMod: 4 })).toEqual([]);
  expect(withoutEffect('write-bw', { rxDepth: 64 })).toEqual([
    'No effect: --rx-depth: only send tests receive.',
  ]);
  expect(withoutEffect('read-lat', { txDepth: 64, cqMod: 4 })).toEqual([
    expect.stringMatching(/^--tx-depth: a latency test .* size of the queues/),
    expect.stringMatching(/^No effect: --cq-mod: /),
  ]);
});
