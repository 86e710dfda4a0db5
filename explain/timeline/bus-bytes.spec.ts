/**
 * Bytes and TLPs on PCIe as the report counts them, by direction and class, for random tests on random machines;
 * compared with a second count from the TLPs themselves, and with the payload of the packets on the cable.
 * BUS_SEEDS=from..to runs others.
 */
import { describe, expect, it } from 'vitest';
import { drawShortRun, type ShortRun } from '../../experiments/bottleneck/testing/short-run.ts';
import type { PerfArgs } from '../../experiments/workloads/index.ts';
import type { Report } from '../../machine/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import type { TimelineRecord } from '../../machine/timeline/index.ts';
import { rowsOf } from '../../test/extent.ts';
import { addAt } from './testing/add-at.ts';
import { BusCount } from './testing/bus-count.ts';
import { playedRun, type RecordedRun, recordedRun } from './testing/recorded-run.ts';
import { seedsOf } from './testing/seeds.ts';

const messages = 100;

/** Packets and payload in one direction of the cable, optionally including retransmitted ones. */
function carried(report: Report, from: number, opcode: RegExp, isAll: boolean) {
  const cable = report.wire.find((each) => each.from === from)!;
  const rows = [
    ...Object.entries(cable.opcodes),
    ...(isAll ? Object.entries(cable.retransmitted) : []),
  ].filter(([name]) => opcode.test(name));
  return {
    packets: rows.reduce((sum, [, row]) => sum + row.packets, 0),
    payloadBytes: rows.reduce((sum, [, row]) => sum + row.payloadBytes, 0),
  };
}

/** Payload read from and written to memory, computed from the cable's traffic; undefined if the traffic does not determine it. */
function payloadDue(report: Report, node: number, args: PerfArgs) {
  const { sizeBytes, sizes, inlineBytes, connection } = args;
  const isSentOnce = report.wire.every(({ retransmitted }) => Object.keys(retransmitted).length === 0);
  const shortest = sizes === undefined ? sizeBytes : Math.min(...sizes.map(({ bytes }) => bytes));
  const [sent, answered] = [/SEND|WRITE/, /READ_RESPONSE/].map(
    (opcode) => carried(report, node, opcode, true).payloadBytes,
  );
  const atomics = (from: number): number => carried(report, from, /ATOMIC_ACKNOWLEDGE/, true).packets;
  const isInline = sizeBytes <= inlineBytes;
  const isSaid = isSentOnce && (isInline || shortest > inlineBytes);
  const taken = carried(report, node ^ 1, /SEND|WRITE|READ_RESPONSE/, true).payloadBytes;
  return {
    read: isSaid ? (isInline ? 0 : sent!) + answered! + 8 * atomics(node) : undefined,
    // A GRH precedes a datagram in memory.
    written: isSentOnce && connection !== 'UD' ? taken + 8 * (atomics(node) + atomics(node ^ 1)) : undefined,
  };
}

const countOf = ({ timeline, config }: RecordedRun): BusCount =>
  new BusCount({ records: timeline.records(), config });

const seeds = seedsOf(
  'BUS_SEEDS',
  rowsOf(
    [3, 6, 12, 41],
    Array.from({ length: 16 }, (_, index) => 50 + index),
  ),
);

it.each(seeds)('every TLP is billed as it is, and what is billed is a TLP, of seed %i', async (seed) => {
  const run = drawShortRun(seed, messages);
  const words = JSON.stringify(run);
  const { report } = await playedRun(run);
  const recorded = await recordedRun(run, ['tlps']);
  // Without a timeline, the receivers process whole streams at once.
  expect(JSON.stringify(recorded.report), words).toBe(JSON.stringify(report));
  const count = countOf(recorded);
  expect(count.againstReport(report), words).toEqual([]);
  for (const [node, { hca }] of report.nodes.entries()) {
    const { send, arm, eventQueue } = hca.doorbells;
    expect(count.sumOf(node, 'toDevice', 'doorbell').tlps, words).toBe(send! + arm! + eventQueue!);
    const due = payloadDue(report, node, recorded.args);
    const read = count.sumOf(node, 'toDevice', 'payloadRead').payloadBytes;
    const written = count.sumOf(node, 'toHost', 'payloadWrite').payloadBytes;
    expect(read, words).toBe(due.read ?? read);
    expect(written, words).toBe(due.written ?? written);
  }
});

describe('the count of a bus finds', () => {
  const run: ShortRun = {
    fields: { test: 'read-bw', size: 3000, qps: 2, iters: 8 },
    set: { 'pcie.link.packetAlignmentBytes': 4 },
    faults: [],
  };
  let made: Promise<RecordedRun> | undefined;
  const given = () => (made ??= recordedRun(run, ['tlps']));

  /** The failures after the report's number at one place of node 0 was changed. */
  async function withFigure(path: string, by: number): Promise<string> {
    const recorded = await given();
    const report = structuredClone(recorded.report);
    addAt(report.nodes[0]!.pcie, path.split('.'), by);
    return countOf(recorded).againstReport(report).join('; ');
  }

  it.each([
    ['toDevice.total.tlps', 0, /^$/],
    ['toHost.classes.cqe.bytes', 1, /toHost cqe bytes/],
    ['toDevice.classes.wqeRead.tlps', -1, /toDevice wqeRead TLPs/],
    ['toDevice.total.tlps', 1, /toDevice TLPs/],
    ['toHost.linkBytes', 4000, /toHost: \d+ bytes of Acks/],
    ['toHost.busyPs', 1_000_000_000, /toHost: busy/],
  ] as const)('%s that is %i more', async (path, by, words) => {
    expect(await withFigure(path, by)).toMatch(words);
  });

  const tlp = (type: number, values: readonly number[], atPs: number, name: string): TimelineRecord => ({
    ...{ kind: 'tlp', atPs, durationPs: 10, trackNumber: 0, values: [type, ...values] },
    track: { process: 'hca0', group: 'pcie', name },
  });
  const read = (bytes: number, address: number, atPs: number): TimelineRecord =>
    tlp(2, [address, bytes, 5, 4, 0], atPs, 'to host');
  const data = (bytes: number, lowerAddress: number, left: number, atPs: number, tag = 5): TimelineRecord =>
    tlp(3, [lowerAddress, bytes, tag, 4, left], atPs, 'to device');

  it.each([
    [
      'nothing in an answer of two parts',
      [read(100, 32, 0), data(32, 32, 100, 20), data(68, 64, 68, 40)],
      /^$/,
    ],
    ['a part that ends off the boundary', [read(100, 32, 0), data(40, 32, 100, 20)], /ends at 72/],
    ['a wrong byte count', [read(100, 32, 0), data(32, 32, 96, 20)], /byte count 96, 100/],
    ['a wrong lower address', [read(100, 32, 0), data(32, 0, 100, 20)], /lower address 0 for 32/],
    ['an answer to nobody', [data(32, 32, 32, 20)], /which is free/],
    ['a tag that is taken', [read(8, 0, 0), read(8, 8, 20)], /is taken twice/],
    ['a read beyond MRRS', [read(1024, 0, 0)], /1024 bytes, 512 at most/],
    ['a read across 4 KiB', [read(64, 4064, 0)], /crosses a boundary/],
    ['two TLPs at once', [read(8, 0, 0), tlp(2, [8, 8, 6, 4, 0], 5, 'to host')], /taken until 10/],
  ] as const)('%s', (_, records, words) => {
    const config = configurationOf({ set: { 'pcie.enumeration.maxReadRequestBytes': 512 } });
    expect(new BusCount({ records, config }).failures.join('; ')).toMatch(words);
  });
});
