/**
 * Faults of a switch: of the packets that its ports send, of its ends of cables, and of its forwarding entries. A fault of its cables or
 * entries begins and ends one picosecond after its time, so that the order of events within that instant has no effect.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { EthernetSwitch, InfinibandSwitch } from '../../hw/switch/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';
import { EthernetPort, type WirePort } from '../../wire/index.ts';
import type { FaultLog } from './fault-log.ts';
import { type HcaRoce, injectFrameFault } from './frame-faults.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { LastingChanges } from './lasting-changes.ts';
import { randomOf } from './packet-effects.ts';
import { injectPacketFault } from './packet-faults.ts';
import { faultsOf } from './plan.ts';

/** Writes a host's entry: `output` is its port from 1, or undefined for none. */
export interface ForwardingEntries {
  /** Writes the entry wrong, or as the plan has it if the fault ends. */
  write(host: number, hostPort: number, output: number | 'none' | 'planned'): void;
  /** The output that the plan's routes give that host. */
  planned(host: number, hostPort: number): number | undefined;
}

interface FaultedSwitch {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly device: InfinibandSwitch | EthernetSwitch;
  /** Left out for a switch without such a table. */
  readonly entries?: ForwardingEntries;
}

/**
 * Injects the faults of a switch; must be called once, before time starts.
 * @param seed for random choices of faults
 * @param roce of the ports of an Ethernet fabric
 * @throws ConfigurationError for faults that its network does not have
 */
export function injectSwitchFaults(
  faults: readonly Fault[],
  target: FaultedSwitch,
  log: FaultLog,
  seed: number,
  roce: HcaRoce,
): void {
  const { node, lp, device, entries } = target;
  for (const fault of faultsOf(faults, node, 'packet')) {
    const number = fault.portNumber ?? 1;
    const port: WirePort | EthernetPort = device.ports[number - 1]!;
    const random = randomOf(faults, fault, `${lp.name}.${number}`, seed);
    if (port instanceof EthernetPort) injectFrameFault(fault, port, random, log, roce);
    else injectPacketFault(fault, port, log, random);
  }
  const lasting = faultsOf(faults, node, 'port', 'cable', 'forwarding');
  const [entry] = faultsOf(faults, node, 'forwarding');
  if (entry !== undefined && entries === undefined)
    throw new ConfigurationError(
      `fault ${faults.indexOf(entry) + 1} (forwarding), field node,`,
      node,
      'a switch of InfiniBand: Ethernet switches learn stations, or choose among shortest paths by a hash',
    );
  for (const fault of faultsOf(faults, node, 'forwarding')) checkIsWrong(fault, faults, entries!);
  if (lasting.length > 0) new SwitchFaults(target, lasting, log);
}

/** @throws ConfigurationError for a wrong entry that is the planned one, which would have no effect */
function checkIsWrong(
  fault: FaultOf<'forwarding'>,
  faults: readonly Fault[],
  entries: ForwardingEntries,
): void {
  const { host, hostPort = 1, output } = fault;
  if (output === undefined || output !== entries.planned(host, hostPort)) return;
  throw new ConfigurationError(
    `fault ${faults.indexOf(fault) + 1} (forwarding), field output,`,
    output,
    `another port: the routes of the plan lead to host ${host} by this one`,
  );
}

type Lasting = FaultOf<'port'> | FaultOf<'cable'> | FaultOf<'forwarding'>;

/** The port, or the entry, that a fault changes. */
const placeOf = (fault: Lasting): string =>
  fault.kind === 'forwarding'
    ? `entry ${fault.host}.${fault.hostPort ?? 1}`
    : `port ${fault.portNumber ?? 1}`;

class SwitchFaults {
  readonly #target: FaultedSwitch;
  readonly #faults: readonly Lasting[];
  readonly #log: FaultLog;
  /** Faults to begin (even) or end (odd), by twice their index. */
  readonly #due: number[] = [];
  readonly #changes: LastingChanges<Lasting>;

  constructor(target: FaultedSwitch, faults: readonly Lasting[], log: FaultLog) {
    this.#target = target;
    this.#faults = faults;
    this.#log = log;
    this.#changes = new LastingChanges(placeOf, (fault, isBeginning) => this.#change(fault, isBeginning));
    const { queue } = target.lp;
    const applyEvent = queue.addHandler(() => this.#apply());
    const dueEvent = queue.addHandler((due) => {
      this.#due.push(due);
      queue.schedule(target.lp.nowPs + 1, applyEvent);
    });
    for (const [index, fault] of faults.entries()) {
      const { at = 0, for: lastsPs } = fault;
      queue.schedule(at, dueEvent, 2 * index);
      if (lastsPs !== undefined) queue.schedule(at + lastsPs, dueEvent, 2 * index + 1);
    }
  }

  /** At an instant faults end before others begin. */
  #apply(): void {
    this.#due.sort((left, right) => (right % 2) - (left % 2) || left - right);
    for (let due = this.#due.shift(); due !== undefined; due = this.#due.shift()) {
      const fault = this.#faults[due >> 1]!;
      if (due % 2 === 1) this.#changes.end(fault);
      else {
        this.#log.fired(fault);
        this.#changes.begin(fault);
      }
    }
  }

  #change(fault: Lasting, isBeginning: boolean): void {
    if (fault.kind === 'forwarding') {
      const { host, hostPort = 1, output } = fault;
      this.#target.entries!.write(host, hostPort, isBeginning ? (output ?? 'none') : 'planned');
      return;
    }
    const isToRun = fault.kind === 'port' ? fault.port === 'up' : fault.cable === 'plugged';
    this.#target.device.ports[(fault.portNumber ?? 1) - 1]!.setEnabled(isToRun === isBeginning);
  }
}
