/**
 * The time of an operation, for tests with one message in flight: the stages of its time on the device, from its
 * posting to its completion, by cause.
 */
import type { OperationReport } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { PerfArgs } from '../workloads/index.ts';
import { advised } from './advice.ts';
import { intervalOf, isIwarp, less, more, switchLatencyOf, type Turn } from './measured.ts';

export interface StageShare {
  /** Its name in the report. */
  readonly name: string;
  readonly share: number;
  readonly turn: readonly Turn[];
}

/** Parameters of the cable: its rate and its length. */
const cableTurns = {
  infiniband: {
    rate: 'wire.speed',
    way: ['wire.portLatencyNs', 'wire.cableMetres', 'wire.switchLatencyNs'],
  },
  ethernet: { rate: 'ethernet.gigabitsPerSecond', way: ['ethernet.portLatencyNs', 'ethernet.cableMetres'] },
} as const;

/** Changes of the card's stream, by stage: iWARP alone has these. */
const streamTurns = ({ hca }: MachineConfig): Readonly<Record<string, readonly Turn[]>> => ({
  tcpWindow: [
    ...more('hca.iwarp.connectionBytes', 'hca.iwarp.retransmissionBytes'),
    ...less('ethernet.cableMetres', 'ethernet.portLatencyNs'),
  ],
  framing: [
    ...more(
      hca.iwarp.crcBytesPerCycle < hca.transmitBytesPerCycle
        ? 'hca.iwarp.crcBytesPerCycle'
        : 'hca.transmitBytesPerCycle',
    ),
    ...less('hca.iwarp.markerCycles', 'hca.transmitPacketCycles'),
  ],
  tcpSend: [...less('hca.iwarp.sendCycles', 'hca.iwarp.receiveCycles'), ...more('hca.coreClockMHz')],
  retransmission: less('hca.iwarp.retransmitMinUs', 'hca.iwarp.retransmitInitialUs'),
  placement: [...less('hca.receiveLatencyCycles'), ...more('hca.receiveBytesPerCycle', 'hca.coreClockMHz')],
});

/** The way of a packet: ports and cables, and switches if it passes any. */
function wayTurns(config: MachineConfig, switchCount: number): Turn[] {
  const [ports, ...cables] = cableTurns[config.hca.capability.linkLayer].way;
  return less(ports, ...(switchCount > 0 ? [switchLatencyOf(config).parameter] : []), ...cables);
}

const turnsOf = (
  { capability: { linkLayer }, ...hca }: MachineConfig['hca'],
  args: PerfArgs,
  way: readonly Turn[],
): Readonly<Record<string, readonly Turn[]>> => ({
  doorbell: less('pcie.rootComplex.cpuStoreLatencyPs', 'pcie.link.latencyPs'),
  wqeFetch: [...more('--inline'), ...less('pcie.rootComplex.readLatencyPs', 'pcie.link.latencyPs')],
  // They begin together: only the longer one is waited for.
  scheduling: less(
    hca.scheduleCycles > hca[intervalOf(args)] ? 'hca.scheduleCycles' : `hca.${intervalOf(args)}`,
  ),
  payloadRead: [...more('--inline'), ...less('pcie.rootComplex.readLatencyPs', 'pcie.link.latencyPs')],
  transmit: [...more(cableTurns[linkLayer].rate, 'hca.coreClockMHz'), ...less('hca.transmitLatencyCycles')],
  remote: [...more(cableTurns[linkLayer].rate, 'hca.coreClockMHz'), ...way],
  completion: less('pcie.rootComplex.writeLatencyPs', 'pcie.link.latencyPs'),
});

/**
 * Longest first; the time until the program has polled the completion is separate.
 * @param switchCount switches that a packet passes
 */
export function stagesOf(
  operations: Readonly<Record<string, OperationReport>>,
  config: MachineConfig,
  args: PerfArgs,
  switchCount: number,
): StageShare[] {
  const way = wayTurns(config, switchCount);
  const turns = { ...turnsOf(config.hca, args, way), ...(isIwarp(config) ? streamTurns(config) : {}) };
  const sums = new Map<string, number>();
  for (const { milestonesPs } of Object.values(operations))
    for (const [name, ps] of Object.entries(milestonesPs))
      if (name !== 'taken') sums.set(name, (sums.get(name) ?? 0) + ps);
  const total = [...sums.values()].reduce((sum, ps) => sum + ps, 0);
  if (total === 0) return [];
  return [...sums]
    .map(([name, ps]) => advised(config, args, { name, share: ps / total, turn: turns[name] ?? [] }))
    .filter(({ share }) => share > 0)
    .toSorted((left, right) => right.share - left.share);
}

/** Mean time of an operation from its posting to its completion, over all its stages; undefined if none has ended. */
export function meanPostedPsOf(operations: Readonly<Record<string, OperationReport>>): number | undefined {
  const rows = Object.values(operations);
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const ps = rows
    .flatMap(({ milestonesPs }) => Object.entries(milestonesPs))
    .reduce((sum, [name, part]) => (name === 'taken' ? sum : sum + part), 0);
  return count === 0 ? undefined : ps / count;
}
