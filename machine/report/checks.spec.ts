import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { PerfArgs } from '../../experiments/workloads/perf-plan.ts';
import { renderReport } from '../../explain/text/render.ts';
import { Machine } from '../machine.ts';
import { pairsOf } from '../topology/index.ts';
import { checksOf } from './checks.ts';
import type { HcaLedger } from './hca-ledger.ts';
import type { HostLedger } from './host-ledger.ts';
import type { ChecksReport, Report } from './schema.ts';

// Whole simulations, some in worker threads on machines with few cores.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

type Mutable<T> = T extends object ? { -readonly [Key in keyof T]: Mutable<T[Key]> } : T;
interface Ledgers {
  hosts: Mutable<HostLedger>[];
  hcas: Mutable<HcaLedger>[];
}

let ledgers: Ledgers;
let report: Report;

/** The statistics of a run in which every counter has moved. */
beforeAll(async () => {
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 128, 'host.core.count': 2 } });
  const args: PerfArgs = {
    verb: 'write',
    isLatency: false,
    sizeBytes: 9000,
    iterations: 20,
    qpCount: 1,
    txDepth: 8,
    rxDepth: 1,
    inlineBytes: 0,
    usesEvents: true,
    mtuBytes: 0,
    cqModeration: 1,
  };
  for (const [node, exportName] of ['bandwidthClient', 'bandwidthServer'].entries()) {
    const url = new URL('../../experiments/workloads/perf-bandwidth.ts', import.meta.url);
    await machine.load({ node, run: { url, exportName }, args });
  }
  await machine.run();
  ledgers = (await machine.ledgers()) as unknown as Ledgers;
  report = await machine.report();
});

const checksAfter = (corrupt: (ledgers: Ledgers) => void): ChecksReport => {
  const copy = structuredClone(ledgers);
  corrupt(copy);
  copy.hosts.sort((left, right) => left.node - right.node);
  copy.hcas.sort((left, right) => left.node - right.node);
  return checksOf(pairsOf(2), copy.hosts, copy.hcas);
};

const firstOf = <T>(record: Record<string, T>): T => Object.values(record)[0]!;

const onePacket = { packets: 1, bytes: 30, payloadBytes: 0 };
const noMarks = { npEcnMarkedRocePackets: 0, npCnpSent: 0, rpCnpHandled: 0, rpCnpIgnored: 0 };
const noneRearranged = { lost: {}, copied: {}, heldBack: {}, letGo: {} };

