/**
 * The logical process of one InfiniBand switch: the device of hw/switch at its ends of the cables, with the forwarding tables that the
 * subnet manager of the plan has written before power-on; without one (`hca.control.embeddedSubnetManager`) it begins unconfigured.
 *
 * It is built from the plan alone, so that the same code builds a switch in any thread.
 */
import { lidOf, portGuidOf } from '../../hw/hca/index.ts';
import { InfinibandSwitch, NO_PORT, type SwitchCable, type SwitchManagement } from '../../hw/switch/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { FaultLog, type ForwardingEntries, injectSwitchFaults } from '../faults/index.ts';
import { cableKey, forwardingAt, type MachinePlan, switchName, wireAt } from '../plan.ts';
import { type Stream, switchStream } from '../timeline/index.ts';
import {
  type FabricRoutes,
  farEndOf,
  hostPortMax,
  hostsOf,
  isSwitch,
  type Link,
  linkAt,
  type NodePort,
  portsOf,
  switchesOf,
  type Topology,
} from '../topology/index.ts';
import { attachWireLogs, type WireLog } from './wire-log.ts';

export class SwitchNode implements ForwardingEntries {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly device: InfinibandSwitch;
  readonly faultLog: FaultLog;
  readonly wireLogs: readonly (WireLog | undefined)[];
  readonly stream: Stream | undefined;
  readonly #plan: MachinePlan;
  readonly #routes: FabricRoutes;
  /** A field, because an image of the machine contains what fields refer to. */
  readonly #shuffle: Random | undefined;

  /** @param routes of the plan's topology */
  constructor(plan: MachinePlan, node: number, routes: FabricRoutes) {
    const { config, topology, shuffleSeed, faults } = plan;
    const name = switchName(node);
    this.node = node;
    this.#plan = plan;
    this.#routes = routes;
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    const cables = cablesOf(plan, node);
    this.device = new InfinibandSwitch({
      lp: this.lp,
      config: { ...config.switch, forwarding: forwardingAt({ config, topology }, node) },
      congestion: config.switch.congestion,
      lanes: config.lanes,
      cables,
      management: managementOf(plan, node),
    });
    if (config.hca.control.embeddedSubnetManager) this.#writeTables(plan, routes);
    this.stream = switchStream(plan.analysis?.timeline, this.lp, this.device, cables);
    this.wireLogs = attachWireLogs(plan.analysis?.capture, node, this.lp, this.device.ports);
    this.faultLog = new FaultLog(faults);
    const target = { node, lp: this.lp, device: this.device, entries: this };
    injectSwitchFaults(faults, target, this.faultLog, config.machine.seed, 'none');
  }

  /** Rewrites an entry while packets move: see {@link ForwardingEntries}. */
  write(host: number, hostPort: number, output: number | 'none' | 'planned'): void {
    const port = output === 'none' ? undefined : output === 'planned' ? this.planned(host, hostPort) : output;
    const lid = lidOf(this.#plan.config.hca.control, { node: host, port: hostPort });
    this.device.tables.rewritePort(lid, port ?? NO_PORT, this.lp.nowPs);
  }

  planned(host: number, hostPort: number): number | undefined {
    return this.#routes.portTowards(this.node, { node: host, port: hostPort });
  }

  /** The embedded subnet manager's part: routes to every port of a host and to the switches, one tree for all groups, partitions of hosts. */
  #writeTables({ config, topology }: MachinePlan, routes: FabricRoutes): void {
    const { tables } = this.device;
    for (const port of hostPortsOf(topology)) {
      const output = routes.portTowards(this.node, port);
      if (output !== undefined) tables.setPort(lidOf(config.hca.control, port), output);
    }
    for (const other of switchesOf(topology)) {
      const output = other === this.node ? 0 : routes.portToSwitch(this.node, other);
      if (output !== undefined) tables.setPort(switchLidOf(config, other), output);
    }
    tables.groupPorts = routes.groupPorts(this.node);
    for (const own of portsOf(topology, this.node)) {
      const { partitions } = topology.nodes[farEndOf(topology, own)!.node]!;
      if (partitions !== undefined) this.device.partitionOf(own.port).enforce(partitions);
    }
  }
}

/** LIDs of switches follow those of the ports of hosts. */
const switchLidOf = ({ hca }: MachinePlan['config'], node: number): number =>
  lidOf(hca.control, { node, port: hostPortMax + 1 });

/** Management of a switch: its GUID is that of its node, which has no ports of an adapter. */
function managementOf({ config }: MachinePlan, node: number): SwitchManagement {
  const { embeddedSubnetManager, subnetManagerLid } = config.hca.control;
  return {
    guid: portGuidOf(node, 0),
    description: `hca-emulator switch ${node}`,
    embedded: embeddedSubnetManager ? { lid: switchLidOf(config, node), subnetManagerLid } : undefined,
  };
}

const hostPortsOf = (topology: Topology): NodePort[] =>
  hostsOf(topology).flatMap((host) => portsOf(topology, host));

/** Limits that the plan gives one port of a switch. */
const limitsOf = ({ hoqLife, vlStallCount }: Link): NonNullable<SwitchCable['headOfQueue']> => ({
  ...(hoqLife === undefined ? {} : { hoqLife }),
  ...(vlStallCount === undefined ? {} : { vlStallCount }),
});

/** The cables of a switch, by port from 1. */
function cablesOf({ config, topology, channels }: MachinePlan, node: number): (SwitchCable | undefined)[] {
  const ports = portsOf(topology, node);
  const { victims } = config.switch.congestion;
  const cables = Array<SwitchCable | undefined>(ports.at(-1)!.port).fill(undefined);
  for (const own of ports) {
    const far = farEndOf(topology, own)!;
    cables[own.port - 1] = {
      writer: new ChannelWriter(channels[cableKey({ config, topology }, own, far)]!),
      reader: new ChannelReader(channels[cableKey({ config, topology }, far, own)]!),
      wire: wireAt({ config, topology }, own),
      sentArrival: isSwitch(topology, far.node) ? 'head' : 'tail',
      headOfQueue: limitsOf(linkAt(topology, own)!),
      marksVictims: victims === 'all' || (victims === 'hosts' && !isSwitch(topology, far.node)),
    };
  }
  return cables;
}
