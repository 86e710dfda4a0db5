/**
 * Faults of a device, injected where they would arise: in its command processor, its registers, its slot and its port.
 * Needs only the HCA, so it is the same for a simulated host and for a guest.
 *
 *     at ─────────────────────────► queue ─┐
 *     after, nth ── commands, accesses ────┤ (+ delay) ──► stage, at a clock edge ──► begin … for … end
 *     nth reset written ───────────────────┘
 *
 * A fault of the whole device begins and ends at a clock edge after all other work of that cycle, whatever triggered
 * it. A machine without faults of a kind has none of its listeners.
 */
import { EventType } from '../../abi/index.ts';
import { type CommandFaults, GO_ON, type Hca, NEVER_END } from '../../hw/hca/index.ts';
import type { FaultLog } from './fault-log.ts';
import { ANY_ACCESS, ANY_COMMAND, isNth, NO_STATUS, type Nth } from './fields.ts';
import { type HcaRoce, injectFrameFaults } from './frame-faults.ts';
import type { Fault, FaultOf, TimedFault } from './kinds.ts';
import { LastingChanges } from './lasting-changes.ts';
import { randomOf } from './packet-effects.ts';
import { injectPacketFault } from './packet-faults.ts';
import { faultsOf } from './plan.ts';

/**
 * Injects a node's faults into its device; must be called once, before time starts.
 * @param seed for random choices of faults
 * @param roce of its port
 */
export function injectHcaFaults(
  faults: readonly Fault[],
  node: number,
  hca: Hca,
  log: FaultLog,
  seed: number,
  roce: HcaRoce,
): void {
  if (hca.ethernetPort !== undefined) {
    injectFrameFaults(faults, { node, name: `hca${node}` }, hca.ethernetPort, log, seed, roce);
  } else {
    for (const fault of faultsOf(faults, node, 'packet'))
      injectPacketFault(
        fault,
        hca.wirePorts[(fault.portNumber ?? 1) - 1]!,
        log,
        randomOf(faults, fault, `hca${node}`, seed),
      );
  }
  const commands = faultsOf(faults, node, 'command');
  const resets = faultsOf(faults, node, 'reset');
  const timed = faultsOf(faults, node, 'semaphore', 'owner', 'catastrophic', 'port', 'cable', 'device');
  if (commands.length + resets.length + timed.length > 0) new DeviceFaults(hca, commands, resets, timed, log);
}

type Lasting = TimedFault | FaultOf<'reset'>;
type CableFault = FaultOf<'port'> | FaultOf<'cable'>;

class DeviceFaults implements CommandFaults {
  readonly #hca: Hca;
  readonly #log: FaultLog;
  readonly #commands: readonly FaultOf<'command'>[];
  readonly #lasting: readonly Lasting[];
  readonly #cables: LastingChanges<CableFault>;
  /** Faults that have removed the device and last: its cables are disabled, whatever theirs say. */
  #absentCount = 0;
  /** Events counted so far for each command fault, and for each lasting fault. */
  readonly #begun: number[];
  readonly #seen: number[];
  readonly #stage: number;
  readonly #handler: number;
  /** Faults to begin (even) or end (odd) at the next edge, by twice their index. */
  readonly #due: number[] = [];