/** Every counter that a balance uses, with the balance that must then fail. */
const spoilers: {
  readonly [Name in keyof Omit<ChecksReport, 'balanced'>]: Record<string, (ledgers: Ledgers) => void>;
} = {
  cpu: {
    'a cause': ({ hosts }) => hosts[0]!.cores[0]!.cycles.poll++,
    'the idle cycles': ({ hosts }) => hosts[1]!.cores[1]!.cycles.idle--,
    'the elapsed cycles': ({ hosts }) => hosts[0]!.cores[0]!.totalCycles++,
    'the cycles ahead': ({ hosts }) => hosts[0]!.cores[0]!.aheadCycles++,
  },
  blocks: {
    'busy cycles': ({ hcas }) => hcas[0]!.blocks['requester']!.busyCycles++,
    'idle cycles': ({ hcas }) => hcas[1]!.blocks['receiver']!.idleCycles--,
    'stalled cycles': ({ hcas }) => hcas[0]!.blocks['transmitter']!.stalledCycles['wire']!++,
    'the elapsed cycles': ({ hcas }) => hcas[0]!.elapsedCycles++,
    'works that overlap': ({ hcas }) => hcas[0]!.blocks['requester']!.overlaps++,
    'a packet of the loopback that nobody sent': ({ hcas }) => hcas[0]!.loopback.dropped++,
    'a packet of the loopback that nobody received': ({ hcas }) => {
      hcas[0]!.loopback.transmitted['RC_SEND_ONLY'] = { packets: 1, bytes: 26, payloadBytes: 0 };
    },
  },
  pcie: {
    'TLPs transmitted to the device': ({ hosts }) => hosts[0]!.pcie.transmitted.tlps++,
    'bytes transmitted to the host': ({ hcas }) => hcas[1]!.pcie.transmitted.bytes++,
    'payload transmitted': ({ hcas }) => hcas[0]!.pcie.transmitted.payloadBytes--,
    'TLPs of a class': ({ hosts }) => hosts[0]!.pcie.received['cqe']!.tlps--,
    'bytes of a class': ({ hcas }) => hcas[0]!.pcie.received['payloadRead']!.bytes++,
    'payload of a class': ({ hosts }) => hosts[1]!.pcie.received['payloadWrite']!.payloadBytes++,
    'TLPs beyond the credits': ({ hosts }) => hosts[0]!.pcie.creditOverflows++,
  },
  interrupts: {
    'requests of the device': ({ hcas }) => (hcas[0]!.vectors[0]!.requested += 2),
    'moderated requests': ({ hcas }) => hcas[0]!.vectors[0]!.moderated++,
    'messages asked for': ({ hcas }) => (hcas[0]!.vectors[0]!.messages += 2),
    'messages sent': ({ hcas }) => hcas[0]!.vectors[0]!.delivered--,
    'coalesced messages': ({ hcas }) => hcas[0]!.vectors[0]!.coalesced++,
    'messages at the root complex': ({ hosts }) => hosts[0]!.messages.arrived++,
    'lost messages': ({ hosts }) => hosts[0]!.messages.lost++,
    'stray messages': ({ hosts }) => hosts[0]!.messages.unrouted++,
    'interrupts delivered': ({ hosts }) => hosts[0]!.interrupts[0]!.delivered++,
    'interrupts handled': ({ hosts }) => hosts[0]!.interrupts[0]!.handled--,
    'interrupts merged': ({ hosts }) => hosts[0]!.interrupts[0]!.merged++,
  },
  wire: {
    'packets of an opcode sent': ({ hcas }) => firstOf(hcas[0]!.wire.transmitted).packets++,
    'bytes of an opcode sent': ({ hcas }) => firstOf(hcas[0]!.wire.transmitted).bytes++,
    'payload of an opcode sent': ({ hcas }) => firstOf(hcas[0]!.wire.transmitted).payloadBytes++,
    'packets in all': ({ hcas }) => hcas[0]!.wire.transmittedPackets++,
    'bytes in all': ({ hcas }) => hcas[1]!.wire.transmittedBytes--,
    'packets received': ({ hcas }) => firstOf(hcas[1]!.wire.received).packets--,
    'bytes received': ({ hcas }) => firstOf(hcas[1]!.wire.received).bytes--,
    'payload received': ({ hcas }) => firstOf(hcas[1]!.wire.received).payloadBytes++,
    'the busy time': ({ hcas }) => (hcas[0]!.wire.busyPs += 1000),
    'packets that a fault corrupted': ({ hcas }) => hcas[0]!.wire.faultyPackets++,
    'a packet that a fault lost': ({ hcas }) => {
      hcas[0]!.wire.rearranged = { ...noneRearranged, lost: { RC_ACKNOWLEDGE: onePacket } };
    },
    'a copy': ({ hcas }) => {
      hcas[0]!.wire.rearranged = { ...noneRearranged, copied: { RC_ACKNOWLEDGE: onePacket } };
    },
    'a packet that is still held': ({ hcas }) => {
      hcas[0]!.wire.rearranged = { ...noneRearranged, heldBack: { RC_ACKNOWLEDGE: onePacket } };
    },
    'a NAK that nobody sent': ({ hcas }) => {
      hcas[0]!.transport['rnrNakReceived'] = 1;
    },
    'a NAK that nobody got': ({ hcas }) => {
      hcas[1]!.transport['sequenceNakSent'] = 1;
    },
    'packets dropped': ({ hcas }) => hcas[1]!.wire.dropped['overrun']!++,
    'one opcode taken for another': ({ hcas }) => {
      const [first, second] = Object.values(hcas[1]!.wire.received);
      first!.packets++;
      second!.packets--;
    },
  },
  operations: {
    'a stage': ({ hcas }) => hcas[0]!.operations[0]!.stagesPs.remote++,
    'the life': ({ hcas }) => hcas[0]!.operations[0]!.lifePs--,
    'operations out of order': ({ hcas }) => hcas[0]!.operationDisorders++,
    'WQEs taken up': ({ hcas }) => hcas[0]!.wqesTaken++,
    'PSNs of the requests': ({ hcas }) => hcas[0]!.operations[0]!.psnCount--,
    'payload of the requests': ({ hcas }) => hcas[0]!.operations[0]!.payloadBytes++,
    'a first packet taken for a repeated one': ({ hcas }) => {
      const { transmitted, retransmitted } = hcas[0]!.wire;
      const [name, first] = Object.entries(transmitted).find(([opcode]) => opcode.includes('WRITE'))!;
      first.packets--;
      retransmitted[name] = { packets: 1, bytes: 0, payloadBytes: 0 };
    },
    'CNPs that did not leave': ({ hcas }) => {
      hcas[1]!.congestion = { ...noMarks, npEcnMarkedRocePackets: 1, npCnpSent: 1 };
    },
    'CNPs without congestion control': ({ hcas }) => {
      hcas[1]!.loopback.transmitted['CNP'] = onePacket;
      hcas[1]!.loopback.received['CNP'] = onePacket;
    },
    'CNPs for packets without a mark': ({ hcas }) => {
      hcas[1]!.congestion = { ...noMarks, npCnpSent: 1 };
      hcas[1]!.loopback.transmitted['CNP'] = onePacket;
      hcas[1]!.loopback.received['CNP'] = onePacket;
    },
    'BECNs for packets without a mark': ({ hcas }) => {
      hcas[1]!.congestion = { pktRcvFecn: 1, cnpSent: 0, becnSent: 2, pktRcvBecn: 0, becnIgnored: 0 };
    },
    'completions taken': ({ hosts }) => hosts[0]!.operations[0]!.completed++,
    'requests posted': ({ hosts }) => (hosts[0]!.operations[0]!.posted -= 1),
    'time until taken': ({ hosts }) => hosts[0]!.operations[0]!.takenPs++,
    'the latencies': ({ hosts }) => hosts[0]!.operations[0]!.latencyPs!.sum++,
  },
};

