/**
 * The command interface: posting to the HCR, polled until events flow and by completion event afterwards.
 *
 *   thread           HCR                          device                    async EQ
 *   wait for GO = 0 -> dwords 0…5, then dword 6 -> executes
 *   polled: read dword 6 until GO = 0 <----------- status, T as posted
 *   event:  wait for the slot's signal <---------------------------------- EQE 0x0a: token, status, out_param
 *
 * Promises: the register is touched by one thread at a time; the toggle inverts with every command posted and starts at 1 after
 * a reset; a token names its slot and its use, so that a late answer to an abandoned command is recognised and dropped. A
 * command that is not answered in time makes the device dead; so does a failed command that should have released a resource.
 * Waiting and later commands then fail at once with EIO, except those that release a resource: a dead device holds none. An
 * answer whose interrupt is lost is found by polling the event queue. Sources: interface sheet 2.2, 3.1 to 3.3; golden
 * captures, observation 11.
 */
import {
  bar0,
  type CommandName,
  CommandStatus,
  commands,
  hcr,
  hcrGoOffset,
  pollingToken,
} from '../abi/index.ts';
import { highWordOf, joinWords, lowWordOf, msToPs, nsToPs, usToPs, viewOf } from '../base/index.ts';
import { closingCommands, type DeviceLifecycle } from './device-lifecycle.ts';
import { CommandFailure, KernelError } from './kernel-error.ts';
import { MailboxPool } from './mailbox-pool.ts';
import { Mutex } from './mutex.ts';
import type { DriverConfig } from './parameters.ts';
import { isConfigured } from './pci.ts';
import type { Cpu, DriverPlatform, Signal } from './platform.ts';

/** A command as its caller sees it; parameters left out are 0. */
export interface Command {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  /** Immediate value or mailbox address. */
  readonly input?: number | bigint;
  /** Mailbox address of the answer. */
  readonly output?: number;
}

/** One command in flight in event mode. */
interface Slot {
  readonly index: number;
  readonly answered: Signal;
  token: number;
  isAnswered: boolean;
  status: number;
  immediate: number;
}

interface Answer {
  readonly status: number;
  readonly immediate: number;
}

const allOnes = 0xffff_ffff;
/** Time during which the register is polled at even intervals. */
const patiencePs = msToPs(1);
const goDword = hcrGoOffset;
const outHighDword = hcr.fields.outParam.wordOffset;

export class CommandInterface {
  readonly mailboxes: MailboxPool;
  /** Commands posted since the driver was loaded. */
  postedCount = 0;
  /** Completion events whose token belonged to no outstanding command. */
  unexpectedAnswers = 0;
  /** Commands whose event was found by polling, without its interrupt. */
  recoveredAnswers = 0;
  private readonly platform: DriverPlatform;
  private readonly config: DriverConfig;
  private readonly registerLock: Mutex;
  private readonly slotFreed: Signal;
  private readonly registers = new Uint8Array(hcr.sizeBytes);
  private readonly view = viewOf(this.registers);
  private readonly idleSlots: Slot[] = [];
  private readonly slots: Slot[] = [];
  private toggle = 1;
  private readonly lifecycle: DeviceLifecycle;
  private posted: (() => void) | undefined;
  private pollEvents: ((cpu: Cpu) => Promise<void>) | undefined;

  constructor(platform: DriverPlatform, config: DriverConfig, lifecycle: DeviceLifecycle) {
    this.platform = platform;
    this.config = config;
    this.mailboxes = new MailboxPool(platform.memory);
    this.registerLock = new Mutex(() => platform.newSignal());
    this.slotFreed = platform.newSignal();
    this.lifecycle = lifecycle;
    lifecycle.onDeath(() => this.wakeAll());
  }

  /** Whether answers come by event. */
  get isEventDriven(): boolean {
    return this.slots.length > 0;
  }

  /** From now on commands complete by event; `outstandingMax` is what the firmware allows. */
  useEvents(outstandingMax: number): void {
    const count = Math.max(1, Math.min(outstandingMax, this.config.commandsInFlightMax));
    for (let index = count - 1; index >= 0; index--) {
      const answered = this.platform.newSignal();
      this.slots[index] = { index, answered, token: index, isAnswered: false, status: 0, immediate: 0 };
      this.idleSlots.push(this.slots[index]!);
    }
    // Linux keeps one of the contexts free; with a single context, it is used nevertheless.
    if (count > 1) this.idleSlots.shift();
  }

  /** Sets how a command's event is polled for when its interrupt does not come. */
  onLateEvent(poll: (cpu: Cpu) => Promise<void>): void {
    this.pollEvents = poll;
  }

  /** Calls `listener` with each command posted. */
  onPosted(listener: () => void): void {
    this.posted = listener;
  }

