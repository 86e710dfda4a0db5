import { describe, expect, it } from 'vitest';
import { explanationOf } from '../../cli/explain/explain.ts';
import { loadPrograms } from '../../experiments/runs/perf-run.ts';
import type { PerfArgs } from '../../experiments/workloads/perf-plan.ts';
import { parsedFault } from '../../machine/faults/index.ts';
import { Machine } from '../../machine/machine.ts';
import type { Timeline } from '../../machine/timeline/index.ts';
import { hostsWith, linkBetween, parsedTopology, type Topology } from '../../machine/topology/index.ts';
import { Opcode } from '../../wire/index.ts';
import { operationFlows } from './flows.ts';

const args = (changes: Partial<PerfArgs>): PerfArgs => ({
  ...{ verb: 'write', isLatency: true, sizeBytes: 64, iterations: 6, qpCount: 1, txDepth: 8, rxDepth: 8 },
  ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  ...changes,
});

/** Packets of 4096 bytes on Ethernet, too. */
const roce = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': 'v2',
  'ethernet.mtuBytes': 4200,
} as const;

describe('an operation step by step', () => {
  it.each([
    ['write', {}],
    ['read', { sizeBytes: 5000 }],
    ['atomic', { sizeBytes: 8 }],
    ['send', { usesEvents: true }],
  ] as const)('%s: its steps tile its time, whatever they are', async (verb, changes) => {
    const { steps, latencyPs, syndrome } = await explanationOf({}, args({ verb, ...changes }), 3);
    let afterPs = 0;
    for (const step of steps) {
      expect(step.afterPs).toBe(afterPs);
      expect(step.text).not.toBe('');
      for (const event of step.events) {
        expect(event.afterPs).toBeGreaterThanOrEqual(step.afterPs);
        expect(event.afterPs).toBeLessThanOrEqual(step.afterPs + step.durationPs);
      }
      afterPs += step.durationPs;
    }
    expect([afterPs, syndrome]).toEqual([latencyPs, undefined]);
  });

  it('takes as long as the program measured between its post and its completion', async () => {
    const read = args({ verb: 'read' });
    await using machine = await Machine.create();
    await loadPrograms(machine, read);
    await machine.run();
    const { READ } = (await machine.report()).operations;
    const latencies = await Promise.all([0, 1, 2, 3, 4, 5].map((op) => explanationOf({}, read, op)));
    const all = latencies.map(({ latencyPs }) => latencyPs);
    expect([Math.min(...all), Math.max(...all)]).toEqual([READ!.latencyPs!.min, READ!.latencyPs!.max]);
  });

  it('shows its packets, its payload and its CQE at their times', async () => {
    const { steps } = await explanationOf({}, args({ sizeBytes: 5000, mtuBytes: 2048 }), 2);
    const textsOf = (stage: string): string =>
      steps
        .find((step) => step.stage === stage)!
        .events.map(({ where, text }) => `${where}: ${text}`)
        .join('\n');
    expect(textsOf('payloadRead')).toContain('hca0 read: payloadRead');
    expect(textsOf('taken')).toMatch(/host0 to host: MWr cqe/);
    const all = steps.flatMap(({ events }) => events.map(({ text }) => text)).join('\n');
    // 5000 bytes at an MTU of 2048 are three packets.
    expect(all.match(/RC_RDMA_WRITE_(FIRST|MIDDLE|LAST)/g)).toHaveLength(3);
  });

  it('whose packet was lost names the ACK timeout as its longest wait', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=3')];
    const { steps, latencyPs } = await explanationOf({ faults }, args({ verb: 'read' }), 2);
    const timeout = steps.find(({ stage }) => stage === 'ackTimeout')!;
    expect(timeout.durationPs).toBeGreaterThan(latencyPs / 2);
    const texts = steps.flatMap(({ events }) => events.map(({ text }) => text)).join('\n');
    expect(texts).toContain('RC_RDMA_READ_REQUEST again');
  });

  it.each([
    ['pair', {}, 6],
    ['star:2', {}, 6],
    // Two further frames come before the first message.
    ['star:2', roce, 8],
  ] as const)(
    'says how many of its packets were lost and sent again, with either loss recovery: %s %j',
    async (topology, link, nth) => {
      // Messages of four packets: the sixth is the second one of message 1. Go-back-N sends the three from there on again.
      const four = args({ sizeBytes: 16_384, isLatency: false, iterations: 3, txDepth: 1 });
      const faults = [parsedFault(`packet=lost,node=0,nth=${nth}`)];
      const lossesWith = async (lossRecovery: string, op: number) => {
        const machine = {
          faults,
          set: { ...link, 'hca.lossRecovery': lossRecovery },
          ...(topology === 'pair' ? {} : { topology: parsedTopology(topology) }),
        };
        return (await explanationOf(machine, four, op)).losses;
      };
      expect(await lossesWith('go-back-n', 0)).toBeUndefined();
      expect(await lossesWith('go-back-n', 1)).toEqual({ lost: 1, corrupted: 0, repeated: 3 });
      expect(await lossesWith('selective-repeat', 1)).toEqual({ lost: 1, corrupted: 0, repeated: 1 });
    },
  );

  it.each(['RC', 'XRC', 'UC', 'UD'] as const)(
    'over %s it has the one packet that it sent, and none of the others around it',
    async (connection) => {
      const sends = args({ verb: 'send', isLatency: false, qpCount: 2, iterations: 12, connection });
      const { steps, others } = await explanationOf({}, sends, 9);
      const texts = steps.flatMap(({ events }) => events.map(({ text }) => text));
      const sent = texts.filter((text) => text.includes('_SEND_ONLY') && !text.includes('again'));
      expect(sent).toHaveLength(1);
      expect(others).toBeGreaterThan(2);
    },
  );

  it('rejects an operation that does not exist, and names the existing ones', async () => {
    await expect(explanationOf({}, args({}), 6)).rejects.toThrow('--op is 6, expected 0 to 5');
  });
});

