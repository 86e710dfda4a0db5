/**
 * The system DMA controller: a third party that moves words between memory and a device, in the host's logical process.
 *
 *     CPU ─ ports ─► channel: address, count, mode ─► request
 *                                                       │ bus asked for … bus taken: cores wait
 *                        memory ──word──► store ─► root complex ─► device BAR      READ:  memory to device
 *                        memory ◄──word── load  ◄─ root complex ◄─ device BAR      WRITE: device to memory
 *                                                       │ single: bus released after each word; block: after the last
 *                                                       └ terminal count ─► interrupt
 *
 * Promises: one word at a time; the bus is held from before a word's cycle to its end, the device's wait states
 * included (a store that the root complex does not take, a load's way to the device and back). Memory is read and
 * written at the instant at which the word's cycle ends. A word outside of memory, a load that fails, a mode that is
 * none: the channel stops with its error bit and an interrupt. Nothing is thrown at software.
 * Source: Intel 8237A data sheet; the fly-by cycle of one bus is drawn over two here, memory's and PCIe.
 */

import { systemDmaChannelCount, systemDmaWordBytes } from '../../abi/nic/index.ts';
import { viewOf } from '../../base/bytes.ts';
import type { BusAddress, Cycles, Picoseconds } from '../../base/units.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  stallReasons,
} from '../../sim/index.ts';
import type { AccessDone, HostMemory, StoreSender } from '../pcie/index.ts';
import { SystemDmaChannel } from './channel.ts';
import type { MemoryBus } from './memory-bus.ts';
import type { SystemDmaConfig } from './parameters.ts';
import { SystemDmaPorts } from './ports.ts';

const NO_CHANNEL = -1;

const stalls = stallReasons('bus', 'device');
const { bus: STALL_BUS, device: STALL_DEVICE } = stalls;

/** What the controller does next. */
const IDLE = 0;
const ASK = 1;
const WORD = 2;
const STORE = 3;
const LOADING = 4;
const LOADED = 5;
const REST = 6;
const stepNames = ['idle', 'ask', 'word', 'store', 'loading', 'loaded', 'rest'] as const;
/** Channel 0 is the first to be looked at. */
const LAST_CHANNEL_AT_FIRST = systemDmaChannelCount - 1;

/** The controller's own port of the root complex: a core port fits. */
interface SystemDmaDevicePort {
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

export interface SystemDmaOptions {
  readonly lp: LogicalProcess;
  readonly config: SystemDmaConfig;
  readonly memory: HostMemory;
  readonly bus: MemoryBus;
  readonly port: SystemDmaDevicePort;
  /** Accounting class of its stores; loads have the root complex's. */
  readonly trafficClass: number;
  /** Terminal count of a channel, or its failure; called in the hardware half of an instant. */
  readonly interrupt: (channel: number, nowPs: Picoseconds) => void;
}

export class SystemDma {
  readonly channels: readonly SystemDmaChannel[];
  readonly account = new BlockAccount('systemDma', stalls);
  readonly domain: ClockDomain;
  interruptCount = 0;

  readonly #options: SystemDmaOptions;
  readonly #stage: number;
  readonly #word = new Uint8Array(systemDmaWordBytes);
  readonly #wordView = viewOf(this.#word);
  readonly #loadDone: AccessDone;
  readonly #ports: SystemDmaPorts;
  #step = IDLE;
  #channel = NO_CHANNEL;
  #lastChannel = LAST_CHANNEL_AT_FIRST;
  #isFirstWord = true;
  /** Cycle from which the next step may be taken. */
  #dueCycle = 0;
  #loadStatus = 0;
  /** Master clear while a word is under way: its registers are gone, the word comes to nothing. */
  #isCleared = false;

