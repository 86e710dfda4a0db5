/**
 * The command processor: fetches one command at a time from the source of the card's commands and runs it to its end.
 *
 *   source ──> latch ──> decode (cycles) ──> work: DMA, cycles, conditions ──> source, or an event
 *               │ by event: the source accepts the next command meanwhile, which waits there
 *
 * Promises: commands end in the order in which they were posted; all of a command's writes have left towards the host
 * before its completion can be seen; a rejected command has changed nothing.
 */

import { CommandStatus } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../../sim/index.ts';
import type { CommandDma } from './command-dma.ts';
import type { ControlConfig } from './command-parameters.ts';
import {
  CommandRejection,
  type CommandRequest,
  type CommandStep,
  type OutImmediate,
  type Steps,
} from './command-steps.ts';

/** Reasons for which the command processor stalls. */
const stalls = stallReasons('dmaRead', 'dmaWrite', 'pipelineBusy', 'eventFifoFull');
const {
  dmaRead: STALL_DMA_READ,
  dmaWrite: STALL_DMA_WRITE,
  pipelineBusy: STALL_PIPELINE_BUSY,
  eventFifoFull: STALL_EVENT_FIFO_FULL,
} = stalls;

/** The steps of a command, and the cycles of its class. */
export interface StartedCommand {
  readonly steps: Steps<OutImmediate | undefined>;
  readonly cycles: number;
}

/** The commands of a card. */
export interface Commands {
  /** Begins a command. @throws CommandRejection when it may not run now */
  start(request: CommandRequest): StartedCommand;
}

/** The register or queue in which software posts commands. It notifies the processor of each. */
export interface CommandSource {
  /** A command has been posted and not yet latched. */
  readonly isPosted: boolean;
  /** Hands the posted command to the processor. */
  latch(): CommandRequest;
  /** A command whose completion software polls has ended. */
  complete(status: number, result: OutImmediate | undefined): void;
}

/** Faults injected into commands, and their counter. */
export interface CommandFaults {
  /**
   * Notes that a command is about to begin. @returns the status with which it ends instead, GO_ON or NEVER_END
   */
  begun(opcode: number): number;
  /** Notes that a command has been completed, with any status. */
  ended(opcode: number, cycle: Cycles): void;
}
/** The command is carried out. */
export const GO_ON = -1;
/** The command is forgotten: software gets no answer to it. */
export const NEVER_END = -2;

/** Destination of the completions of commands that complete by event. */
interface CommandEvents {
  canPost(): boolean;
  postCommand(token: number, status: number, high: number, low: number, cycle: Cycles): void;
}

export interface CommandProcessorSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<ControlConfig, 'commandDecodeCycles' | 'conditionPollCycles'>;
}

export interface CommandProcessorPorts {
  readonly source: CommandSource;
  readonly commands: Commands;
  readonly dma: CommandDma;
  readonly events: CommandEvents;
}

/** A command with its form: opcode and opcode modifier, of 12 and 4 bits. */
const operationOf = ({ opcode, opcodeModifier }: CommandRequest): number => opcode * 16 + opcodeModifier;

/** Phase of the current command: its next event, or the condition for which it waits. */
type Phase = 'idle' | 'decode' | 'work' | 'dma' | 'condition' | 'completing';

export class CommandProcessor {
  readonly account = new BlockAccount('commandProcessor', stalls);
  /** Commands completed, by opcode. */
  readonly completedByOpcode = new Map<number, number>();
  /** Cycles from latching to completing those, by opcode. */
  readonly takenCyclesByOpcode = new Map<number, number>();
  /**
   * Commands that the device does not implement, counted by {@link operationOf}: at most 2^16 keys.
   */
  readonly badOperations = new Map<number, number>();
  /** Faults to inject; undefined for none. */
  faults: CommandFaults | undefined;
  /** The firmware has died: no command is latched until a reset. */
  #isHalted = false;
  readonly #domain: ClockDomain;
  readonly #decodeCycles: number;
  readonly #pollCycles: number;
  readonly #stage: number;
  #source!: CommandSource;
  #commands!: Commands;
  #dma!: CommandDma;
  #events!: CommandEvents;
  #phase: Phase = 'idle';
  #request: CommandRequest | undefined;
  #latchedCycle = 0;
  #steps: Steps<OutImmediate | undefined> | undefined;
  #condition: () => boolean = () => true;
  #pendingRead = 0;
  #dmaStatus = 0;
  #status = 0;
  #result: OutImmediate | undefined;

