/** Costs of a marked operation: each TLP, interrupt, system call and cycle has exactly one owner. */
import { beforeAll, describe, expect, it } from 'vitest';
import { trafficClassNames } from '../hw/dma/index.ts';
import type { DeviceCost, OperationCost, OtherCost } from '../machine/costs/index.ts';
import { Machine, type MachineOptions } from '../machine/machine.ts';
import type { Report } from '../machine/report/schema.ts';
import { bothPartitions, programOf, runPrograms, smallMachine } from './machines.ts';

interface Played {
  readonly operations: readonly OperationCost[];
  readonly others: readonly OtherCost[];
  readonly report: Report;
  readonly results: readonly unknown[];
}

async function play(options: MachineOptions = {}): Promise<Played> {
  await using machine = await smallMachine({ attributesCosts: true, ...options });
  await machine.load(programOf('marked', 'client', 0));
  await machine.load(programOf('marked', 'server', 1));
  await machine.run();
  const { operations, others } = await machine.operationCosts();
  return { operations, others, report: await machine.report(), results: await machine.results() };
}

let played: Played;
const costOf = (name: string): OperationCost => played.operations.find((cost) => cost.name === name)!;

beforeAll(async () => {
  played = await play();
});

describe('the cost of a marked operation', () => {
  it('of a WRITE of 256 bytes is a doorbell, a read of the WQE and one of the payload, a CQE', () => {
    expect(costOf('write')).toMatchObject({
      ...{ workRequests: 1, mmioWrites: 1, mmioReads: 0, systemCalls: 0, interrupts: 0 },
      ...{ dmaReads: 2, readTlps: { wqeRead: 1, payloadRead: 1 } },
      ...{ dmaWrites: 1, writeTlps: { cqe: 1 } },
      peer: { dmaReads: 0, dmaWrites: 1, writeTlps: { payloadWrite: 1 }, interrupts: 0 },
    });
  });

  it('of an inlined WRITE of 16 bytes is its WQE of 64 bytes in the BlueFlame register: nothing is read', () => {
    expect(costOf('inline')).toMatchObject({
      ...{ mmioWrites: 1, dmaReads: 0, dmaWrites: 1 },
      peer: { dmaWrites: 1 },
    });
  });

  it('of a READ, posted by BlueFlame, has the payload read at the peer and written here', () => {
    expect(costOf('read')).toMatchObject({
      ...{ mmioWrites: 1, readTlps: {}, writeTlps: { payloadWrite: 1, cqe: 1 } },
      peer: { readTlps: { payloadRead: 1 }, dmaWrites: 0 },
    });
  });

  it('of 8 KiB has a TLP for each 512 bytes read and 256 written (MRRS, MPS), in four packets', () => {
    const { maxReadRequestBytes, maxPayloadBytes } = played.report.config.pcie.enumeration;
    expect(costOf('large')).toMatchObject({
      readTlps: { wqeRead: 1, payloadRead: 8192 / maxReadRequestBytes },
      peer: { writeTlps: { payloadWrite: 8192 / maxPayloadBytes } },
    });
  });

  it('of an atomic has memory read and written at the peer', () => {
    expect(costOf('atomic')).toMatchObject({
      writeTlps: { payloadWrite: 1, cqe: 1 },
      peer: { readTlps: { payloadRead: 1 }, writeTlps: { payloadWrite: 1 } },
    });
  });

  it("of a SEND has the receiver's CQE at the peer", () => {
    expect(costOf('send').peer.writeTlps).toEqual({ payloadWrite: 1, cqe: 1 });
  });

  it('of a list of four is one doorbell and one CQE', () => {
    expect(costOf('list')).toMatchObject({
      ...{ workRequests: 4, mmioWrites: 1, writeTlps: { cqe: 1 } },
      readTlps: { payloadRead: 4 },
      peer: { writeTlps: { payloadWrite: 4 } },
    });
  });

  it('that waits for an event has the arm request, the EQE, the interrupt and the system calls', () => {
    const event = costOf('event');
    expect(event).toMatchObject({ mmioWrites: 2, interrupts: 1, writeTlps: { cqe: 1, eqe: 1 } });
    expect(event.systemCalls).toBeGreaterThan(0);
    expect(event.cycles.systemCall).toBeGreaterThan(0);
  });

  it('of a registration is commands of the kernel: system calls and registers, no work request', () => {
    const registration = costOf('registration');
    expect(registration.systemCalls).toBe(1);
    expect(registration.mmioWrites).toBeGreaterThan(3);
    expect(registration.mmioReads).toBeGreaterThan(0);
    expect(registration).toMatchObject({ workRequests: 0, dmaReads: 0 });
  });

  it('of nothing is nothing', () => {
    expect(costOf('nothing')).toMatchObject({
      ...{ workRequests: 0, mmioWrites: 0, mmioReads: 0, systemCalls: 0, cpuCycles: 0 },
      ...{ dmaReads: 0, dmaWrites: 0, interrupts: 0, peer: { dmaReads: 0, dmaWrites: 0, interrupts: 0 } },
    });
  });

  it('that only posts has the TLPs of its posted requests, also if another operation takes the completion', () => {
    expect(costOf('posts')).toMatchObject({ mmioWrites: 1, dmaReads: 2, dmaWrites: 1 });
    expect(costOf('reaps')).toMatchObject({ mmioWrites: 0, dmaReads: 0, dmaWrites: 0, workRequests: 0 });
    expect(costOf('posts').cycles.post).toBeGreaterThan(0);
    expect(costOf('reaps').cycles.poll).toBeGreaterThan(0);
  });

  it('is cycles of its thread: at most those that passed while it was open', () => {
    const { clockMHz } = played.report.config.host.core;
    for (const { name, cpuCycles, beganPs, endedPs } of played.operations)
      expect((cpuCycles * 1e6) / clockMHz, name).toBeLessThanOrEqual(Number(endedPs) - Number(beganPs));
    const { beganPs, endedPs, cpuCycles } = costOf('write');
    // A program that spins is never idle.
    expect((cpuCycles * 1e6) / clockMHz).toBe(Number(endedPs) - Number(beganPs));
  });
});

