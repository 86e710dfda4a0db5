/**
 * The logical process of one HCA: the device of hw/hca at its ends of the PCIe link and of the cable.
 *
 * It is built from the plan alone, so that the same code builds an HCA in any thread.
 */
import { Hca, type HcaCable, type HcaSetup, lidOf, macOf } from '../../hw/hca/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { DeviceJournal } from '../evidence/index.ts';
import { FaultLog, injectHcaFaults } from '../faults/index.ts';
import {
  cableKey,
  channelKey,
  ethernetAt,
  frameArrivalAt,
  type HcaNeighbours,
  type HcaPlan,
  hcaName,
  hostName,
  wireAt,
} from '../plan.ts';
import type { MachineConfig } from '../profile/index.ts';
import { type HostAddresses, hcaStream, type Stream } from '../timeline/index.ts';
import { farEndOf, hostsOf, isSwitch, portCountOf, portsOf, subnetOf } from '../topology/index.ts';
import { OperationTimes } from './operation-times.ts';
import { linkReader } from './packet-log.ts';
import { attachWireLogs, type WireLog } from './wire-log.ts';

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
  /** Whether port 2 has a cable. */
  readonly hasSecondCable: boolean;
  /** Packets at its end of each cable, by port, if the analysis keeps them. */
  readonly wireLogs: readonly (WireLog | undefined)[];
  /** A field, because an image of the machine contains what fields refer to. */
  readonly #shuffle: Random | undefined;

  /** @param shared access to the HCA's memory for a host in the same thread */
  constructor(
    plan: HcaPlan,
    node: number,
    neighbours: HcaNeighbours = hcaNeighboursOf(plan, node),
    shared?: HcaSetup['shared'],
  ) {
    const { config, shuffleSeed, channels } = plan;
    const { host } = neighbours;
    const times = plan.operationTimes?.[node];
    this.node = node;
    this.config = config;
    const name = hcaName(node);
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    const { pcie } = config;
    const tap = times === undefined ? undefined : new OperationTimes(times);
    const cables = neighbours.cables.map(
      (keys): HcaCable | undefined =>
        keys && {
          writer: new ChannelWriter(channels[keys.outbound]!),
          reader: new ChannelReader(channels[keys.inbound]!),
          config: keys.wire ?? config.wire,
          sentArrival: keys.leadsToSwitch === true ? 'head' : 'tail',
          frameArrival: keys.frameArrival ?? 'tail',
        },
    );
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
      lanes: config.lanes,
      ethernet: neighbours.cables[0]?.ethernet ?? config.ethernet,
      iwarp: config.hca.iwarp,
      congestion: config.hca.congestion,
      seed: config.machine.seed,
      pcieWriter: new ChannelWriter(channels[channelKey(name, host)]!),
      pcieReader: linkReader(channels[channelKey(host, name)]!, plan.analysis, () => this.lp),
      cables,
      nodeIndex: node,
      subnets: neighbours.subnets,
      tap,
      operationSource: plan.attributesCosts === true ? tap : undefined,
      shared,
    });
    if (tap !== undefined) this.lp.addTimeKeeper(tap);
    this.hasSecondCable = cables[1] !== undefined;
    const { ethernetPort, wirePorts } = this.hca;
    this.hca.setCableEnabled(true);
    const ports = ethernetPort === undefined ? wirePorts : [ethernetPort];
    const cabled = ports.map((port, index) => cables[index] && port);
    this.wireLogs = attachWireLogs(plan.analysis?.capture, node, this.lp, cabled);
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
    const addresses = hostAddressesOf(plan);
    this.stream = hcaStream(plan.analysis?.timeline, this.lp, this.hca, config, cables, addresses);
  }
}

/** Hosts by the LIDs of their ports, or on Ethernet by the MACs. */
function hostAddressesOf({ config, topology }: Pick<HcaPlan, 'config' | 'topology'>): HostAddresses {
  const { capability, control } = config.hca;
  const isInfiniband = capability.linkLayer === 'infiniband';
  return new Map(
    hostsOf(topology).flatMap((node) =>
      portsOf(topology, node).map(({ port }) => [
        isInfiniband ? lidOf(control, { node, port }) : macOf(node, port),
        node,
      ]),
    ),
  );
}

/** Returns the neighbours in a machine of simulated hosts. */
export function hcaNeighboursOf(
  { config, topology }: Pick<HcaPlan, 'config' | 'topology'>,
  node: number,
): HcaNeighbours {
  const ports = Array.from({ length: portCountOf(topology) }, (_, index) => ({ node, port: index + 1 }));
  return {
    host: hostName(node),
    cables: ports.map((port) => {
      const far = farEndOf(topology, port);
      const cabled = { config, topology };
      return (
        far && {
          outbound: cableKey(cabled, port, far),
          inbound: cableKey(cabled, far, port),
          wire: wireAt(cabled, port),
          ethernet: ethernetAt(cabled, port),
          leadsToSwitch: isSwitch(topology, far.node),
          frameArrival: frameArrivalAt(cabled, far.node),
        }
      );
    }),
    subnets: ports.map((port) => subnetOf(topology, port)),
  };
}
