/**
 * The logical process of one HCA: the device of hw/hca at its ends of the PCIe link and of the cable.
 *
 * It is built from the plan alone, so that the same code builds an HCA in any thread.
 */
import { Hca, type HcaSetup } from '../../hw/hca/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { DeviceJournal } from '../evidence/index.ts';
import { FaultLog, injectHcaFaults } from '../faults/index.ts';
import { channelKey, type HcaNeighbours, type HcaPlan, hcaName, hostName } from '../plan.ts';
import type { MachineConfig } from '../profile/index.ts';
import { hcaStream, type Stream } from '../timeline/index.ts';
import { cabledPeerOf, subnetOf, type Topology } from '../topology/index.ts';
import { OperationTimes } from './operation-times.ts';
import { linkReader } from './packet-log.ts';
import { attachWireLog, type WireLog } from './wire-log.ts';

export class HcaNode {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly config: MachineConfig;
  readonly hca: Hca;
  readonly faultLog: FaultLog;
  /** Timeline records, if the plan requests them. */
  readonly stream: Stream | undefined;
  /** Evidence of why requests fail, if the plan requests it. */
  readonly journal: DeviceJournal | undefined;
  /** Packets at its end of the cable, if the analysis keeps them. */
  readonly wireLog: WireLog | undefined;
  /** A field, because an image of the machine contains what fields refer to. */
  readonly #shuffle: Random | undefined;

  /** @param shared access to the HCA's memory for a host in the same thread */
  constructor(
    plan: HcaPlan,
    node: number,
    neighbours: HcaNeighbours = neighboursOf(plan.topology, node),
    shared?: HcaSetup['shared'],
  ) {
    const { config, shuffleSeed, channels } = plan;
    const { host, wirePeer: peer } = neighbours;
    const times = plan.operationTimes?.[node];
    this.node = node;
    this.config = config;
    const name = hcaName(node);
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    const { pcie } = config;
    const tap = times === undefined ? undefined : new OperationTimes(times);
    const wireReader = new ChannelReader(channels[channelKey(peer, name)]!);
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
      ethernet: config.ethernet,
      seed: config.machine.seed,
      pcieWriter: new ChannelWriter(channels[channelKey(name, host)]!),
      pcieReader: linkReader(channels[channelKey(host, name)]!, plan.analysis, () => this.lp),
      wireWriter: new ChannelWriter(channels[channelKey(name, peer)]!),
      wireReader,
      nodeIndex: node,
      subnetNodes: neighbours.subnetNodes,
      tap,
      operationSource: plan.attributesCosts === true ? tap : undefined,
      shared,
    });
    if (tap !== undefined) this.lp.addTimeKeeper(tap);
    this.hca.setCableEnabled(true);
    const { ethernetPort, wirePort } = this.hca;
    this.wireLog = attachWireLog(plan.analysis?.capture, node, this.lp, ethernetPort ?? wirePort);
    this.faultLog = new FaultLog(plan.faults);
    injectHcaFaults(
      plan.faults,
      node,
      this.hca,
      this.faultLog,
      config.machine.seed,
      config.hca.capability.roce,
    );
    if (plan.analysis?.evidence !== undefined) this.journal = new DeviceJournal(node, this.hca);
    this.stream = hcaStream(plan.analysis?.timeline, this.lp, this.hca, config, wireReader);
  }
}

/** In a machine of simulated hosts. */
const neighboursOf = (topology: Topology, node: number): HcaNeighbours => ({
  host: hostName(node),
  wirePeer: hcaName(cabledPeerOf(topology, node)),
  subnetNodes: subnetOf(topology, node),
});
