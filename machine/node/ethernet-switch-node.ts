/**
 * The logical process of one Ethernet switch: the device of hw/switch at its ends of the cables.
 *
 * Where the topology has more cables between switches than a tree, it receives routes to the stations of the plan, as a control plane
 * would distribute; otherwise it learns every station. It is built from the plan alone, so that the same code builds a switch in any thread.
 */
import { macOf } from '../../hw/hca/index.ts';
import { EthernetSwitch, type EthernetSwitchCable } from '../../hw/switch/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, Random } from '../../sim/index.ts';
import { FaultLog, injectSwitchFaults } from '../faults/index.ts';
import { cableKey, ethernetAt, forwardingAt, frameArrivalAt, type MachinePlan, switchName } from '../plan.ts';
import { type Stream, switchStream } from '../timeline/index.ts';
import { type FabricRoutes, farEndOf, hostsOf, portsOf, type Topology } from '../topology/index.ts';
import { attachWireLogs, type WireLog } from './wire-log.ts';

export class EthernetSwitchNode {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly device: EthernetSwitch;
  readonly faultLog: FaultLog;
  readonly wireLogs: readonly (WireLog | undefined)[];
  readonly stream: Stream | undefined;
  /** A field, because an image of the machine contains what fields refer to. */
  readonly #shuffle: Random | undefined;

  /** @param routes of the plan's topology */
  constructor(plan: MachinePlan, node: number, routes: FabricRoutes) {
    const { config, topology, shuffleSeed, faults } = plan;
    const name = switchName(node);
    this.node = node;
    this.#shuffle = shuffleSeed === undefined ? undefined : new Random(shuffleSeed, name);
    this.lp = new LogicalProcess(name, this.#shuffle?.unit, plan.shortcuts);
    const cables = cablesOf(plan, node);
    this.device = new EthernetSwitch({
      lp: this.lp,
      config: { ...config.switch.ethernet, forwarding: forwardingAt({ config, topology }, node) },
      ethernet: config.ethernet,
      number: node,
      seed: config.machine.seed,
      cables,
    });
    this.device.routes.setTreePorts(routes.groupPorts(node));
    if (config.switch.ethernet.multipath === 'ecmp' && !routes.isTree) this.#setRoutes(topology, routes);
    this.stream = switchStream(plan.analysis?.timeline, this.lp, this.device, cables);
    this.wireLogs = attachWireLogs(plan.analysis?.capture, node, this.lp, this.device.ports);
    this.faultLog = new FaultLog(faults);
    const { roce } = config.hca.capability;
    const target = { node, lp: this.lp, device: this.device };
    injectSwitchFaults(faults, target, this.faultLog, config.machine.seed, roce);
  }

  #setRoutes(topology: Topology, routes: FabricRoutes): void {
    for (const port of hostsOf(topology).flatMap((host) => portsOf(topology, host))) {
      const ports = routes.portsTowards(this.node, port);
      if (ports.length > 0) this.device.routes.setRoute(macOf(port.node, port.port), ports);
    }
  }
}

/** The cables of a switch, by port from 1. */
function cablesOf(
  { config, topology, channels }: MachinePlan,
  node: number,
): (EthernetSwitchCable | undefined)[] {
  const ports = portsOf(topology, node);
  const cables = Array<EthernetSwitchCable | undefined>(ports.at(-1)!.port).fill(undefined);
  for (const own of ports) {
    const far = farEndOf(topology, own)!;
    cables[own.port - 1] = {
      writer: new ChannelWriter(channels[cableKey({ config, topology }, own, far)]!),
      reader: new ChannelReader(channels[cableKey({ config, topology }, far, own)]!),
      ethernet: ethernetAt({ config, topology }, own),
      sentArrival: frameArrivalAt({ config, topology }, far.node),
    };
  }
  return cables;
}