  /** Returns to polling, for removal; no command may be outstanding. */
  usePolling(): void {
    this.slots.length = 0;
    this.idleSlots.length = 0;
  }

  /**
   * Runs a command. @returns the immediate result, 0 for commands without one. Throws {@link CommandFailure}. A device that is
   * dead or was reset holds no resources: commands that release one succeed. A command that fails to release a resource of a
   * working device makes the device dead.
   */
  async execute(cpu: Cpu, name: CommandName, command: Command = {}): Promise<number> {
    try {
      return await this.executeAlive(cpu, name, command);
    } catch (error) {
      if (!closingCommands.has(name) || !(error instanceof KernelError)) throw error;
      const status = error instanceof CommandFailure ? error.status : -1;
      if (status === CommandStatus.REG_BOUND) throw error;
      if (status !== CommandStatus.BAD_SYS_STATE) this.lifecycle.die(error.message);
      return 0;
    }
  }

  private async executeAlive(cpu: Cpu, name: CommandName, command: Command): Promise<number> {
    this.checkAlive(name);
    const answer = this.isEventDriven
      ? await this.executeByEvent(cpu, name, command)
      : await this.registerLock.run(cpu, () => this.executePolled(cpu, name, command));
    cpu.charge('driver', this.platform.costs.commandComplete);
    if (answer.status !== 0) throw new CommandFailure(name, answer.status);
    return answer.immediate;
  }

  /** Runs a command with an input mailbox, which `fill` writes into memory at `address`. */
  async executeWithMailbox(
    cpu: Cpu,
    name: CommandName,
    command: Omit<Command, 'input'>,
    fill: (bytes: Uint8Array, address: number) => void,
  ): Promise<number> {
    const input = this.mailboxes.take();
    try {
      fill(this.platform.memory.bytes, input);
      return await this.execute(cpu, name, { ...command, input });
    } finally {
      this.mailboxes.give(input);
    }
  }

  /** Runs a command with an output mailbox and returns what `read` makes of it. */
  async query<T>(
    cpu: Cpu,
    name: CommandName,
    command: Omit<Command, 'output'>,
    read: (bytes: Uint8Array, address: number) => T,
  ): Promise<T> {
    const output = this.mailboxes.take();
    try {
      await this.execute(cpu, name, { ...command, output });
      await cpu.settle();
      return read(this.platform.memory.bytes, output);
    } finally {
      this.mailboxes.give(output);
    }
  }

  /** Handles a completion event; called by the asynchronous event queue. */
  completeByEvent(token: number, status: number, immediate: number): void {
    const slot = this.slots[token & (this.tokenStep - 1)];
    if (slot === undefined || slot.token !== token || slot.isAnswered) {
      this.unexpectedAnswers++;
      return;
    }
    slot.isAnswered = true;
    slot.status = status;
    slot.immediate = immediate;
    slot.answered.raise();
  }

  /** Tokens count up in steps that leave the slot's index in the low bits. */
  private get tokenStep(): number {
    return 1 << Math.ceil(Math.log2(Math.max(2, this.slots.length)));
  }

  private async executePolled(cpu: Cpu, name: CommandName, command: Command): Promise<Answer> {
    await this.waitUntilFree(cpu, name, this.config.commandLimitUs);
    this.post(cpu, name, command, pollingToken);
    await this.waitUntilFree(cpu, name, this.config.commandLimitUs);
    const status = hcr.fields.status.get(this.view, 0);
    const hasImmediate = commands[name].output === 'immediate' && status === 0;
    return { status, immediate: hasImmediate ? await this.readOutParam(cpu) : 0 };
  }

  private async executeByEvent(cpu: Cpu, name: CommandName, command: Command): Promise<Answer> {
    const slot = await this.takeSlot(cpu);
    try {
      slot.token = (slot.token + this.tokenStep) & 0xffff;
      slot.isAnswered = false;
      await this.registerLock.run(cpu, async () => {
        await this.waitUntilFree(cpu, name, this.config.commandGoLimitUs);
        this.post(cpu, name, command, slot.token);
      });
      const watch = this.platform.stopwatch();
      const limitPs = usToPs(this.limitUsOf(name));
      while (!slot.isAnswered) {
        this.checkAlive(name);
        const restPs = limitPs - watch.elapsedPs;
        if (restPs <= 0) this.giveUp(name);
        else await this.waitForEvent(cpu, slot, restPs);
      }
      return { status: slot.status, immediate: slot.immediate };
    } finally {
      this.giveSlot(slot);
    }
  }

