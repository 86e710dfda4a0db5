/** Faults of a conventional NIC: effects of a plan on the frames of its cable and on its port. */

import { commandNameOf } from '../../abi/index.ts';
import { ConfigurationError } from '../../base/index.ts';
import type { Nic } from '../../hw/nic/index.ts';
import type { FaultLog } from './fault-log.ts';
import { faultText } from './fault-text.ts';
import { ANY_ACCESS, isNth } from './fields.ts';
import { injectFrameFaults } from './frame-faults.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { LastingChanges } from './lasting-changes.ts';
import { faultsOf } from './plan.ts';

/** Faults that apply to a NIC; those of interrupts and reads belong to the root complex. */
const kinds: ReadonlySet<Fault['kind']> = new Set(['interrupt', 'read', 'packet', 'port', 'cable']);

/**
 * Injects a node's faults into its NIC; must be called once, before time starts.
 * @param seed for random choices of faults
 * @throws ConfigurationError for a fault that only an HCA can have
 */
export function injectNicFaults(
  faults: readonly Fault[],
  node: number,
  nic: Nic,
  log: FaultLog,
  seed: number,
): void {
  for (const fault of faults)
    if (fault.node === node && !kinds.has(fault.kind))
      throw new ConfigurationError(
        'fault',
        fault.kind,
        `one of ${[...kinds].join(', ')} with machine.adapter=nic`,
      );
  for (const fault of faultsOf(faults, node, 'packet'))
    for (const field of ['qpn', 'psn', 'opcode', 'only'] as const)
      if (fault[field] !== undefined)
        throw new ConfigurationError(field, faultText(fault), 'left out with machine.adapter=nic');
  injectFrameFaults(faults, { node, name: nic.lp.name }, nic.port, log, seed, 'none');
  const switches = faultsOf(faults, node, 'port', 'cable');
  if (switches.length > 0) new PortSwitches(nic, switches, log);
}

type PortFault = FaultOf<'port'> | FaultOf<'cable'>;

/** Disables the port and unplugs the cable, at a time or after a number of software accesses to the NIC. */
class PortSwitches {
  readonly #nic: Nic;
  readonly #handler: number;
  readonly #faults: readonly PortFault[];

  /** @throws ConfigurationError for a fault that waits for a command: a NIC has none */
  constructor(nic: Nic, faults: readonly PortFault[], log: FaultLog) {
    this.#nic = nic;
    const changes = new LastingChanges<PortFault>(
      () => 'the port',
      (fault, isBeginning) => nic.port.setEnabled(isUp(fault) === isBeginning),
    );
    this.#handler = nic.lp.queue.addHandler((index, isBeginning) => {
      const fault = faults[index]!;
      if (isBeginning === 0) {
        changes.end(fault);
        return;
      }
      changes.begin(fault);
      log.fired(fault);
    });
    this.#faults = faults;
    const counted: PortFault[] = [];
    for (const fault of faults) {
      if (fault.after === undefined) this.#schedule(fault, fault.at ?? 0);
      else if (fault.after === ANY_ACCESS) counted.push(fault);
      else
        throw new ConfigurationError(
          'after',
          commandNameOf(fault.after) ?? 'any',
          'access, or at, with machine.adapter=nic',
        );
    }
    if (counted.length === 0) return;
    let accesses = 0;
    nic.observeAccesses({
      barAccessed: () => {
        accesses++;
        for (const fault of counted)
          if (isNth(fault.nth, accesses)) this.#schedule(fault, nic.lp.nowPs + (fault.delay ?? 0));
      },
    });
  }

  #schedule(fault: PortFault, atPs: number): void {
    const { queue } = this.#nic.lp;
    const index = this.#faults.indexOf(fault);
    queue.schedule(atPs, this.#handler, index, 1);
    if (fault.for !== undefined) queue.schedule(atPs + fault.for, this.#handler, index, 0);
  }
}

/** Whether the port runs while this fault lasts. */
const isUp = (fault: PortFault): boolean =>
  fault.kind === 'port' ? fault.port === 'up' : fault.cable === 'plugged';
