/**
 * A miniature machine around the control side: its clock, a sparse host memory behind a DMA stand-in, an interrupt sink,
 * a cable that can be pulled, and a driver that speaks to the HCR as Linux or iPXE does.
 */

import { bar0 } from '../../../abi/bar-map.ts';
import { type CommandName, Opcode } from '../../../abi/commands.ts';
import { hcr, hcrGoOffset, mailboxBytes, pollingToken } from '../../../abi/hcr.ts';
import { mapEntry } from '../../../abi/map-icm.ts';
import { pciIdentity } from '../../../abi/pci-identity.ts';
import { joinWords, viewOf } from '../../../base/index.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import type { Cycles } from '../../../base/units.ts';
import { LogicalProcess } from '../../../sim/logical-process.ts';
import type { LinkTraffic } from '../../management/index.ts';
import { type CapabilityConfig, capabilityParameters } from '../capabilities.ts';
import { type ControlConfig, controlParameters } from '../commands/command-parameters.ts';
import { ConnectX3CommandSet } from '../connectx3/connect-x3-command-set.ts';
import { connectX3 } from '../connectx3/connectx3.ts';
import { IcmMap } from '../connectx3/icm-map.ts';
import { mptFormat } from '../connectx3/mpt-entry.ts';
import { ControlSide } from '../control-side.ts';
import type { EventPoster } from '../events/index.ts';
import type { DataPathControl } from '../host-interface/data-path-control.ts';
import type { EventFormat } from '../host-interface/index.ts';
import type { TcpControl } from '../iwarp/tcp/tcp-control.ts';
import { type KeyEntry, type KeySteps, type KeyStores, releaseRegion } from '../keys/index.ts';
import type { InterruptPort, SramAllocator } from '../memory/dma-ports.ts';
import { ContextTable } from '../objects/context-table.ts';
import { noPauses } from '../port/frame-statistics.ts';
import type { HcaPort, LinkStateSource } from '../port/hca-port.ts';
import { DiagnosticCounters } from '../statistics/diagnostic-counters.ts';
import { MemoryDma, SparseMemory } from './memory-dma.ts';

/** Records the control side's calls to the data path, in order, and answers them. */
class RecordingDataPath implements DataPathControl {
  readonly calls: string[] = [];
  /** Slots that still have work in the pipelines. */
  readonly busyQps = new Set<number>();
  /** Slots of QPs that have gone to an error state by themselves. */
  readonly failedQps = new Set<number>();
  readonly busyCqs = new Set<number>();
  readonly busySrqs = new Set<number>();
  /** False while a work request changes MPT entries. */
  isMptFree = true;
  readonly #stores: KeyStores;
  /** True while the last CQE of a CQ's old buffer is on its way. */
  isResizing = false;
  /** False while accesses begun before {@link beginFence} are under way. */
  isFenceOpen = true;
  /** Runs before a context is read: brings the live fields into the bytes. */
  onQpSync: (slot: number) => void = () => undefined;
  onCqSync: (slot: number) => void = () => undefined;