  constructor({ domain, config }: CommandProcessorSetup) {
    this.#domain = domain;
    this.#decodeCycles = config.commandDecodeCycles;
    this.#pollCycles = config.conditionPollCycles;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect({ source, commands, dma, events }: CommandProcessorPorts): void {
    this.#source = source;
    this.#commands = commands;
    this.#dma = dma;
    this.#events = events;
  }

  /** Software has posted a command. */
  posted(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle + 1);
  }

  get isIdle(): boolean {
    return this.#phase === 'idle' && !this.#source.isPosted;
  }

  /** The DMA operation under way has ended. */
  dmaDone(status: number, cycle: Cycles): void {
    this.#dmaStatus = status;
    this.#phase = 'work';
    this.#domain.wake(this.#stage, cycle + 1);
  }

  /** Reset: the current command is forgotten without a trace. */
  reset(cycle: Cycles): void {
    this.#isHalted = false;
    this.#forget(cycle);
    this.#dma.reset();
  }

  /** The firmware dies: the current command never ends, and no other is latched until a reset. */
  halt(cycle: Cycles): void {
    this.#isHalted = true;
    this.#forget(cycle);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      phase: this.#phase,
      isHalted: this.#isHalted,
      opcode: this.#request?.opcode ?? 0,
      dma: this.#dma.inspect(),
    };
  }

  #forget(cycle: Cycles): void {
    this.#dma.cancel();
    this.#phase = 'idle';
    this.#abandon();
    this.#request = undefined;
    this.account.rest(Math.max(cycle, this.account.freeCycle));
  }

  /** Releases everything that the command has claimed, whatever its step. */
  #abandon(): void {
    this.#steps?.return(undefined);
    this.#steps = undefined;
  }

  #run(cycle: Cycles): void {
    // The next command may be posted while this one is being executed, without hurrying it.
    if (this.account.freeCycle > cycle) {
      this.#domain.wake(this.#stage, this.account.freeCycle);
      return;
    }
    switch (this.#phase) {
      case 'idle':
        this.#latch(cycle);
        return;
      case 'decode':
        this.#begin(cycle);
        return;
      case 'work':
        this.#resume(cycle);
        return;
      case 'condition':
        this.#poll(cycle);
        return;
      case 'completing':
        this.#complete(cycle);
        return;
      case 'dma':
        return;
    }
  }

  #latch(cycle: Cycles): void {
    if (!this.#source.isPosted || this.#isHalted) return;
    this.#request = this.#source.latch();
    this.#latchedCycle = cycle;
    this.#result = undefined;
    this.#status = CommandStatus.OK;
    this.#phase = 'decode';
    this.#spend(this.#decodeCycles, cycle);
  }

  #begin(cycle: Cycles): void {
    this.#phase = 'work';
    const fault = this.faults?.begun(this.#request!.opcode) ?? GO_ON;
    if (fault !== GO_ON) {
      if (fault === NEVER_END) this.#forget(cycle);
      else this.#end(fault, cycle);
      return;
    }
    this.#attempt(cycle, () => {
      const { steps, cycles } = this.#commands.start(this.#request!);
      this.#steps = steps;
      this.#pendingRead = 0;
      this.#dmaStatus = 0;
      this.#spend(cycles, cycle);
    });
  }

  /** Carries the command on to its next wait. */
  #resume(cycle: Cycles): void {
    if (this.#dmaStatus !== 0) {
      // The host does not answer for a mailbox or a table: the command cannot continue.
      this.#dmaStatus = 0;
      this.#end(CommandStatus.INTERNAL_ERR, cycle);
      return;
    }
    this.#attempt(cycle, () => {
      const input = this.#pendingRead > 0 ? this.#dma.readBytes(this.#pendingRead) : NOTHING;
      this.#pendingRead = 0;
      const next = this.#steps!.next(input);
      if (next.done === true) {
        this.#result = next.value;
        this.#end(CommandStatus.OK, cycle);
      } else {
        this.#take(next.value, cycle);
      }
    });
  }

  #take(step: CommandStep, cycle: Cycles): void {
    switch (step.kind) {
      case 'read':
        this.#dma.startRead(step.address, step.lengthBytes);
        this.#pendingRead = step.lengthBytes;
        this.#waitForDma(STALL_DMA_READ, cycle);
        return;
      case 'write':
        this.#dma.startWrite(step.address, step.bytes);
        this.#waitForDma(STALL_DMA_WRITE, cycle);
        return;
      case 'fill':
        this.#dma.startFill(step.address, step.lengthBytes, step.pattern);
        this.#waitForDma(STALL_DMA_WRITE, cycle);
        return;
      case 'wait':
        this.#spend(step.cycles, cycle);
        return;
      case 'until':
        this.#condition = step.isTrue;
        this.#phase = 'condition';
        this.#poll(cycle);
        return;
    }
  }

  #poll(cycle: Cycles): void {
    if (this.#condition()) {
      this.#phase = 'work';
      this.#domain.wake(this.#stage, cycle + 1);
      return;
    }
    this.account.stall(cycle, STALL_PIPELINE_BUSY);
    this.#domain.wake(this.#stage, cycle + this.#pollCycles);
  }

  #complete(cycle: Cycles): void {
    const domain = this.#domain;
    const events = this.#events;
    const request = this.#request!;
    if (request.byEvent && !events.canPost()) {
      this.account.stall(cycle, STALL_EVENT_FIFO_FULL);
      domain.wake(this.#stage, cycle + this.#pollCycles);
      return;
    }
    if (request.byEvent) {
      const { high, low } = this.#result ?? ZERO;
      events.postCommand(request.token, this.#status, high, low, cycle);
    } else {
      this.#source.complete(this.#status, this.#result);
    }
    increment(this.completedByOpcode, request.opcode);
    increment(this.takenCyclesByOpcode, request.opcode, cycle - this.#latchedCycle);
    if (this.#status === CommandStatus.BAD_OP) increment(this.badOperations, operationOf(request));
    this.faults?.ended(request.opcode, cycle);
    this.#phase = 'idle';
    this.#steps = undefined;
    this.#request = undefined;
    this.account.serve(cycle, 1);
    domain.wake(this.#stage, cycle + 1);
  }

  #end(status: number, cycle: Cycles): void {
    this.#status = status;
    if (status !== CommandStatus.OK) this.#result = undefined;
    this.#abandon();
    this.#phase = 'completing';
    this.#complete(cycle);
  }

  /** Runs a piece of the command; a rejection in it ends the command with its status. */
  #attempt(cycle: Cycles, piece: () => void): void {
    try {
      piece();
    } catch (cause) {
      if (!(cause instanceof CommandRejection)) throw cause;
      this.#end(cause.status, cycle);
    }
  }

  #waitForDma(reason: number, cycle: Cycles): void {
    this.#phase = 'dma';
    this.account.stall(cycle, reason);
  }

  #spend(cycles: number, cycle: Cycles): void {
    this.account.serve(cycle, Math.max(cycles, 1));
    this.#domain.wake(this.#stage, cycle + Math.max(cycles, 1));
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#latchedCycle -= cycles;
  }
}

const NOTHING = new Uint8Array(0);
const ZERO: OutImmediate = { high: 0, low: 0 };

const increment = (counts: Map<number, number>, key: number, by = 1): void => {
  counts.set(key, (counts.get(key) ?? 0) + by);
};
