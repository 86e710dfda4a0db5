/** Inline receive by verbs: the same bytes in the same buffers, with fewer writes and without a key check, at the cost of a processor copy. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { Report } from '../machine/report/schema.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, type Outcome, programOf, runPrograms } from './machines.ts';
import { messageBytes, messages } from './programs/inline-receive.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const payloadOf = ({ nodes }: Report) => nodes[1]!.pcie.toHost.classes['payloadWrite'];

describe.each(eachPartition)('in partition %s', (partition) => {
  let plain: Outcome;
  let inlined: Outcome;
  beforeAll(async () => {
    const played = (inlRecvSz: number) =>
      runPrograms(
        [
          programOf('inline-receive', 'sender', 0),
          programOf('inline-receive', 'receiver', 1, { args: { inlRecvSz } }),
        ],
        { partition },
      );
    [plain, inlined] = [await played(0), await played(messageBytes)];
  });

  it('MLNX_OFED, libmlx4: delivers each message to the buffers of the list, in either way', () => {
    for (const { results, report } of [plain, inlined]) {
      expect(results[1]).toEqual({ right: messages });
      expectBalanced(report);
    }
  });

  it('is shown by the report: one write and no key for each message, where lists of three have three of each', () => {
    expect(plain.report.nodes[1]!.hca.inlineReceives).toBeUndefined();
    expect(inlined.report.nodes[1]!.hca.inlineReceives).toEqual({
      messages,
      bytes: messages * messageBytes,
    });
    expect([payloadOf(plain.report)!.tlps, payloadOf(inlined.report)!.tlps]).toEqual([
      3 * messages,
      messages,
    ]);
    const keysOf = ({ report }: Outcome): number => {
      const { hits, misses } = report.nodes[1]!.hca.caches['mpt']!;
      return hits + misses;
    };
    expect([keysOf(plain), keysOf(inlined)]).toEqual([3 * messages, 0]);
  });

  it('costs the receiver the copies', () => {
    const copyOf = ({ report }: Outcome): number =>
      report.nodes[1]!.cpu.cores.reduce((sum, { cycles }) => sum + cycles.copy, 0);
    expect(copyOf(plain)).toBe(0);
    expect(copyOf(inlined)).toBeGreaterThan(0);
  });
});