  qpCreated = (slot: number): void => this.#note('qpCreated', slot);
  qpModified = (slot: number, previous: number): void => this.#note('qpModified', slot, previous);
  qpToError = (slot: number): void => this.#note('qpToError', slot);
  qpDestroyed = (slot: number): void => this.#note('qpDestroyed', slot);
  qpSync = (slot: number): void => this.onQpSync(slot);
  qpIsBusy = (slot: number): boolean => this.busyQps.has(slot);
  qpIsDraining = (slot: number): boolean => this.busyQps.has(slot);
  qpIsInError = (slot: number): boolean => this.failedQps.has(slot);
  qpIsFlushing = (slot: number): boolean => this.busyQps.has(slot);
  cqCreated = (slot: number): void => this.#note('cqCreated', slot);
  cqDestroyed = (slot: number): void => this.#note('cqDestroyed', slot);
  cqResized = (slot: number): void => this.#note('cqResized', slot);
  cqModerated = (slot: number): void => this.#note('cqModerated', slot);
  cqSync = (slot: number): void => this.onCqSync(slot);
  cqIsBusy = (slot: number): boolean => this.busyCqs.has(slot);
  cqIsResizing = (): boolean => this.isResizing;
  srqCreated = (slot: number): void => this.#note('srqCreated', slot);
  srqDestroyed = (slot: number): void => this.#note('srqDestroyed', slot);
  srqGone = (slot: number): void => this.#note('srqGone', slot);
  srqArmed = (slot: number): void => this.#note('srqArmed', slot);
  srqSync = (): void => undefined;
  srqIsBusy = (slot: number): boolean => this.busySrqs.has(slot);
  mptChanged = (index: number): void => this.#note('mptChanged', index);
  translationChanged = (): void => this.#note('translationChanged');
  pagesChanged = (): void => this.#note('pagesChanged');
  beginFence = (): void => this.#note('beginFence');
  isFencePassed = (): boolean => this.isFenceOpen;
  pagesResumed = (token: number, isRefused: boolean): boolean => {
    this.#note(`pagesResumed ${token}${isRefused ? ' refused' : ''}`);
    return token !== 0;
  };
  claimMpts = (): boolean => this.isMptFree;
  releaseMpts = (): void => this.#note('releaseMpts');
  releaseRegionOf = (window: KeyEntry): KeySteps<void> => releaseRegion(this.#stores, window);
  portChanged = (isUp: boolean): void => this.#note(isUp ? 'portUp' : 'portDown');
  beginContextFence = (): void => this.#note('beginContextFence');
  isContextFencePassed = (): boolean => this.isFenceOpen;
  halt = (): void => this.#note('halt');
  isQuiescent = (): boolean => this.isFenceOpen;
  resetAll = (): void => this.#note('reset');
  readonly diagnostics = new DiagnosticCounters().counts;

  constructor(icm: IcmMap) {
    const translator = {
      cachedMpt: (): undefined => undefined,
      replaceMpt: (index: number): void => this.#note('mptReplaced', index),
      forgetMttRange: (): void => undefined,
    };
    this.#stores = { contextMemory: icm, keyFormat: mptFormat, translator };
  }

  #note(name: string, ...values: number[]): void {
    this.calls.push([name, ...values].join(' '));
  }
}

/** Receives and records interrupts. */
class InterruptSink implements InterruptPort {
  msixEnabled = true;
  isPinAsserted = false;
  /** Messages sent: vector and cycle. */
  readonly messages: { vector: number; cycle: Cycles }[] = [];
  /** Calls that find no room, to be tried again. */
  refusals = 0;

  requestInterrupt(vector: number, cycle: Cycles): boolean {
    if (this.refusals > 0) {
      this.refusals--;
      return false;
    }
    this.messages.push({ vector, cycle });
    return true;
  }

  setIntx(isAsserted: boolean): void {
    this.isPinAsserted = isAsserted;
  }
}

/**
 * A cable that trains at once: the link is up while it is plugged in and the port is enabled; specs write its traffic
 * counters.
 */
class Cable implements LinkStateSource, LinkTraffic {
  config: LinkTraffic['config'] = { speed: 'QDR', lanes: '4' };
  readonly transmitted = { packetCount: 0, packetBytes: 0, discardedCount: 0, creditWaitPs: 0 };
  readonly received = {
    delivered: { packetTotal: 0, byteTotal: 0 },
    corrupted: { packetTotal: 0, byteTotal: 0 },
    overruns: 0,
    managementDrops: 0,
  };
  isLinkUp = false;
  isEnabled = false;
  isOpen = false;
  #isPlugged = false;
  readonly #nowPs: () => number;
  #port: Pick<HcaPort, 'linkChanged'> | undefined;

  constructor(nowPs: () => number) {
    this.#nowPs = nowPs;
  }

  connect(port: Pick<HcaPort, 'linkChanged'>): void {
    this.#port = port;
  }

  setEnabled(isEnabled: boolean): void {
    this.isEnabled = isEnabled;
    this.#update();
  }

  set(isPlugged: boolean): void {
    this.#isPlugged = isPlugged;
    this.#update();
  }

  #update(): void {
    const isUp = this.#isPlugged && this.isEnabled;
    if (isUp === this.isLinkUp) return;
    this.isLinkUp = isUp;
    this.#port?.linkChanged(isUp, this.#nowPs());
  }
}

/** A cache of EQ contexts, all of them on chip unless a spec says otherwise. */
class BenchContexts {
  isOnChip = (): boolean => true;

  access(): boolean {
    return this.isOnChip();
  }

  used(): void {}

  forget(): void {}

  reset(): void {}
}

export interface CommandOptions {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  readonly inBox?: Uint8Array;
  readonly inParam?: number;
  /** Length of the out box to read back. */
  readonly outBytes?: number;
  readonly byEvent?: boolean;
  readonly token?: number;
}

