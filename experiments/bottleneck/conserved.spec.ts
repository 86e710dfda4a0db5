/**
 * For random tests on random machines, cable and slot traffic is counted a second time from packets and their headers,
 * by tables of this spec alone; and no block is busy longer than the run.
 */
import { expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { rowsOf } from '../../test/extent.ts';
import runPerf from '../runs/perf-run.ts';
import { drawRun } from './testing/drawn-run.ts';
import { orderOf } from './testing/turning.ts';

/** IBTA 5.2 and 9: LRH 8, BTH 12, ICRC 4, VCRC 2 around each packet, in addition to the headers of its opcode. */
function headerBytesOf(opcode: string): number {
  const has = (pattern: RegExp, bytes: number): number => (pattern.test(opcode) ? bytes : 0);
  return (
    26 +
    has(/RDMA_WRITE_(FIRST|ONLY)|READ_REQUEST/, 16) +
    has(/COMPARE_SWAP|FETCH_ADD/, 28) +
    has(/ACKNOWLEDGE|READ_RESPONSE_(FIRST|LAST|ONLY)/, 4) +
    has(/ATOMIC_ACKNOWLEDGE/, 8) +
    has(/^UD_/, 8) +
    has(/WITH_IMMEDIATE/, 4) +
    // For XRC requests, each of which names its SRQ.
    (/^XRC_/.test(opcode) && !/ACKNOWLEDGE|RESPONSE/.test(opcode) ? 4 : 0)
  );
}

it.each(
  rowsOf(
    [1, 2, 3, 4],
    Array.from({ length: 36 }, (_, index) => 5 + index),
  ),
)('bytes are those of packets and headers, and shares at most the whole, of seed %i', async (seed) => {
  const run = drawRun(seed);
  const order = orderOf(run);
  const { report, elapsedPs, cores, result } = await runPerf({ ...order, isReported: true });
  const { sizeBytes } = order.args;
  const config = configurationOf(order.machine);
  const words = JSON.stringify(run);
  for (const cable of report!.wire) {
    expect(cable.busyPs, words).toBeLessThanOrEqual(elapsedPs);
    let bytes = 0;
    for (const [opcode, row] of [...Object.entries(cable.opcodes), ...Object.entries(cable.retransmitted)]) {
      const padding = /_(ONLY|LAST)/.test(opcode) ? (4 - (sizeBytes % 4)) % 4 : 0;
      const packetBytes = headerBytesOf(opcode) + padding;
      expect(row.bytes, `${opcode} ${words}`).toBe(row.packets * packetBytes + row.payloadBytes);
      bytes += row.bytes;
    }
    expect(cable.bytes, words).toBe(bytes);
  }
  for (const { pcie } of report!.nodes)
    for (const direction of [pcie.toDevice, pcie.toHost]) {
      expect(direction.busyPs, words).toBeLessThanOrEqual(elapsedPs);
      expect(direction.linkBytes, words).toBeGreaterThanOrEqual(direction.total.bytes);
    }
  // Every requested byte, including the warm-up's.
  const {
    iterations,
    qpCount,
    warmupIterations = 0,
    isBidirectional,
    verb,
    connection,
    threads = 1,
  } = order.args;
  const ways = isBidirectional === true ? 2 : 1;
  const payload = (iterations + warmupIterations) * qpCount * ways * sizeBytes;
  const rows = report!.wire.flatMap(({ opcodes }) => Object.entries(opcodes));
  const carried = rows
    .filter(([opcode]) => !opcode.includes('ATOMIC') && !opcode.includes('FETCH'))
    .reduce((sum, [, { payloadBytes }]) => sum + payloadBytes, 0);
  // A sender without acknowledgements marks the end of warm-up and test by a message with immediate data.
  const marks = rows.reduce(
    (sum, [opcode, { packets }]) => sum + (/IMMEDIATE/.test(opcode) ? packets : 0),
    0,
  );
  const isUnreliableSend = verb === 'send' && (connection === 'UC' || connection === 'UD');
  expect(marks, words).toBe(isUnreliableSend ? 2 * threads : 0);
  if (verb !== 'atomic') expect(carried, words).toBe(payload + marks * sizeBytes);
  const { durationPs } = result as { readonly durationPs: number };
  for (const { cycles } of cores!) {
    const worked = Object.values(cycles).reduce((sum, count) => sum + count, 0);
    expect(worked, words).toBeLessThanOrEqual(
      1.01 * ((durationPs * config.host.core.clockMHz) / 1e6) + 10_000,
    );
  }
});
