/**
 * The logical process of one HCA: the device of hw/hca at its ends of the PCIe link and of the cable.
 *
 * Everything is made from the plan, so that the same code builds an HCA in any thread.
 */
import { Hca } from '../../hw/hca/hca.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { faultsOf } from '../fault-plan.ts';
import { channelKey, type HcaNeighbours, type HcaPlan, hcaName, hostName, peerOf } from '../plan.ts';
import type { MachineConfig } from '../profile/index.ts';
import { OperationTimes } from './operation-times.ts';

export class HcaNode {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly config: MachineConfig;
  readonly hca: Hca;

  constructor(plan: HcaPlan, node: number, neighbours: HcaNeighbours = neighboursOf(node)) {
    const { config, shuffleSeed, channels } = plan;
    const { host, wirePeer: peer } = neighbours;
    const times = plan.operationTimes?.[node];
    this.node = node;
    this.config = config;
    const name = hcaName(node);
    const shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name).unit;
    this.lp = new LogicalProcess(name, shuffle);
    const { pcie } = config;
    this.hca = new Hca({
      lp: this.lp,
      config: config.hca,
      control: config.hca.control,
      capabilities: config.hca.capability,
      dma: config.dma,
      pcieFunction: pcie.function,
      linkIdentity: pcie.link,
      link: pcie.link,
      linkEnd: pcie.endpointPort,
      linkPeer: pcie.rootPort,
      wire: config.wire,
      pcieWriter: new ChannelWriter(channels[channelKey(name, host)]!),
      pcieReader: new ChannelReader(channels[channelKey(host, name)]!),
      wireWriter: new ChannelWriter(channels[channelKey(name, peer)]!),
      wireReader: new ChannelReader(channels[channelKey(peer, name)]!),
      nodeIndex: node,
      tap: times === undefined ? undefined : new OperationTimes(times),
    });
    this.hca.wirePort.setEnabled(true);
    this.#injectFaults(plan);
  }

  #injectFaults({ faults }: HcaPlan): void {
    const { wirePort } = this.hca;
    for (const [nth] of faultsOf(faults, 'packetDrop', this.node)) wirePort.faults.dropPacket(nth!);
    for (const [nth, delayPs] of faultsOf(faults, 'packetDelay', this.node))
      wirePort.faults.delayPacket(nth!, delayPs!);
    this.#injectCommandFaults(faultsOf(faults, 'commandStatus', this.node));
    const plug = this.lp.queue.addHandler((isPlugged) => wirePort.setEnabled(isPlugged === 1));
    for (const [atPs] of faultsOf(faults, 'portDown', this.node)) this.lp.queue.schedule(atPs!, plug, 0);
    for (const [atPs] of faultsOf(faults, 'portUp', this.node)) this.lp.queue.schedule(atPs!, plug, 1);
  }

  /** @param rows opcode, nth, status */
  #injectCommandFaults(rows: readonly (readonly number[])[]): void {
    if (rows.length === 0) return;
    const counts = new Map<number, number>();
    this.hca.control.processor.faultStatusOf = (opcode) => {
      const nth = (counts.get(opcode) ?? 0) + 1;
      counts.set(opcode, nth);
      return rows.find((row) => row[0] === opcode && row[1] === nth)?.[2] ?? 0;
    };
  }
}

/** In a machine of simulated hosts. */
const neighboursOf = (node: number): HcaNeighbours => ({
  host: hostName(node),
  wirePeer: hcaName(peerOf(node)),
});
