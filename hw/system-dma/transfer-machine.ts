/**
 * The machine that moves words, one at a time: it requests the bus for a channel, holds it for a word's cycle, including the
 * device's wait states, and releases it.
 */
import { systemDmaChannelCount, systemDmaWordBytes } from '../../abi/nic/index.ts';
import { type BusAddress, type Cycles, type Picoseconds, viewOf } from '../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  stallReasons,
} from '../../sim/index.ts';
import type { AccessDone, HostMemory, StoreSender } from '../pcie/index.ts';
import type { MemoryBus } from './memory-bus.ts';
import type { SystemDmaConfig } from './parameters.ts';
import type { SystemDmaChannel } from './system-dma-channel.ts';
import type { SystemDmaPorts } from './system-dma-ports.ts';

const NO_CHANNEL = -1;

const stalls = stallReasons('bus', 'device');
const { bus: STALL_BUS, device: STALL_DEVICE } = stalls;

/** Next action of the controller. */
const IDLE = 0;
const ASK = 1;
const WORD = 2;
const STORE = 3;
const LOADING = 4;
const LOADED = 5;
const REST = 6;
const stepNames = ['idle', 'ask', 'word', 'store', 'loading', 'loaded', 'rest'] as const;
/** Channel 0 is checked first. */
const LAST_CHANNEL_AT_FIRST = systemDmaChannelCount - 1;

/** The controller's own port of the root complex: a core port fits. */
export interface RootComplexPort {
  canStore(): boolean;
  connect(ports: { readonly stores: StoreSender }): void;
  cpuStore(
    busAddress: BusAddress,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
  ): void;
  cpuLoad(busAddress: BusAddress, lengthBytes: number, done: AccessDone): void;
}

/** Resources that the blocks of the controller share. */
export interface SystemDmaCore {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: SystemDmaConfig;
  readonly memory: HostMemory;
  readonly bus: MemoryBus;
  readonly channels: readonly SystemDmaChannel[];
  /** Accounting class of its stores; loads use the root complex's. */
  readonly trafficClass: number;
}

export interface TransferMachinePorts {
  readonly registers: Pick<SystemDmaPorts, 'isEnabled'>;
  readonly rootComplex: RootComplexPort;
  readonly interrupts: {
    /** Terminal count of a channel, or its failure; in the hardware half of an instant. */
    raise(channel: number, nowPs: Picoseconds): void;
  };
}

export class TransferMachine implements StoreSender {
  readonly account = new BlockAccount('systemDma', stalls);
  interruptCount = 0;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #config: SystemDmaConfig;
  readonly #memory: HostMemory;
  readonly #bus: MemoryBus;
  readonly #channels: readonly SystemDmaChannel[];
  readonly #trafficClass: number;
  readonly #stage: number;
  readonly #word = new Uint8Array(systemDmaWordBytes);
  readonly #wordView = viewOf(this.#word);
  readonly #loadDone: AccessDone;
  #ports!: TransferMachinePorts;
  #step = IDLE;
  #channel = NO_CHANNEL;
  #lastChannel = LAST_CHANNEL_AT_FIRST;
  #isFirstWord = true;
  /** Cycle from which the next step may be taken. */
  #dueCycle = 0;
  #loadStatus = 0;
  /** Master clear during a word: its registers are lost, and the word is abandoned. */
  #isCleared = false;

  constructor({ lp, domain, config, memory, bus, channels, trafficClass }: SystemDmaCore) {
    this.#lp = lp;
    this.#domain = domain;
    this.#config = config;
    this.#memory = memory;
    this.#bus = bus;
    this.#channels = channels;
    this.#trafficClass = trafficClass;
    this.#stage = domain.addStage(this.#run, this);
    this.#loadDone = (status, value) => this.#loaded(status, value);
  }

  connect(ports: TransferMachinePorts): void {
    this.#ports = ports;
  }

  /** Whether it is moving words of this channel. */
  isAtWork(channel: number): boolean {
    return channel === this.#channel && !this.#isCleared;
  }

  /** Master clear: abandons a word in progress. */
  clear(): void {
    this.#isCleared = true;
    this.#lastChannel = LAST_CHANNEL_AT_FIRST;
  }

  /** Notes that a register that it reads has changed. */
  registersWritten(): void {
    this.#wakeNow();
  }

  /** See StoreSender. */
  storeSpace(): void {
    this.#wakeNow();
  }

  /** No transfer is in progress. */
  get isIdle(): boolean {
    return this.#step === IDLE;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#dueCycle -= cycles;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { step: stepNames[this.#step]!, channel: this.#channel, lastChannel: this.#lastChannel };
  }

  #wakeNow(): void {
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  #run(cycle: Cycles): void {
    if (this.#step === LOADING) return;
    if (cycle < this.#dueCycle) {
      this.#domain.wake(this.#stage, this.#dueCycle);
      return;
    }
    switch (this.#step) {
      case IDLE:
      case REST:
        this.#choose(cycle);
        return;
      case ASK:
        this.#takeBus(cycle);
        return;
      case WORD:
        this.#moveWord(cycle);
        return;
      case STORE:
        this.#store(cycle);
        return;
      case LOADED:
        this.#finishLoad(cycle);
        return;
      default:
    }
  }