/** A value that two balances check independently fails both. */
const known: Readonly<Record<string, readonly string[]>> = {
  'a packet of the loopback that nobody received': ['blocks', 'operations'],
  'packets of an opcode sent': ['wire', 'operations'],
  'payload of an opcode sent': ['wire', 'operations'],
};

describe('the statistics of a run', () => {
  it('balance', () => {
    expect(checksAfter(() => {})).toMatchObject({ balanced: true });
    expect(report.checks).toMatchObject({ balanced: true });
  });

  for (const [balance, counters] of Object.entries(spoilers)) {
    for (const [name, corrupt] of Object.entries(counters)) {
      it(`fail their balance of ${balance} if ${name} is wrong`, () => {
        const { balanced, ...checks } = checksAfter(corrupt);
        expect(balanced).toBe(false);
        const failed = Object.entries(checks).filter(([, { holds }]) => !holds);
        expect(failed.map(([check]) => check)).toEqual(known[name] ?? [balance]);
      });
    }
  }

  it('may lag at the far end during transfers, but never lead', () => {
    const unsettle = (corrupt: (ledgers: Ledgers) => void) => (all: Ledgers) => {
      all.hosts[0]!.pcie.isQuiet = false;
      corrupt(all);
    };
    const lagging = unsettle(({ hcas }) => hcas[0]!.pcie.received['doorbell']!.tlps--);
    expect(checksAfter(lagging).pcie.holds).toBe(true);
    const leading = unsettle(({ hcas }) => hcas[0]!.pcie.received['doorbell']!.tlps++);
    expect(checksAfter(leading).pcie.holds).toBe(false);
  });

  it('may lack a NAK that waits at either end, in the transmitter or in the receiver', () => {
    for (const holder of [0, 1]) {
      const waiting = (sent: number, received: number) => (all: Ledgers) => {
        all.hcas[1]!.transport['rnrNakSent'] = sent;
        all.hcas[0]!.transport['rnrNakReceived'] = received;
        all.hcas[holder]!.heldPackets = 1;
      };
      expect(checksAfter(waiting(1, 0)).wire.holds).toBe(true);
      expect(checksAfter(waiting(0, 1)).wire.holds).toBe(false);
    }
  });
});