export interface CommandOutcome {
  readonly status: number;
  readonly out: number;
  readonly outBox: Uint8Array;
}

/** Costs that keep specs short and make cycle counts easy to follow. */
const quickCosts = { linkInitialiseCycles: 1000, subnetManagerCycles: 1000, initialiseCycles: 1000 };
export const latencyCycles = 10;

export class ControlBench {
  readonly lp = new LogicalProcess('hca');
  readonly domain = this.lp.addClockDomain(427);
  readonly memory = new SparseMemory();
  readonly icm = new IcmMap();
  readonly dataPath = new RecordingDataPath(this.icm);
  readonly interrupts = new InterruptSink();
  readonly contexts = new BenchContexts();
  /** Blocks that stall while there is no room for an event: a spec adds some. */
  readonly posters: EventPoster[] = [];
  readonly cable = new Cable(() => this.lp.nowPs);
  /** The cable's other interface, for ports of Ethernet; specs write its frame counters. */
  readonly ethernet = {
    link: this.cable,
    errors: {
      received: { corruptedFrames: 0, fifoDrops: 0 },
      transmitted: { discardedFrames: 0 },
      config: { preambleBytes: 8, interFrameGapBytes: 12 },
    },
    flowControl: {
      setting: { sends: false, heeds: false },
      counters: { ...noPauses },
      set(sends: boolean, heeds: boolean): void {
        this.setting = { sends, heeds };
      },
      totals(): typeof noPauses {
        return { ...this.counters };
      },
      priorities: {
        setting: { sends: 0, heeds: 0 },
        set(sends: number, heeds: number): void {
          this.setting = { sends, heeds };
        },
      },
    },
    config: { mtuBytes: 1500, gigabitsPerSecond: 40 },
  };
  readonly config: ControlConfig;
  readonly capabilities: CapabilityConfig;
  readonly tables = {
    qps: new ContextTable<'QP'>(256, 2 ** 16),
    cqs: new ContextTable<'CQ'>(64, 2 ** 16),
    srqs: new ContextTable<'SRQ'>(64, 2 ** 16),
  };
  readonly dma: MemoryDma;
  readonly control: ControlSide;
  resetCount = 0;
  inBoxAddress = 0x100_0000;
  outBoxAddress = 0x100_1000;
  /** The driver's toggle; the next command is posted with it. */
  toggle = 1;

  constructor(
    config: Partial<ControlConfig> = {},
    capabilities: Partial<CapabilityConfig> = {},
    subnetNodes: readonly number[] = [0, 1],
    link: Partial<LinkTraffic['config']> = {},
    events?: EventFormat,
    tcpOf?: (bench: ControlBench) => TcpControl,
  ) {
    this.cable.config = { ...this.cable.config, ...link };
    this.config = { ...defaultsOf(controlParameters), ...quickCosts, ...config };
    this.capabilities = { ...defaultsOf(capabilityParameters), ...capabilities };
    const sram = new BumpAllocator(64 * 1024);
    this.dma = new MemoryDma(this.memory, this.domain, sram.bytes, latencyCycles);
    const personality = connectX3({ uarAreaBytes: 0, blueFlameHalfBytes: 0 }, this.icm);
    this.control = new ControlSide({
      domain: this.domain,
      deviceId: pciIdentity.deviceId,
      interrupts: this.interrupts,
      reads: this.dma,
      writes: this.dma,
      sram,
      tables: this.tables,
      links: [this.cable],
      ethernet: this.capabilities.linkLayer === 'ethernet' ? this.ethernet : undefined,
      config: this.config,
      capabilities: this.capabilities,
      nodeIndex: 0,
      subnets: [subnetNodes.map((node) => ({ node, port: 1 }))],
      personality: { ...personality, ...(events === undefined ? {} : { events }) },
      eventQueues: personality.makeContextFormats({ frameBytesMax: 0, hasRoce: false }).eventQueues,
    });
    this.control.connect({
      dataPath: this.dataPath,
      tcp: tcpOf?.(this),
      device: this,
      contexts: this.contexts,
      posters: this.posters,
    });
    this.cable.connect(this.control.ports[0]!);
  }

  /** Commands and registers of the ConnectX-3. */
  get commandSet(): ConnectX3CommandSet {
    const { commandSet } = this.control.blocks;
    if (!(commandSet instanceof ConnectX3CommandSet)) throw new TypeError('another card');
    return commandSet;
  }