  /** Waits for the event, and polls the event queue when it is late. */
  private async waitForEvent(cpu: Cpu, slot: Slot, restPs: number): Promise<void> {
    const patiencePs = Math.min(restPs, usToPs(this.config.eventPollUs));
    if (await slot.answered.wait(cpu, patiencePs)) return;
    if (slot.isAnswered || this.lifecycle.isDead) return;
    await this.pollEvents?.(cpu);
    if (!slot.isAnswered) return;
    this.recoveredAnswers++;
    this.platform.log?.('a command event was found by polling: its interrupt is lost');
  }

  private giveUp(name: CommandName): never {
    // The interrupt test expects this failure on a device without working interrupts, and tries another way.
    if (name !== 'NOP') this.lifecycle.die(`${name} was not answered by an event`);
    throw new KernelError('ETIMEDOUT', `${name} was not answered by an event`);
  }

  private checkAlive(name: CommandName): void {
    const { reason } = this.lifecycle;
    if (reason !== undefined) throw new KernelError('EIO', `${name}: the device is dead (${reason})`);
  }

  /** The device has died: its waiting thread gets the error. */
  private wakeAll(): void {
    for (const slot of this.slots) slot.answered.raise();
    this.slotFreed.raise();
  }

  private limitUsOf(name: CommandName): number {
    return name === 'NOP' ? this.config.interruptTestLimitUs : this.config.commandLimitUs;
  }

  private async takeSlot(cpu: Cpu): Promise<Slot> {
    let slot = this.idleSlots.pop();
    while (slot === undefined) {
      if (this.lifecycle.isDead) throw new KernelError('EIO', 'the device is dead');
      await this.slotFreed.wait(cpu);
      slot = this.idleSlots.pop();
    }
    return slot;
  }

  private giveSlot(slot: Slot): void {
    this.idleSlots.push(slot);
    this.slotFreed.raise();
  }

  /** Writes the seven dwords; the last one starts the command. */
  private post(cpu: Cpu, name: CommandName, command: Command, token: number): void {
    const { input = 0, output = 0, inputModifier = 0, opcodeModifier = 0 } = command;
    hcr.encodeInto(
      {
        inParam: (BigInt(highWordOf(input)) << 32n) | BigInt(lowWordOf(input)),
        inputModifier,
        outParam: BigInt(output),
        token,
        go: 1,
        event: token === pollingToken ? 0 : 1,
        toggle: this.toggle,
        opcodeModifier,
        opcode: commands[name].opcode,
      },
      this.registers,
    );
    cpu.charge('driver', this.platform.costs.commandPost);
    for (let offset = 0; offset <= goDword; offset += 4) {
      cpu.mmioWrite32(this.addressOf(offset), this.view.getUint32(offset, true));
    }
    this.toggle ^= 1;
    this.postedCount++;
    this.posted?.();
  }

  /** The register is busy while GO is 1, or while T equals the toggle of the next command. */
  private async waitUntilFree(cpu: Cpu, name: CommandName, limitUs: number): Promise<void> {
    const watch = this.platform.stopwatch();
    const limitPs = usToPs(limitUs);
    for (;;) {
      this.view.setUint32(goDword, await cpu.mmioRead32(this.addressOf(goDword)), true);
      const isBusy =
        hcr.fields.go.get(this.view, 0) === 1 || hcr.fields.toggle.get(this.view, 0) === this.toggle;
      if (!isBusy) return;
      if (this.view.getUint32(goDword) === allOnes && !(await isConfigured(cpu, this.platform)))
        this.lifecycle.die('the device is gone: all its registers read as ones');
      this.checkAlive(name);
      if (watch.elapsedPs >= limitPs) {
        this.lifecycle.die(`${name}: the command register stays busy`);
        throw new KernelError('ETIMEDOUT', `${name}: the command register stays busy`);
      }
      await cpu.sleep(this.pollPausePs(watch.elapsedPs));
    }
  }

  /** Pause before the next poll: constant at first, then a fraction of the time waited so far, for long commands. */
  private pollPausePs(waitedPs: number): number {
    return Math.max(
      nsToPs(this.config.commandPollIntervalNs),
      waitedPs < patiencePs ? 0 : Math.round(waitedPs / 16),
    );
  }

  private async readOutParam(cpu: Cpu): Promise<number> {
    this.view.setUint32(outHighDword, await cpu.mmioRead32(this.addressOf(outHighDword)), true);
    this.view.setUint32(outHighDword + 4, await cpu.mmioRead32(this.addressOf(outHighDword + 4)), true);
    return joinWords(
      hcr.fields.outParam.getHighWord(this.view, 0),
      hcr.fields.outParam.getLowWord(this.view, 0),
    );
  }

  private addressOf(offset: number): number {
    return this.platform.pci.bars[0]!.address + bar0.registers.hcr.offset + offset;
  }
}