  constructor(options: SystemDmaOptions) {
    this.#options = options;
    this.domain = options.lp.addClockDomain(options.config.clockMHz);
    this.channels = Array.from({ length: systemDmaChannelCount }, () => new SystemDmaChannel());
    this.#stage = this.domain.addStage(this.#run, this);
    this.#ports = new SystemDmaPorts(this.channels, {
      isAtWork: (channel) => channel === this.#channel && !this.#isCleared,
      cleared: () => {
        this.#isCleared = true;
        this.#lastChannel = LAST_CHANNEL_AT_FIRST;
      },
      written: () => this.#wakeNow(),
    });
    this.#loadDone = (status, value) => this.#loaded(status, value);
    options.port.connect({ stores: { storeSpace: () => this.#wakeNow() } });
    this.domain.addEdgeKeeper(this);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.account.rebase(cycles);
    this.#options.bus.rebase(ps);
    this.#dueCycle -= cycles;
  }

  /** Reads the 32-bit port at `port` of abi/nic/system-dma.ts, at the present instant. */
  portRead(port: number): number {
    return this.#ports.read(port);
  }

  /** Writes a port; it takes effect at the controller's next clock edge. */
  portWrite(port: number, value: number): void {
    this.#ports.write(port, value);
  }

  /** Nothing is being moved. */
  get isIdle(): boolean {
    return this.#step === IDLE;
  }

  /** Behind a master clear the same as after power-on, once a word that is under way has come to nothing. */
  inspect(): BlockState {
    return {
      isEnabled: this.#ports.isEnabled,
      step: stepNames[this.#step]!,
      channel: this.#channel,
      lastChannel: this.#lastChannel,
      channels: this.channels.map((channel) => channel.inspect()),
    };
  }

  // ---- the machine ----

  #wakeNow(): void {
    this.domain.wakeAfter(this.#stage, this.#options.lp.nowPs);
  }

  #run(cycle: Cycles): void {
    if (this.#step === LOADING) return;
    if (cycle < this.#dueCycle) {
      this.domain.wake(this.#stage, this.#dueCycle);
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

  /** Asks for the bus for the next channel that wants it. */
  #choose(cycle: Cycles): void {
    this.#isCleared = false;
    this.#channel = this.#ports.isEnabled ? this.#nextChannel() : NO_CHANNEL;
    if (this.#channel === NO_CHANNEL) {
      this.#step = IDLE;
      this.account.rest(cycle);
      return;
    }
    const channel = this.channels[this.#channel]!;
    if (!channel.isLegal || channel.count === 0) {
      channel.fail();
      this.#interrupt(cycle);
      return;
    }
    this.#step = ASK;
    this.#isFirstWord = true;
    this.account.stall(cycle, STALL_BUS);
    this.#goOnAt(cycle + this.#options.config.busRequestCycles);
  }

  #nextChannel(): number {
    const first = this.#options.config.priority === 'rotating' ? this.#lastChannel + 1 : 0;
    for (let turn = 0; turn < systemDmaChannelCount; turn++) {
      const index = (first + turn) % systemDmaChannelCount;
      if (this.channels[index]!.isReady) return index;
    }
    return NO_CHANNEL;
  }

  #takeBus(cycle: Cycles): void {
    this.#options.bus.take(this.#channel, this.#options.lp.nowPs);
    this.#beginWord(cycle);
  }

  /** A word's cycle begins: memory first, or the device first. */
  #beginWord(cycle: Cycles): void {
    const { config } = this.#options;
    const channel = this.channels[this.#channel]!;
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
    this.#options.port.cpuLoad(channel.device, systemDmaWordBytes, this.#loadDone);
  }

  /** Memory to device: the word is read, and handed over. */
  #moveWord(cycle: Cycles): void {
    const channel = this.channels[this.#channel]!;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    if (!this.#options.memory.readInto(channel.address, systemDmaWordBytes, this.#word, 0)) {
      this.#fail(cycle);
      return;
    }
    this.#step = STORE;
    this.#store(cycle);
  }

  #store(cycle: Cycles): void {
    const { port, trafficClass } = this.#options;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    if (!port.canStore()) {
      this.account.stall(cycle, STALL_DEVICE);
      return;
    }
    port.cpuStore(this.channels[this.#channel]!.device, trafficClass, this.#word, 0, systemDmaWordBytes);
    this.#wordMoved(cycle);
  }

  /** The device's word has come; called in the software half of an instant. */
  #loaded(status: number, value: number): void {
    this.#loadStatus = status;
    this.#wordView.setUint32(0, value, true);
    this.#step = LOADED;
    this.#wakeNow();
  }

  #finishLoad(cycle: Cycles): void {
    const channel = this.channels[this.#channel]!;
    if (this.#isCleared) {
      this.#giveBus(cycle);
      return;
    }
    const isGood =
      this.#loadStatus === 0 &&
      this.#options.memory.write(channel.address, systemDmaWordBytes, this.#word, 0);
    if (isGood) this.#wordMoved(cycle);
    else this.#fail(cycle);
  }

  #wordMoved(cycle: Cycles): void {
    const channel = this.channels[this.#channel]!;
    if (channel.step()) {
      channel.finish();
      this.#interrupt(cycle);
      this.#giveBus(cycle);
    } else if (channel.isBlock && channel.isReady && this.#ports.isEnabled) {
      this.#beginWord(cycle);
    } else {
      this.#giveBus(cycle);
    }
  }

  #fail(cycle: Cycles): void {
    this.channels[this.#channel]!.fail();
    this.#interrupt(cycle);
    this.#giveBus(cycle);
  }

  #giveBus(cycle: Cycles): void {
    this.#lastChannel = this.#isCleared ? LAST_CHANNEL_AT_FIRST : this.#channel;
    this.#channel = NO_CHANNEL;
    this.#step = REST;
    this.#options.bus.give(this.#options.lp.nowPs);
    this.account.stall(cycle, STALL_BUS);
    this.#goOnAt(cycle + this.#options.config.releaseCycles);
  }

  #interrupt(cycle: Cycles): void {
    this.interruptCount++;
    this.#options.interrupt(this.#channel, this.#options.lp.nowPs);
    if (this.#step === IDLE || this.#step === REST) {
      this.#channel = NO_CHANNEL;
      this.#goOnAt(cycle + 1);
    }
  }

  #goOnAt(cycle: Cycles): void {
    this.#dueCycle = cycle;
    this.domain.wake(this.#stage, cycle);
  }
}
