/**
 * Event queues: a ring in host memory that the device fills and an interrupt handler empties.
 *
 *   SW2HW_EQ -> device writes EQEs -> interrupt -> handler: settle, take entries whose owner bit is of this pass,
 *   dispatch, ring the consumer counter every 128 entries, at the end ring and arm
 *
 * Promises: an entry is read only after its owner bit says so; the queue is armed once per interrupt, after the last
 * entry found, and the device raises the next interrupt at once if more came meanwhile (interface sheet 6.10).
 */
import {
  Bar,
  EqArmState,
  eqc,
  eqDoorbell,
  eqDoorbellOffset,
  eqe,
  eqeBytes,
  icmPageBytes,
} from '../abi/index.ts';
import { advance, log2Exact, mask24, passBit, ringIndex, viewOf } from '../base/index.ts';
import type { CommandInterface } from './command-interface.ts';
import { givePages, type Run, takePages } from './donation.ts';
import type { MttTable, Translation } from './mtt-table.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const entriesPerPage = icmPageBytes / eqeBytes;

/** Services of the driver for an event queue. */
export interface EqEnvironment {
  readonly platform: DriverPlatform;
  readonly commands: CommandInterface;
  readonly mtts: MttTable;
  readonly updateInterval: number;
  /** Handles the EQE at a physical address. */
  dispatch(address: number): void;
}

export class EventQueue {
  readonly eqn: number;
  /** MSI-X table entry, or the legacy pin. */
  readonly interruptNumber: number;
  /** Events taken out so far. */
  handledEvents = 0;
  private readonly environment: EqEnvironment;
  private readonly logEntries: number;
  private readonly runs: readonly Run[];
  private readonly frames: readonly number[];
  private readonly doorbell = viewOf(new Uint8Array(eqDoorbell.sizeBytes));
  private consumerCounter = 0;
  private translation: Translation | undefined;

  private constructor(environment: EqEnvironment, eqn: number, entries: number, interruptNumber: number) {
    this.environment = environment;
    this.eqn = eqn;
    this.interruptNumber = interruptNumber;
    this.logEntries = log2Exact(entries);
    const { memory } = environment.platform;
    this.runs = takePages(memory, Math.max(1, entries / entriesPerPage));
    this.frames = framesOf(this.runs);
  }

  /** Allocates the ring, translates it and gives it to the device, armed. */
  static async create(
    cpu: Cpu,
    environment: EqEnvironment,
    eqn: number,
    entries: number,
    interruptNumber: number,
  ): Promise<EventQueue> {
    const queue = new EventQueue(environment, eqn, entries, interruptNumber);
    try {
      await queue.handOver(cpu);
    } catch (error) {
      await queue.giveBack(cpu);
      throw error;
    }
    return queue;
  }

  /** Takes it back from the device and frees its memory, even if the device refuses. */
  async destroy(cpu: Cpu): Promise<void> {
    try {
      await this.environment.commands.execute(cpu, 'HW2SW_EQ', {
        inputModifier: this.eqn,
        opcodeModifier: 1,
      });
    } finally {
      await this.giveBack(cpu);
    }
  }

  /** Whether the device has written entries that were not read yet. */
  get hasEntries(): boolean {
    return this.nextEntry() >= 0;
  }

  /** The interrupt handler. */
  async handleInterrupt(cpu: Cpu): Promise<void> {
    const { costs } = this.environment.platform;
    cpu.charge('interrupt', costs.interruptHandler);
    await cpu.settle();
    let sinceUpdate = 0;
    for (let address = this.nextEntry(); address >= 0; address = this.nextEntry()) {
      cpu.charge('interrupt', costs.eventDispatch);
      this.consumerCounter = advance(this.consumerCounter, 1, mask24);
      this.handledEvents++;
      this.environment.dispatch(address);
      if (++sinceUpdate === this.environment.updateInterval) {
        this.ring(cpu, 0);
        sinceUpdate = 0;
      }
    }
    this.ring(cpu, 1);
  }

  /** Writes the consumer counter to the device, and arms the queue with `arm` 1. */
  ring(cpu: Cpu, arm: 0 | 1): void {
    eqDoorbell.fields.arm.set(this.doorbell, 0, arm);
    eqDoorbell.fields.consumerCounter.set(this.doorbell, 0, this.consumerCounter);
    const address = this.environment.platform.pci.bars[Bar.UAR]!.address + eqDoorbellOffset(this.eqn);
    cpu.mmioWrite32(address, this.doorbell.getUint32(0, true));
  }

  private async handOver(cpu: Cpu): Promise<void> {
    const { mtts, commands } = this.environment;
    const translation = await mtts.translate(cpu, { pages: this.frames, pageCount: this.frames.length }, 0);
    this.translation = translation;
    await commands.executeWithMailbox(cpu, 'SW2HW_EQ', { inputModifier: this.eqn }, (bytes, address) => {
      eqc.encodeInto(
        {
          armState: EqArmState.ARMED,
          logEntries: this.logEntries,
          interruptNumber: this.interruptNumber,
          logPageSize4k: translation.logPageBytes - log2Exact(icmPageBytes),
          mttAddress: translation.mttAddress,
        },
        bytes,
        address,
      );
    });
  }

  private async giveBack(cpu: Cpu): Promise<void> {
    try {
      if (this.translation !== undefined) await this.environment.mtts.release(cpu, this.translation);
    } finally {
      givePages(this.environment.platform.memory, this.runs);
    }
  }

  /** Physical address of the next entry that is software's, or -1. */
  private nextEntry(): number {
    const index = ringIndex(this.consumerCounter, this.logEntries);
    const address = this.frames[Math.floor(index / entriesPerPage)]! + (index % entriesPerPage) * eqeBytes;
    const isOurs =
      eqe.fields.owner.get(this.environment.platform.memory.view, address) ===
      passBit(this.consumerCounter, this.logEntries);
    return isOurs ? address : -1;
  }
}

function framesOf(runs: readonly Run[]): readonly number[] {
  const frames: number[] = [];
  for (const run of runs) {
    for (let page = 0; page < run.pages; page++) frames.push(run.address + page * icmPageBytes);
  }
  return frames;
}
