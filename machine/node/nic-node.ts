/**
 * The logical process of one NIC: the device of hw/nic at its ends of the PCIe link and of the Ethernet cable.
 *
 * It is built from the plan alone, so that the same code builds a NIC in any thread.
 */
import { macAddressOf, Nic } from '../../hw/nic/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { withTag } from '../../wire/index.ts';
import { FaultLog, injectNicFaults } from '../faults/index.ts';
import { channelKey, ethernetAt, hostName, type MachinePlan, nicEthernetOf, nicName } from '../plan.ts';
import type { MachineConfig } from '../profile/index.ts';
import { nicStream, type Stream } from '../timeline/index.ts';
import { cabledPeerOf } from '../topology/index.ts';
import { linkReader } from './packet-log.ts';
import { attachWireLogs, type WireLog } from './wire-log.ts';

export class NicNode {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly config: MachineConfig;
  readonly nic: Nic;
  readonly faultLog: FaultLog;
  /** Timeline records, if the plan requests them. */
  readonly stream: Stream | undefined;
  /** Frames at its end of the cable, if the analysis keeps them. */
  readonly wireLogs: readonly (WireLog | undefined)[];
  /** A field, because an image of the machine contains what fields refer to. */
  readonly #shuffle: Random | undefined;

  constructor(plan: MachinePlan, node: number) {
    const { config, shuffleSeed, channels } = plan;
    const farEnd = plan.nicFarEnd ?? nicName(cabledPeerOf(plan.topology, node));
    const [name, host, peer] = [nicName(node), hostName(node), farEnd];
    this.node = node;
    this.config = config;
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    const { pcie } = config;
    const ethernet = ethernetAt(plan, { node, port: 1 });
    const wireReader = new ChannelReader(channels[channelKey(peer, name)]!);
    this.nic = new Nic({
      lp: this.lp,
      config: config.nic,
      dma: config.dma,
      pcieFunction: config.nic.function,
      linkIdentity: pcie.link,
      link: pcie.link,
      linkEnd: pcie.endpointPort,
      linkPeer: pcie.rootPort,
      // A port of an HCA sends a tag in addition to the longest payload, as does an interface of a VLAN.
      ethernet: plan.nicFarEnd === undefined ? nicEthernetOf({ ...config, ethernet }) : withTag(ethernet),
      pcieWriter: new ChannelWriter(channels[channelKey(name, host)]!),
      pcieReader: linkReader(channels[channelKey(host, name)]!, plan.analysis, () => this.lp),
      wireWriter: new ChannelWriter(channels[channelKey(name, peer)]!),
      wireReader,
      seed: config.machine.seed,
      macAddress: macAddressOf(node),
    });
    this.wireLogs = attachWireLogs(plan.analysis?.capture, node, this.lp, [this.nic.port]);
    this.faultLog = new FaultLog(plan.faults);
    injectNicFaults(plan.faults, node, this.nic, this.faultLog, config.machine.seed);
    this.stream = nicStream(plan.analysis?.timeline, this.lp, this.nic, config, wireReader);
  }
}
