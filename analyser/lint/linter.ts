/**
 * The linter: checks every access against the rules. The rules depend on earlier accesses, so it uses the followed
 * device (follow/device-view.ts) and never queries the device itself.
 */
import { type CommandName, mpt } from '../../abi/index.ts';
import { objectsOf } from '../command-boxes.ts';
import type { ObservedCommand } from '../follow/command-register.ts';
import { type DeviceView, Phase } from '../follow/device-view.ts';
import { tableAt } from '../follow/icm-map.ts';
import type { MemoryReader } from '../host-memory-reader.ts';
import { checkIndex, checkParameters, checkPhase, checkRegister, checkState } from './command-rules.ts';
import { hex, LintContext } from './context.ts';
import { ContextShadow } from './context-shadow.ts';
import type { Findings } from './findings.ts';
import { checkDonation, checkPlaces, checkRemoval } from './memory-rules.ts';

/** Name of a command as the offending access. */
const commandAccess = ({ name, opcode, inputModifier, opcodeModifier }: ObservedCommand): string =>
  `command ${name ?? hex(opcode)}, in_mod ${hex(inputModifier)}, op_mod ${opcodeModifier}`;

export class Linter {
  readonly context: LintContext;
  readonly #shadow = new ContextShadow();
  #lastToggle = 0;
  readonly #tokens = new Set<number>();

  constructor(view: DeviceView, memory: MemoryReader, findings: Findings) {
    this.context = new LintContext(view, memory, findings);
  }

  get #view(): DeviceView {
    return this.context.view;
  }

  hcrAccess(lengthBytes: number, nowPs: number): void {
    this.context.beginAccess(`an access of ${lengthBytes} bytes`, nowPs);
    this.context.report('hcr-access', 'HCR', `an access of ${lengthBytes} bytes`);
  }

  commandPosted(command: ObservedCommand, before: ObservedCommand | undefined): void {
    const lint = this.context;
    lint.beginAccess(commandAccess(command), command.postedPs);
    checkRegister(lint, command, before, this.#lastToggle, this.#tokens);
    this.#lastToggle = command.toggle;
    if (command.isByEvent) this.#tokens.add(command.token);
    if (!isNamed(command)) return;
    checkParameters(lint, command);
    checkPhase(lint, command);
    checkIndex(lint, command);
    checkState(lint, command);
    checkDonation(lint, command);
    checkRemoval(lint, command);
    checkPlaces(lint, command);
    if (command.name === 'CLOSE_HCA') this.#checkLeft('left-at-close', 'CLOSE_HCA');
  }

  /** Runs before the followed device applies the command. */
  commandFinished(command: ObservedCommand): void {
    if (command.isByEvent) this.#tokens.delete(command.token);
    if (command.status !== 0) return;
    const { name } = command;
    if (name === 'UNMAP_ICM') this.#shadow.forgetPages(command.inParam, command.inputModifier);
    else if (name === 'CLOSE_HCA') this.#shadow.clear();
    else if (name === 'HW2SW_MPT')
      this.#shadow.forget(
        this.#view.entryAddress('dMPT', objectsOf(command as NamedCommand).mpt!),
        mpt.sizeBytes,
      );
  }

  /** Handles a write of the device to memory. */
  deviceWrote(address: number, bytes: Uint8Array): void {
    const icmAddress = this.#view.icm.icmAddressOf(address);
    if (icmAddress >= 0) this.#shadow.written(icmAddress, bytes);
  }

  /** Handles a read of the device from ICM. */
  deviceReadIcm(icmAddress: number, bytes: Uint8Array, nowPs: number): void {
    const at = this.#shadow.firstDifference(icmAddress, bytes);
    if (at === -1) return;
    const table = tableAt(this.#view.tables, icmAddress);
    if (table === undefined || table.name === 'MTT') return;
    const index = Math.floor((icmAddress - table.base) / table.entryBytes);
    this.context.beginAccess(`a read of ${bytes.length} bytes at ICM ${hex(icmAddress)}`, nowPs);
    const rule = table.name === 'dMPT' ? 'mpt-changed' : 'context-changed';
    this.context.report(
      rule,
      `${table.name} ${hex(index)}`,
      `byte ${hex((icmAddress - table.base + at) % table.entryBytes)} is not as the device wrote it`,
    );
  }

  /** Handles a request of the device to an address without memory. */
  dmaOutside(what: string, object: string, address: number, lengthBytes: number, nowPs: number): void {
    this.context.beginAccess(`${what} of ${lengthBytes} bytes at ${hex(address)}`, nowPs);
    this.context.report(
      'dma-outside',
      object,
      `${what} of ${lengthBytes} bytes at ${hex(address)}: no memory exists there`,
    );
  }

  /** Handles a write to the owner register: the driver has released the device. */
  released(nowPs: number): void {
    const view = this.#view;
    this.context.beginAccess('a write of the owner register', nowPs);
    if (view.phase === Phase.INITIALISED)
      this.context.report('left-at-release', 'HCA', 'CLOSE_HCA was not issued');
    const left: readonly (readonly [string, number])[] = [
      ['ICM', view.icm.pageCount],
      ['AUX', view.auxiliaryPages],
      ['FA', view.firmwarePages],
    ];
    for (const [what, pages] of left)
      if (pages > 0) this.context.report('left-at-release', what, `${pages} pages are still with the device`);
  }

  /** Handles the start of a reset. */
  reset(why: string, nowPs: number): void {
    this.context.beginAccess(why, nowPs);
    this.#checkLeft('left-at-reset', 'reset');
    const pages = this.#view.icm.pageCount;
    if (pages > 0) this.context.report('left-at-reset', 'ICM', `${pages} pages are still with the device`);
    this.#shadow.clear();
    this.#tokens.clear();
    this.#lastToggle = 0;
  }

  #checkLeft(rule: 'left-at-close' | 'left-at-reset', when: string): void {
    const view = this.#view;
    const left: readonly (readonly [string, ReadonlyMap<number, unknown>])[] = [
      ['QPs', view.qps],
      ['CQs', view.cqs],
      ['SRQs', view.srqs],
      ['EQs', view.eqs],
      ['MPTs', view.mpts],
    ];
    for (const [what, table] of left) {
      if (table.size === 0) continue;
      const some = [...table.keys()].slice(0, 4).map(hex).join(', ');
      this.context.report(rule, what, `${table.size} live at ${when}: ${some}${table.size > 4 ? ', …' : ''}`);
    }
    if (view.openPorts.size > 0 && rule === 'left-at-close')
      this.context.report(rule, 'ports', `open at ${when}: ${[...view.openPorts].join(', ')}`);
  }
}

type NamedCommand = ObservedCommand & { readonly name: CommandName };
const isNamed = (command: ObservedCommand): command is NamedCommand => command.name !== undefined;
