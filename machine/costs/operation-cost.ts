/**
 * The cost of each marked operation: the use of its host's processor, the PCIe transfers of its own device, and those
 * of the devices that its messages reached.
 */
import { SimulatorError } from '../../base/index.ts';
import type { CpuCause, ProcessorCost } from '../../host/index.ts';
import { trafficClassNames } from '../../hw/dma/index.ts';
import type { CostLedger, CostRow } from '../../hw/hca/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import { farEndOf, type Topology } from '../topology/index.ts';

/** A device's transfers on its PCIe link. */
export interface DeviceCost {
  /** Memory read requests, each a TLP. */
  readonly dmaReads: number;
  /** Memory write TLPs, without interrupt messages. */
  readonly dmaWrites: number;
  readonly interrupts: number;
  /** Memory reads and writes by accounting class (docs/how-to/budgets.md); classes without any are left out. */
  readonly readTlps: Readonly<Record<string, number>>;
  readonly writeTlps: Readonly<Record<string, number>>;
}

/** Cost of one marked operation. */
export interface OperationCost extends DeviceCost {
  readonly node: number;
  readonly program: string;
  readonly name: string;
  readonly beganPs: ExactPs;
  /** Undefined while the operation is open. */
  readonly endedPs: ExactPs | undefined;
  /** Send requests posted in it. */
  readonly workRequests: number;
  /** Posted writes of its processor to the device, one TLP each: doorbells, BlueFlame, arm requests, registers. */
  readonly mmioWrites: number;
  readonly mmioReads: number;
  readonly systemCalls: number;
  readonly cpuCycles: number;
  readonly cycles: Readonly<Partial<Record<CpuCause, number>>>;
  /** Costs at the devices that received its messages, possibly its own device. */
  readonly peer: DeviceCost;
}

/** A device's transfers outside marked operations: for commands and event queues, and all others. */
export interface OtherCost {
  readonly node: number;
  readonly control: DeviceCost;
  readonly unmarked: DeviceCost;
}

/** Costs known at one node. */
export interface NodeCosts {
  readonly node: number;
  readonly processor: readonly ProcessorCost[];
  readonly device: CostLedger;
}

/** Whether more packets arrived than a device can distinguish. */
export class CostsOverflowError extends SimulatorError {
  override readonly name = 'CostsOverflowError';

  constructor(node: number, packets: number) {
    super(
      `packets that the device of host ${node} could not attribute to an operation`,
      packets,
      '0: it has room for a million packets, so let one machine mark fewer operations',
    );
  }
}

interface Sum extends CostRow {
  interrupts: number;
}

const newSum = (): Sum => ({
  reads: trafficClassNames.map(() => 0),
  writes: trafficClassNames.map(() => 0),
  interrupts: 0,
});

function addTo(sum: Sum, { reads, writes, interrupts }: CostRow): void {
  for (const [index, count] of reads.entries()) sum.reads[index] = sum.reads[index]! + count;
  for (const [index, count] of writes.entries()) sum.writes[index] = sum.writes[index]! + count;
  sum.interrupts += interrupts;
}

function sumIn(sums: Map<string, Sum>, key: string): Sum {
  const found = sums.get(key) ?? newSum();
  sums.set(key, found);
  return found;
}

const named = (counts: readonly number[]): Record<string, number> =>
  Object.fromEntries(
    counts.flatMap((count, index) => (count === 0 ? [] : [[trafficClassNames[index]!, count] as const])),
  );

const totalOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

const deviceCostOf = ({ reads, writes, interrupts }: CostRow): DeviceCost => ({
  dmaReads: totalOf(reads),
  dmaWrites: totalOf(writes),
  interrupts,
  readTlps: named(reads),
  writeTlps: named(writes),
});

const keyOf = (node: number, operation: number): string => `${node}:${operation}`;

/**
 * Joins the tables of all nodes.
 * @throws CostsOverflowError if a device ran out of room
 */
export function joinCosts(
  nodes: readonly NodeCosts[],
  topology: Topology,
): {
  operations: OperationCost[];
  others: OtherCost[];
} {
  const own = new Map<string, Sum>();
  const peers = new Map<string, Sum>();
  const unmarked = new Map<string, Sum>();
  const messages = new MessagesByQp(nodes);
  for (const { node, device } of nodes) {
    if (device.lostPacketCount > 0) throw new CostsOverflowError(node, device.lostPacketCount);
    addTo(sumIn(unmarked, `${node}`), device.unmarked);
    for (const row of device.operations) addTo(sumIn(own, keyOf(node, row.operation)), row);
    for (const packet of device.packets) {
      const from = packet.isLoopback ? node : farEndOf(topology, { node, port: packet.portIndex + 1 })!.node;
      const operation = messages.operationOf(from, packet);
      addTo(
        operation === undefined ? sumIn(unmarked, `${node}`) : sumIn(peers, keyOf(from, operation)),
        packet,
      );
    }
  }
  const operations = nodes.flatMap(({ node, processor }) =>
    processor.map(({ number, cycles, ...cost }) => ({
      node,
      ...cost,
      cpuCycles: totalOf(Object.values(cycles)),
      cycles,
      ...deviceCostOf(sumIn(own, keyOf(node, number))),
      peer: deviceCostOf(sumIn(peers, keyOf(node, number))),
    })),
  );
  const others = nodes.map(({ node, device }) => ({
    node,
    control: deviceCostOf(device.control),
    unmarked: deviceCostOf(sumIn(unmarked, `${node}`)),
  }));
  return { operations, others };
}

/** Finds the operation of a packet: that of the QP's newest message that contains its number and had begun when it arrived. */
class MessagesByQp {
  readonly #byQp = new Map<string, CostLedger['messages'][number][]>();
  readonly #masks: ReadonlyMap<number, number>;

  constructor(nodes: readonly NodeCosts[]) {
    this.#masks = new Map(nodes.map(({ node, device }) => [node, device.numberMask]));
    for (const { node, device } of nodes)
      for (const message of device.messages) {
        const key = keyOf(node, message.qpn);
        const list = this.#byQp.get(key);
        if (list === undefined) this.#byQp.set(key, [message]);
        else list.push(message);
      }
  }

  operationOf(node: number, packet: CostLedger['packets'][number]): number | undefined {
    const { sourceQpn, number, atPs } = packet;
    const mask = this.#masks.get(node) ?? 0;
    return this.#byQp
      .get(keyOf(node, sourceQpn))
      ?.findLast(
        (message) => message.atPs <= atPs && ((number - message.firstNumber) & mask) < message.packetCount,
      )?.operation;
  }
}