describe('the packets of an operation', () => {
  /** Records of an operation and of packets, as hosts and devices produce them. */
  const flowsOf = (
    topology: Topology,
    ...rows: readonly (readonly [process: string, kind: string, values: readonly number[], track?: string])[]
  ) => {
    const records = rows.map(([process, kind, values, name = '']) => ({
      ...{ kind, values, atPs: 100, durationPs: 1000 },
      track: { process, name },
    }));
    const timeline = { topology, count: records.length, record: (index: number) => records[index]! };
    return operationFlows(timeline as unknown as Timeline).map(({ node, records: places }) => ({
      node,
      places,
    }));
  };
  const write = [0x208, 0, 0, 64, 0, 7, 1, 0x300] as const;
  const { RC_ACKNOWLEDGE, RC_RDMA_WRITE_ONLY } = Opcode;

  it('are those of any destination host, without others of the same numbers', () => {
    // Host 2 writes to QP 0x300 of host 0 by its port 2. At the same time, host 0's own QP 0x300 has a request to
    // host 1 with the same PSN in flight.
    const own = [0x300, 0, 0, 64, 0, 7, 1, 0x208] as const;
    const second = { node: 2, port: 1 };
    expect(
      flowsOf(
        hostsWith(3, [linkBetween(0, 1), { ends: [{ node: 0, port: 2 }, second] }]),
        ['hca2', 'operation', write],
        ['hca0', 'packet', [RC_RDMA_WRITE_ONLY, 0x300, 7], 'in, port 2'],
        ['hca2', 'packet', [RC_ACKNOWLEDGE, 0x208, 7]],
        ['hca0', 'operation', own],
        ['hca1', 'packet', [RC_RDMA_WRITE_ONLY, 0x208, 7]],
        ['hca0', 'packet', [RC_ACKNOWLEDGE, 0x300, 7]],
      ),
    ).toEqual([
      { node: 2, places: [0, 1, 2] },
      { node: 0, places: [3, 4, 5] },
    ]);
  });

  it('are those of the own port if its cable leads back to it', () => {
    const plug = hostsWith(1, [linkBetween(0, 0)]);
    expect(
      flowsOf(plug, ['hca0', 'operation', write], ['hca0', 'packet', [RC_RDMA_WRITE_ONLY, 0x300, 7]]),
    ).toEqual([{ node: 0, places: [0, 1] }]);
  });
});