  /** Requests the bus for the next waiting channel. */
  #choose(cycle: Cycles): void {
    this.#isCleared = false;
    this.#channel = this.#ports.registers.isEnabled ? this.#nextChannel() : NO_CHANNEL;
    if (this.#channel === NO_CHANNEL) {
      this.#step = IDLE;
      this.account.rest(cycle);
      return;
    }
    const channel = this.#channels[this.#channel]!;
    if (!channel.isLegal || channel.count === 0) {
      channel.fail();
      this.#interrupt(cycle);
      return;
    }
    this.#step = ASK;
    this.#isFirstWord = true;
    this.account.stall(cycle, STALL_BUS);
    this.#goOnAt(cycle + this.#config.busRequestCycles);
  }

  #nextChannel(): number {
    const first = this.#config.priority === 'rotating' ? this.#lastChannel + 1 : 0;
    for (let turn = 0; turn < systemDmaChannelCount; turn++) {
      const index = (first + turn) % systemDmaChannelCount;
      if (this.#channels[index]!.isReady) return index;
    }
    return NO_CHANNEL;
  }

  #takeBus(cycle: Cycles): void {
    this.#bus.take(this.#channel, this.#lp.nowPs);
    this.#beginWord(cycle);
  }

  /** A word's cycle begins: memory first, or the device first. */
  #beginWord(cycle: Cycles): void {
    const config = this.#config;
    const channel = this.#channels[this.#channel]!;
    const cycles = this.#isFirstWord ? config.wordCycles : config.blockWordCycles;
    this.#isFirstWord = false;
    this.account.serve(cycle, cycles);
    if (channel.readsMemory) {
      this.#step = WORD;
      this.#goOnAt(cycle + cycles);
      return;
    }
    this.#step = LOADING;
    this.#dueCycle = cycle + cycles;
    this.account.stall(cycle + cycles, STALL_DEVICE);
    this.#ports.rootComplex.cpuLoad(channel.device, systemDmaWordBytes, this.#loadDone);
  }

  /** Memory to device: reads the word, and hands it over. */
  #moveWord(cycle: Cycles): void {
    const channel = this.#channels[this.#channel]!;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    if (!this.#memory.readInto(channel.address, systemDmaWordBytes, this.#word, 0)) {
      this.#fail(cycle);
      return;
    }
    this.#step = STORE;
    this.#store(cycle);
  }

  #store(cycle: Cycles): void {
    const { rootComplex } = this.#ports;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    if (!rootComplex.canStore()) {
      this.account.stall(cycle, STALL_DEVICE);
      return;
    }
    const { device } = this.#channels[this.#channel]!;
    rootComplex.cpuStore(device, this.#trafficClass, this.#word, 0, systemDmaWordBytes);
    this.#wordMoved(cycle);
  }

  /** The device's word has arrived; called in the software half of an instant. */
  #loaded(status: number, value: number): void {
    this.#loadStatus = status;
    this.#wordView.setUint32(0, value, true);
    this.#step = LOADED;
    this.#wakeNow();
  }

  #finishLoad(cycle: Cycles): void {
    const channel = this.#channels[this.#channel]!;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    const isGood =
      this.#loadStatus === 0 && this.#memory.write(channel.address, systemDmaWordBytes, this.#word, 0);
    if (isGood) this.#wordMoved(cycle);
    else this.#fail(cycle);
  }

  #wordMoved(cycle: Cycles): void {
    const channel = this.#channels[this.#channel]!;
    if (channel.step()) {
      channel.finish();
      this.#interrupt(cycle);
      this.#giveBus(cycle);
    } else if (channel.isBlock && channel.isReady && this.#ports.registers.isEnabled) {
      this.#beginWord(cycle);
    } else {
      this.#giveBus(cycle);
    }
  }

  #fail(cycle: Cycles): void {
    this.#channels[this.#channel]!.fail();
    this.#interrupt(cycle);
    this.#giveBus(cycle);
  }

  #giveBus(cycle: Cycles): void {
    this.#lastChannel = this.#isCleared ? LAST_CHANNEL_AT_FIRST : this.#channel;
    this.#channel = NO_CHANNEL;
    this.#step = REST;
    this.#bus.give(this.#lp.nowPs);
    this.account.stall(cycle, STALL_BUS);
    this.#goOnAt(cycle + this.#config.releaseCycles);
  }

  #interrupt(cycle: Cycles): void {
    this.interruptCount++;
    this.#ports.interrupts.raise(this.#channel, this.#lp.nowPs);
    if (this.#step === IDLE || this.#step === REST) {
      this.#channel = NO_CHANNEL;
      this.#goOnAt(cycle + 1);
    }
  }

  #goOnAt(cycle: Cycles): void {
    this.#dueCycle = cycle;
    this.#domain.wake(this.#stage, cycle);
  }
}
