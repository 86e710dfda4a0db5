import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { CompareArgs } from '../../experiments/workloads/compare-plan.ts';
import { renderReport } from '../../explain/text/render.ts';
import { Machine } from '../machine.ts';
import { pairsOf } from '../topology/index.ts';
import { checksOf } from './checks.ts';
import type { HostLedger } from './host-ledger.ts';
import type { NicLedger } from './nic-ledger.ts';
import type { ChecksReport, Report } from './schema.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

type Mutable<T> = T extends object ? { -readonly [Key in keyof T]: Mutable<T[Key]> } : T;
interface Ledgers {
  hosts: Mutable<HostLedger>[];
  nics: Mutable<NicLedger>[];
}

/** A machine with NICs that moves a few messages by sockets, or by the system DMA controller. */
async function machineOf(path: 'sockets' | 'dma'): Promise<Machine> {
  const machine = await Machine.create({
    set: {
      'machine.adapter': 'nic',
      'machine.nicDriver': path === 'dma' ? 'none' : 'kernel',
      'host.memory.sizeMib': 64,
      'ethernet.lossPerMillion': 20_000,
      'net.stack.retransmitMinUs': 1_000,
    },
  });
  const args: CompareArgs = { path, sizeBytes: 3_000, totalBytes: 30_000, latencyRounds: 0, file: null };
  for (const [node, exportName] of ['compareSender', 'compareReceiver'].entries()) {
    const url = new URL('../../experiments/workloads/compare-sides.ts', import.meta.url);
    await machine.load({ node, run: { url, exportName }, args });
  }
  return machine;
}

const ledgers: Record<'sockets' | 'dma', Ledgers | undefined> = { sockets: undefined, dma: undefined };
let report: Report;

beforeAll(async () => {
  for (const path of ['sockets', 'dma'] as const) {
    await using machine = await machineOf(path);
    await machine.run();
    ledgers[path] = (await machine.ledgers()) as unknown as Ledgers;
    if (path === 'sockets') report = await machine.report();
  }
});

function checksAfter(path: 'sockets' | 'dma', corrupt: (ledgers: Ledgers) => void): ChecksReport {
  const copy = structuredClone(ledgers[path]!);
  corrupt(copy);
  return checksOf(pairsOf(2), copy.hosts, [], copy.nics);
}

/** Increments the count of this name. */
const more = (counts: Record<string, number>, name: string, by = 1): void => {
  counts[name] = (counts[name] ?? 0) + by;
};

const spoilers: {
  readonly [Name in keyof Omit<ChecksReport, 'balanced'>]: Record<string, (ledgers: Ledgers) => void>;
} = {
  cpu: { 'a cause': ({ hosts }) => hosts[0]!.cores[0]!.cycles.protocol++ },
  blocks: {
    'busy cycles': ({ nics }) => nics[0]!.blocks['nicTransmit']!.busyCycles++,
    'works that overlap': ({ nics }) => nics[1]!.blocks['nicReceive']!.overlaps++,
  },
  pcie: {
    'TLPs of a class': ({ hosts }) => hosts[0]!.pcie.received['frameRead']!.tlps--,
    'bytes that left memory': ({ hosts }) => hosts[0]!.memoryBus.deviceReads++,
    'bytes that entered memory': ({ hosts }) => hosts[1]!.memoryBus.deviceWrites--,
  },
  interrupts: {
    'causes raised': ({ nics }) => more(nics[0]!.counters, 'interruptsRaised', -1),
    'causes that became nothing': ({ nics }) => more(nics[0]!.counters, 'interruptsRaised', 5),
    'messages of a vector': ({ nics }) => nics[0]!.messages[0]!++,
    'messages sent': ({ nics }) => nics[0]!.vectors[0]!.delivered--,
    'interrupts handled': ({ hosts }) => hosts[0]!.interrupts[0]!.handled--,
    "the DMA controller's": ({ hosts }) => hosts[0]!.net!.systemDma.interrupts++,
  },
  wire: {
    'frames sent': ({ nics }) => more(nics[0]!.transmitted, 'frames'),
    'bytes sent': ({ nics }) => more(nics[0]!.transmitted, 'bytes'),
    'frames lost': ({ nics }) => more(nics[0]!.transmitted, 'lostFrames'),
    'frames received': ({ nics }) => more(nics[1]!.received, 'corruptedFrames'),
    'frames of the MAC': ({ nics }) => more(nics[1]!.counters, 'transmitFrames'),
  },
  operations: {
    'frames that arrived': ({ nics }) => more(nics[0]!.counters, 'arrivals'),
    'frames filtered': ({ nics }) => more(nics[0]!.counters, 'filtered'),
    'frames in host memory': ({ nics }) => more(nics[1]!.counters, 'delivered', -1),
    'frames on board': ({ nics }) => nics[1]!.bufferedFrames++,
    'frames at the driver': ({ hosts }) => more(hosts[1]!.net!.kernel, 'framesReceived', 9),
    'frames given by the driver': ({ hosts }) => more(hosts[0]!.net!.kernel, 'framesSent', -9),
    'bytes to programs': ({ hosts }) => more(hosts[1]!.net!.kernel, 'copiedOutBytes', 9),
  },
};

describe('the statistics of a machine with NICs', () => {
  it('balance', () => {
    for (const path of ['sockets', 'dma'] as const)
      expect(checksAfter(path, () => {})).toMatchObject({ balanced: true });
  });

  for (const [balance, counters] of Object.entries(spoilers)) {
    for (const [name, corrupt] of Object.entries(counters)) {
      it(`fail their balance of ${balance} if ${name} is wrong`, () => {
        const { balanced, ...checks } = checksAfter('sockets', corrupt);
        expect(balanced).toBe(false);
        const failed = Object.entries(checks).filter(([, { holds }]) => !holds);
        expect(failed.map(([check]) => check)).toContain(balance);
      });
    }
  }

  it.each([
    ['words of the DMA controller', ({ hosts }: Ledgers) => hosts[0]!.net!.systemDma.words++],
    ['words by hand', ({ hosts }: Ledgers) => more(hosts[1]!.net!.programmed, 'loadedBytes', 4)],
    ['frames by hand', ({ hosts }: Ledgers) => more(hosts[1]!.net!.programmed, 'framesReceived', 9)],
  ])('fail their balance of operations if %s are wrong', (_name, corrupt) => {
    expect(checksAfter('dma', corrupt).operations.holds).toBe(false);
  });

  it.each(['sockets', 'dma'] as const)('balance at every instant of a run by %s', async (path) => {
    await using machine = await machineOf(path);
    for (let stop = 0; stop < 30; stop++) {
      await machine.runTo(90e6 + stop * 21_123_457);
      const { balanced, ...checks } = (await machine.report()).checks;
      expect(Object.values(checks).flatMap(({ failures }) => failures)).toEqual([]);
      expect(balanced).toBe(true);
    }
  });
});

it('the rendering shows the NIC, its software and the memory bus', () => {
  const text = renderReport(report);
  for (const words of [
    'nic 0 → 1 FRAME',
    'kernel framesSent',
    'frameRead',
    'Bytes over the memory bus',
    'protocol',
  ])
    expect(text).toContain(words);
  expect(text).not.toContain('Caches of the HCA');
});