  /** Counts the reset and resets the DMA, as the device does. */
  deviceReset(): void {
    this.resetCount++;
    this.dma.reset();
  }

  /** Runs until nothing is due, or for this many cycles. */
  run(cycles = Number.POSITIVE_INFINITY): void {
    const limit = this.lp.nowPs + this.domain.clock.durationPs(Math.min(cycles, 1e9));
    this.lp.advance(limit);
    if (cycles !== Number.POSITIVE_INFINITY) this.lp.nowPs = Math.max(this.lp.nowPs, limit - 1);
  }

  /** Cycle of software's next access. */
  get cycle(): Cycles {
    return Math.max(this.domain.cycle, this.domain.clock.cycleAtOrAfter(this.lp.nowPs));
  }

  /** Reads a big-endian dword of BAR0. */
  read32(offset: number): number {
    const into = new DataView(new ArrayBuffer(8));
    this.control.barRead(offset, 4, into, this.cycle);
    return into.getUint32(0);
  }

  /** Writes a big-endian dword of BAR0. */
  write32(offset: number, value: number): void {
    const bytes = new Uint8Array(4);
    viewOf(bytes).setUint32(0, value);
    this.control.barWrite(offset, bytes, 0, 4, this.cycle);
  }

  /** Posts a command as Linux does: dwords 0 to 5 in ascending order, then dword 6. */
  post(name: CommandName | number, options: CommandOptions = {}): void {
    const opcode = typeof name === 'number' ? name : Opcode[name];
    if (options.inBox !== undefined) this.memory.write(this.inBoxAddress, options.inBox);
    if (options.outBytes !== undefined) this.memory.write(this.outBoxAddress, new Uint8Array(mailboxBytes));
    const inParam = options.inParam ?? (options.inBox === undefined ? 0 : this.inBoxAddress);
    const outParam = options.outBytes === undefined ? 0 : this.outBoxAddress;
    const byEvent = options.byEvent ?? false;
    const image = hcr.encode({
      inParam: BigInt(inParam),
      inputModifier: options.inputModifier ?? 0,
      outParam: BigInt(outParam),
      token: options.token ?? pollingToken,
      go: 1,
      event: byEvent ? 1 : 0,
      toggle: this.toggle,
      opcodeModifier: options.opcodeModifier ?? 0,
      opcode,
    });
    const view = viewOf(image);
    for (let at = 0; at < hcr.sizeBytes; at += 4)
      this.write32(bar0.registers.hcr.offset + at, view.getUint32(at));
    this.toggle = 1 - this.toggle;
  }

  /** Posts a polled command and waits until it has ended. */
  command(name: CommandName | number, options: CommandOptions = {}): CommandOutcome {
    this.post(name, options);
    let last = this.goDword();
    for (let turn = 0; hcr.fields.go.get(last, 0) === 1 && turn < 100_000; turn++) {
      this.run(64);
      last = this.goDword();
    }
    const at = bar0.registers.hcr.offset + hcr.fields.outParam.wordOffset;
    return {
      status: hcr.fields.status.get(last, 0),
      out: joinWords(this.read32(at), this.read32(at + 4)),
      outBox: this.memory.read(this.outBoxAddress, options.outBytes ?? 0),
    };
  }

  /** Dword 6 of the HCR as software reads it, at its place in an otherwise empty image. */
  goDword(): DataView {
    const image = viewOf(new Uint8Array(hcr.sizeBytes));
    image.setUint32(hcrGoOffset, this.read32(bar0.registers.hcr.offset + hcrGoOffset));
    return image;
  }

  /** Maps ICM pages one to one onto host pages at `hostBase`. */
  mapEntryBox(icmAddress: number, hostAddress: number, logPages: number): Uint8Array {
    return mapEntry.encode({
      icmAddress: BigInt(icmAddress),
      physicalAddress: BigInt(hostAddress),
      logSize4k: logPages,
    });
  }
}

/** Hands out memory from the front. */
export class BumpAllocator implements SramAllocator {
  readonly bytes: Uint8Array;
  #next = 0;

  constructor(lengthBytes: number) {
    this.bytes = new Uint8Array(lengthBytes);
  }

  allocate(lengthBytes: number): number {
    const offset = this.#next;
    this.#next += Math.ceil(lengthBytes / 64) * 64;
    return offset;
  }
}