  constructor(
    hca: Hca,
    commands: readonly FaultOf<'command'>[],
    resets: readonly FaultOf<'reset'>[],
    timed: readonly TimedFault[],
    log: FaultLog,
  ) {
    this.#log = log;
    this.#hca = hca;
    this.#commands = commands;
    this.#lasting = [...resets, ...timed];
    this.#cables = new LastingChanges(
      ({ portNumber = 1 }) => `port ${portNumber}`,
      (fault, isBeginning) => this.#changeCable(fault, isBeginning),
    );
    this.#begun = commands.map(() => 0);
    this.#seen = this.#lasting.map(() => 0);
    const { lp, domain, control } = hca;
    this.#stage = domain.addStage(this.#run, this);
    this.#handler = lp.queue.addHandler((due) => {
      this.#due.push(due);
      domain.wakeAfter(this.#stage, lp.nowPs);
    });
    control.processor.faults = this;
    if (resets.length > 0)
      control.blocks.commandSet.registers.observeResets({
        resetWritten: () => this.#happened((fault) => fault.kind === 'reset'),
      });
    if (timed.some(({ after }) => after === ANY_ACCESS))
      hca.observeAccesses({
        barAccessed: () => this.#happened((fault) => 'after' in fault && fault.after === ANY_ACCESS),
      });
    for (const [index, fault] of this.#lasting.entries())
      if (fault.kind !== 'reset' && fault.after === undefined)
        lp.queue.schedule(fault.at ?? 0, this.#handler, index * 2);
  }

  begun(opcode: number): number {
    let answer = GO_ON;
    for (const [index, fault] of this.#commands.entries()) {
      const { command, nth, status } = fault;
      if (command !== ANY_COMMAND && command !== opcode) continue;
      this.#begun[index] = this.#begun[index]! + 1;
      if (answer !== GO_ON || !isNth(nth, this.#begun[index]!)) continue;
      answer = status === NO_STATUS ? NEVER_END : status;
      this.#log.fired(fault);
    }
    return answer;
  }

  ended(opcode: number): void {
    this.#happened((fault) => 'after' in fault && (fault.after === opcode || fault.after === ANY_COMMAND));
  }

  /** Handles an event that these faults count. */
  #happened(concerns: (fault: Lasting) => boolean): void {
    const { lp } = this.#hca;
    for (const [index, fault] of this.#lasting.entries()) {
      if (!concerns(fault)) continue;
      this.#seen[index] = this.#seen[index]! + 1;
      const nth: Nth = fault.nth;
      if (!isNth(nth, this.#seen[index]!)) continue;
      const delayPs = 'delay' in fault ? (fault.delay ?? 0) : 0;
      lp.queue.schedule(lp.nowPs + delayPs, this.#handler, index * 2);
    }
  }

  #run(cycle: number): void {
    const { lp } = this.#hca;
    // Events of the same instant may arrive in any order.
    this.#due.sort((left, right) => left - right);
    for (let due = this.#due.shift(); due !== undefined; due = this.#due.shift()) {
      const fault = this.#lasting[due >> 1]!;
      const isBeginning = due % 2 === 0;
      this.#apply(fault, isBeginning, cycle);
      if (isBeginning) this.#log.fired(fault);
      const lastsPs = 'for' in fault ? fault.for : undefined;
      if (isBeginning && lastsPs !== undefined) lp.queue.schedule(lp.nowPs + lastsPs, this.#handler, due + 1);
    }
  }

  #apply(fault: Lasting, isBeginning: boolean, cycle: number): void {
    const hca = this.#hca;
    const { control } = hca;
    switch (fault.kind) {
      case 'catastrophic':
        this.#die(fault.catastrophic, cycle);
        return;
      case 'device':
        this.#absentCount += isBeginning ? 1 : -1;
        if (this.#absentCount > 0) hca.setCableEnabled(false);
        else {
          hca.setCableEnabled(true);
          this.#cables.repeat();
        }
        hca.pcieFunction.setPresent(this.#absentCount === 0, cycle);
        return;
      case 'reset':
        this.#hca.pcieFunction.setPresent(!isBeginning, cycle);
        return;
      case 'semaphore':
        control.blocks.commandSet.registers.isSemaphoreStuck = isBeginning;
        return;
      case 'owner':
        control.blocks.commandSet.registers.isOwnerStuck = isBeginning;
        return;
      case 'port':
      case 'cable':
        if (isBeginning) this.#cables.begin(fault);
        else this.#cables.end(fault);
        return;
    }
  }

  #changeCable(fault: CableFault, isBeginning: boolean): void {
    if (this.#absentCount > 0) return;
    const isToRun = fault.kind === 'port' ? fault.port === 'up' : fault.cable === 'plugged';
    this.#hca.setCableEnabled(isToRun === isBeginning, fault.portNumber ?? 1);
  }

  /** The firmware fails: writes a code to the error buffer, sends a last event, and then stops until a reset. */
  #die(code: number, cycle: number): void {
    const { control } = this.#hca;
    control.blocks.commandSet.registers.setCatastrophicError(code);
    control.processor.halt(cycle);
    this.#hca.resetDataPath(cycle);
    control.events.writeAnew();
    if (control.events.canPost()) control.events.postAsync(EventType.LOCAL_CATAS_ERROR, 0, cycle);
  }
}