describe('packets that were due while the link was down', () => {
  const first = 'RC_RDMA_WRITE_FIRST';

  it('may explain one missing first transmission each', () => {
    const missing = ({ hcas }: Ledgers): void => {
      hcas[0]!.wire.transmitted[first]!.packets--;
    };
    expect(checksAfter(missing).operations.holds).toBe(false);
    const discarded = (ledgers: Ledgers): void => {
      missing(ledgers);
      ledgers.hcas[0]!.wire.discardedPackets = 1;
      ledgers.hcas[0]!.wire.discarded[first] = { packets: 1, bytes: 0, payloadBytes: 0 };
    };
    expect(checksAfter(discarded).operations.holds).toBe(true);
    const missingTwice = (ledgers: Ledgers): void => {
      discarded(ledgers);
      missing(ledgers);
    };
    expect(checksAfter(missingTwice).operations.holds).toBe(false);
  });

  it('explain unreliable requests that completed without any packet on the cable', () => {
    const unreliable = ({ hcas }: Ledgers): void => {
      hcas[0]!.wire.transmitted = {};
      hcas[0]!.wire.discardedPackets = 1;
      hcas[0]!.wire.discarded['UC_RDMA_WRITE_ONLY'] = { packets: 1, bytes: 0, payloadBytes: 0 };
    };
    expect(checksAfter(unreliable).operations.holds).toBe(true);
  });
});

describe('responses to READs whose memory could not be read', () => {
  it('may explain one missing first transmission each', () => {
    /** One READ answered by this many packets, the first of which was sent for the first time. */
    const answered =
      (psnCount: number, unreadableResponse: number) =>
      ({ hcas }: Ledgers): void => {
        const [read] = structuredClone(hcas[0]!.operations);
        hcas[0]!.operations.push({ ...read!, opcode: 16, name: 'READ', count: 1, psnCount, payloadBytes: 0 });
        hcas[0]!.wire.transmitted['RC_RDMA_READ_REQUEST'] = onePacket;
        hcas[1]!.wire.transmitted['RC_RDMA_READ_RESPONSE_FIRST'] = onePacket;
        hcas[1]!.transport['unreadableResponse'] = unreadableResponse;
      };
    const failuresOf = (psnCount: number, unreadable: number): string[] =>
      checksAfter(answered(psnCount, unreadable)).operations.failures.filter((text) =>
        text.includes('READs'),
      );
    expect(failuresOf(1, 0)).toEqual([]);
    expect(failuresOf(2, 0)).toHaveLength(1);
    expect(failuresOf(2, 1)).toEqual([]);
    expect(failuresOf(3, 1)).toHaveLength(1);
  });
});

describe('the rendering of a report', () => {
  it('is made from the JSON alone', () => {
    const text = renderReport(report);
    expect(renderReport(JSON.parse(JSON.stringify(report)) as Report)).toBe(text);
    for (const words of [
      'WRITE',
      'payloadRead',
      'hca 0 mtt',
      'host 0 vector',
      'RC_RDMA_WRITE_FIRST',
      'The ledgers balance',
    ])
      expect(text).toContain(words);
  });

  it('names imbalances', () => {
    const checks = checksAfter(({ hosts }) => hosts[0]!.pcie.transmitted.tlps++);
    expect(renderReport({ ...report, checks })).toContain('do NOT balance');
  });
});
