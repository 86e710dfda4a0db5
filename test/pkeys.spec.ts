/** P_Key tables of simulated hosts: set as a subnet manager sets them, matched by the rules of IBTA volume 1, 10.9.3, and in every BTH. */
import { describe, expect, it, vi } from 'vitest';
import { packetsIn, readCapture } from '../analyser/capture/index.ts';
import { pkeyPairs as rows } from '../hw/management/testing/pkey-pairs.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, programsOf, runPrograms, smallMachine } from './machines.ts';
import type { PkeyPairs } from './programs/partitions.ts';

vi.setConfig({ testTimeout: 120_000 });

describe('P_Key tables', () => {
  it('IBTA 10.9.3: let packets of one partition with a full member pass, and count the rest at the receiver', async () => {
    const pairs: PkeyPairs = rows.map(([near, far]) => [near, far]);
    const analysis = { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 20 } };
    await using machine = await smallMachine({ analysis });
    for (const program of programsOf('partitions', 'members', pairs as never)) await machine.load(program);
    await machine.run();
    expectBalanced(await machine.report());
    const [near, far] = await machine.results<[string, number, number, string[]][][]>();
    let violations = 0;
    rows.forEach(([own, other, isOne], at) => {
      // The request and one retry.
      if (!isOne) violations += 2;
      expect(near![at]!.slice(0, 3)).toEqual([isOne ? 'SUCCESS' : 'RETRY_EXC_ERR', 0, own]);
      expect(far![at]!.slice(1, 3)).toEqual([violations, other]);
      const isChanged = at === 0 || rows[at - 1]![1] !== other;
      expect(far![at]![3]).toEqual(isChanged ? ['PKEY_CHANGE'] : []);
    });
    // IBTA 9.2: the P_Key is in bytes 2 and 3 of the BTH; in requests it is that of host 0's QP.
    const { packets } = packetsIn(readCapture(await machine.capture()));
    const sent = packets.filter(({ from, packet }) => from === 'LID 1' && packet.bth.opcode === 0x0a);
    const expected = rows.flatMap(([own, , isOne]) => (isOne ? [own] : [own, own]));
    expect(sent.map(({ packet }) => packet.bth.partitionKey)).toEqual(expected);
  });

  it('IBTA 10.9, 14.2.5.7: of hosts that a switch does not admit to a partition do not carry packets past it', async () => {
    // Hosts 0 and 1 are in partition 1, host 2 is not.
    const nodes = [1, 1, 2].map((partition) => ({ kind: 'host' as const, partitions: [partition] }));
    const topology = {
      nodes: [...nodes, { kind: 'switch' as const }],
      links: [0, 1, 2].map((node) => ({ ends: [{ node }, { node: 3, port: node + 1 }] as const })),
    };
    // Both tables match; the switch knows better: a limited member passes, partition 2 does not, nor the default one.
    const pairs: PkeyPairs = [
      [0x8001, 0x8001],
      [0x0001, 0x8001],
      [0x8002, 0x8002],
      [0xffff, 0xffff],
    ];
    const reports: string[] = [];
    for (const partition of ['single', 'per-node'] as const) {
      await using machine = await smallMachine({ topology, partition });
      for (const program of programsOf('partitions', 'members', pairs as never)) await machine.load(program);
      await machine.run();
      const report = await machine.report();
      expectBalanced(report);
      reports.push(bytesOf(report));
      const [near, far] = await machine.results<[string, number, number, string[]][][]>();
      const refused = 'RETRY_EXC_ERR';
      expect(near!.map(([status]) => status)).toEqual(['SUCCESS', 'SUCCESS', refused, refused]);
      // No packet that violates a table reaches a host.
      expect(far!.map(([, violations]) => violations)).toEqual([0, 0, 0, 0]);
      // The request and one retry of each.
      const [own] = report.switches!;
      expect(own!.ports.map(({ notForwarded }) => notForwarded)).toEqual([{ inboundPkey: 4 }, {}, {}]);
    }
    expect(reports[1]).toBe(reports[0]);
  });

  it('sheet 7.6: are written across blocks of 32, and not beyond their end', async () => {
    const { results } = await runPrograms(programsOf('partitions', 'refusals').slice(0, 1));
    expect(results[0]).toEqual({
      length: 128,
      overTheEnd: 'EINVAL',
      tooLarge: 'EINVAL',
      none: 'EINVAL',
      acrossBlocks: 'ok',
      read: [0x8012, 0x8013, 0],
      places: [31, -1],
      beyond: 'EINVAL',
    });
  });

  it('sheet 3.13, 5.2: ibv_query_device_ex has the attributes of ibv_query_device, and its own', async () => {
    const { results } = await runPrograms(programsOf('partitions', 'attributes').slice(0, 1));
    // Counts and times of moderation have 16 bits; the golden answers' core clock is 427 MHz.
    expect(results[0]).toMatchObject({
      isSame: true,
      timestampBits: 48,
      hcaCoreClock: 427_000,
      cqModCaps: { maxCqCount: 0xffff, maxCqPeriod: 0xffff },
      maxDmSize: 0,
      physPortCntEx: 1,
    });
  });

  it('are fixed on Ethernet ports', async () => {
    const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' };
    const { results } = await runPrograms(programsOf('partitions', 'setting').slice(0, 1), { set });
    expect(results[0]).toBe('EOPNOTSUPP');
  });
});