/** TLPs to the host by class: those of all owners together. */
function attributed(node: number): Record<string, number> {
  const sums: Record<string, number> = {};
  const add = ({ readTlps, writeTlps }: DeviceCost): void => {
    for (const tlps of [readTlps, writeTlps])
      for (const [name, count] of Object.entries(tlps)) sums[name] = (sums[name] ?? 0) + count;
  };
  for (const cost of played.operations) add(cost.node === node ? cost : cost.peer);
  for (const other of played.others)
    if (other.node === node) {
      add(other.control);
      add(other.unmarked);
    }
  return sums;
}

describe('attribution', () => {
  it.each([0, 1])('owns every TLP that the link of host %i has counted, class by class', (node) => {
    const { toHost } = played.report.nodes[node]!.pcie;
    const counted = Object.fromEntries(
      trafficClassNames
        .filter((name) => !['register', 'config', 'message', 'msix'].includes(name))
        .flatMap((name) => {
          const tlps = toHost.classes[name]?.tlps ?? 0;
          return tlps === 0 ? [] : [[name, tlps]];
        }),
    );
    expect(attributed(node)).toEqual(counted);
  });

  it('owns every interrupt', () => {
    const { interrupts } = played.report.nodes[0]!;
    const delivered = interrupts.reduce((sum, { delivered }) => sum + delivered, 0);
    const owned = [...played.operations, ...played.others.filter(({ node }) => node === 0)].reduce(
      (sum, cost) =>
        sum + ('control' in cost ? cost.control.interrupts + cost.unmarked.interrupts : cost.interrupts),
      0,
    );
    expect(owned).toBe(delivered);
  });

  it('and marking change nothing: the report equals that of a machine without them byte for byte', async () => {
    const plain = await runPrograms([
      programOf('marked', 'unmarkedClient', 0),
      programOf('marked', 'server', 1),
    ]);
    expect(plain.results).toEqual(played.results);
    expect(JSON.stringify(plain.report)).toBe(JSON.stringify(played.report));
  });

  it('is the same with a timeline, a log and a capture of the cable', async () => {
    const analysis = {
      timeline: {},
      lint: true,
      packets: true,
      capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 20 },
    };
    const { operations, others, report } = await play({ analysis });
    expect(operations).toEqual(played.operations);
    expect(others).toEqual(played.others);
    expect(JSON.stringify(report)).toBe(JSON.stringify(played.report));
  });

  it.each(bothPartitions.slice(1))(
    'is the same in partition %s',
    async (partition) => {
      const { operations, others } = await play({ partition });
      expect(operations).toEqual(played.operations);
      expect(others).toEqual(played.others);
    },
    900_000,
  );

  it('is rejected if it is disabled, within another operation, with a NIC, and together with a race checker', async () => {
    await using machine = await smallMachine();
    await machine.load({ node: 0, run: ({ operation }) => operation('early', () => {}) });
    await expect(machine.run()).rejects.toThrow('attributesCosts');
    await expect(machine.operationCosts()).rejects.toThrow('attributesCosts');
    await using nested = await smallMachine({ attributesCosts: true });
    await nested.load({
      node: 0,
      run: ({ operation }) => operation('outer', () => operation('inner', () => {})),
    });
    await expect(nested.run()).rejects.toThrow('inside of outer');
    const nic = Machine.create({ attributesCosts: true, set: { 'machine.adapter': 'nic' } });
    await expect(nic).rejects.toThrow('machine.adapter=nic');
    await expect(Machine.create({ attributesCosts: true, watch: 'races' })).rejects.toThrow('races');
  });
});
