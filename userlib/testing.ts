/**
 * A process for the library's specs: memory, a core whose stores are visible at each commit, and a kernel that grants
 * everything and records its requests. The spec writes completions as the device would.
 */
import { cqe, cqeBytes } from '../abi/cqe.ts';
import { viewOf } from '../base/bytes.ts';
import type { Initial } from '../base/layout.ts';
import type { ContextInfo, KernelContext, KernelDevice } from '../driver/kernel-verbs.ts';
import { LinkLayerVerb, TransportVerb } from '../driver/uapi.ts';
import type { IbvCq } from './objects.ts';
import type { OperationTap, VerbsPlatform } from './platform.ts';

export interface SeenStore {
  readonly kind: 'memory' | 'uncached' | 'writeCombining';
  readonly address: number;
  readonly bytes: Uint8Array;
}

export const uarBusAddress = 0x2_0000_0000;
export const blueFlameBusAddress = 0x2_0080_0000;
/** User addresses are physical ones plus this. */
export const userOffset = 0x5500_0000_0000;

export class TestProcess {
  /** Shared, like a machine's own memory: unshared memory would trigger the garbage collector for each process. */
  readonly bytes = new Uint8Array(new SharedArrayBuffer(8 * 2 ** 20));
  readonly view = viewOf(this.bytes);
  /** Stores in the order in which they became visible. */
  readonly stores: SeenStore[] = [];
  readonly charged = { post: 0, poll: 0, copy: 0, application: 0, driver: 0 };
  /** Kernel calls by name with their arguments. */
  readonly calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];
  readonly taps: { readonly what: string; readonly args: readonly number[] }[] = [];
  /** Answers of kernel calls, by name, if they differ from the usual ones. */
  readonly answers = new Map<string, unknown>();
  mappedPages = 0;
  /** Pages that can still be mapped. */
  pagesMax = Number.POSITIVE_INFINITY;
  /** Errno code with which the kernel call of this name rejects. */
  failing: { name: string; code: string } | undefined;
  readonly platform: VerbsPlatform;
  nextQpn = 0x209;
  time = 0;
  /** Called while a thread spins: lets the spec write a completion. */
  whileSpinning: () => void = () => {
    throw new Error('the thread spins for ever');
  };
  private nextPage = 1;
  private readonly pending: { kind: SeenStore['kind']; address: number; offset: number; length: number }[] =
    [];
  private readonly storeBytes = new Uint8Array(65_536);
  private tail = 0;
  private handles = 1;

  constructor(info: Partial<ContextInfo> = {}, isTapped = false) {
    const kernel = this.newKernel(info);
    const tap: OperationTap = {
      opened: (...args) => void this.taps.push({ what: 'opened', args }),
      closed: (...args) => void this.taps.push({ what: 'closed', args }),
      posted: (...args) => void this.taps.push({ what: 'posted', args }),
      completed: (...args) => void this.taps.push({ what: 'completed', args }),
    };
    const memory = {
      processId: 1,
      bytes: this.bytes,
      view: this.view,
      bytesNow: this.bytes,
      viewNow: this.view,
      map: (lengthBytes: number) => this.map(lengthBytes),
      mapQueue: (lengthBytes: number) => this.map(lengthBytes),
      unmap: (_address: number, lengthBytes: number) => {
        this.mappedPages -= Math.ceil(lengthBytes / 4096);
      },
      physicalAddress: (address: number) => address - userOffset,
      pin: () => 'EFAULT' as const,
      unpin: () => {},
      mapDevice: () => 0,
      unmapDevice: () => {},
    };
    const costs = {
      postSend: 100,
      postSendPerSegment: 10,
      postSendPerInlineByte64: 8,
      postRecv: 50,
      pollEmpty: 20,
      pollCompletion: 60,
      readDmaLine: 90,
      mmioStore: 30,
      copyFixed: 20,
      copyBytesPerCycle: 4,
    };
    const devices = [kernel];
    const base = { cpu: this.newCpu(), memory, costs, devices };
    this.platform = isTapped ? { ...base, tap } : base;
  }

  /** Memory of the program: user address of zeroed pages. */
  map(lengthBytes: number): number {
    const pages = Math.ceil(lengthBytes / 4096);
    if (this.mappedPages + pages > this.pagesMax) return -1;
    this.mappedPages += pages;
    const address = this.nextPage * 4096;
    this.nextPage += pages;
    return address + userOffset;
  }

  /** The device writes a completion at a producer counter. */
  complete(cq: IbvCq, producer: number, values: Initial<typeof cqe>): void {
    const { ring } = cq;
    const owner = (producer & ring.entries) !== 0 ? 1 : 0;
    cqe.encodeInto({ ...values, owner }, this.bytes, ring.slots[producer & (ring.entries - 1)]!);
  }

  /** Sets all owner bits of a CQ as the device does at SW2HW_CQ. */
  initialise(cq: IbvCq): void {
    for (const address of cq.ring.slots) this.bytes[address + cqeBytes - 1] = 0x80;
  }

  /** Stores to device space since the last call; forgets all stores. */
  takeDeviceStores(): SeenStore[] {
    const found = this.stores.filter(({ kind }) => kind !== 'memory');
    this.stores.length = 0;
    return found;
  }

  private newCpu(): VerbsPlatform['cpu'] {
    const machine = this;
    const push = (kind: SeenStore['kind'], address: number, length: number): number => {
      const offset = this.tail;
      this.tail += Math.ceil(length / 8) * 8;
      this.storeBytes.fill(0xee, offset, this.tail);
      this.pending.push({ kind, address, offset, length });
      return offset;
    };
    const charge = (cause: string, cycles: number): void => {
      this.charged[cause as keyof typeof this.charged] += cycles;
      this.time += cycles * 400;
    };
    const spin = async (roundCycles: number, isReady: () => boolean): Promise<void> => {
      while (!isReady()) {
        charge('poll', roundCycles);
        this.whileSpinning();
      }
    };
    return {
      coreIndex: 0,
      get localPs() {
        return machine.time;
      },
      get ownPs() {
        return machine.time;
      },
      stopwatch: () => {
        const startPs = machine.time;
        return {
          get elapsedPs() {
            return machine.time - startPs;
          },
          get exactElapsedPs() {
            return machine.time - startPs;
          },
        };
      },
      storeBytes: this.storeBytes,
      storeView: viewOf(this.storeBytes),
      storeWords: new Int32Array(this.storeBytes.buffer),
      pushMemoryStore: (address, length) => push('memory', address, length),
      pushDeviceStore: (address, length, kind) => push(kind, address, length),
      commit: (cause, cycles) => {
        charge(cause, cycles);
        this.publish();
      },
      charge,
      settle: async () => {},
      keepCore: () => {},
      waitsIn: () => {},
      spin: (_address, roundCycles, isReady) => spin(roundCycles, isReady),
      spinThen: async (_address, roundCycles, isReady, take) => {
        await spin(roundCycles, isReady);
        return take();
      },
      sleep: async () => {},
      mmioRead32: async () => 0,
      storeMemory: (address, bytes) => this.storeBytes.set(bytes, push('memory', address, bytes.length)),
      mmioWrite32: () => {},
    };
  }

  private publish(): void {
    for (const { kind, address, offset, length } of this.pending.splice(0)) {
      const bytes = this.storeBytes.slice(offset, offset + length);
      if (kind === 'memory') this.bytes.set(bytes, address);
      this.stores.push({ kind, address, bytes });
    }
    this.tail = 0;
  }

  private newKernel(info: Partial<ContextInfo>): KernelDevice {
    const context = new Proxy({} as KernelContext, {
      get: (_target, name: string) => {
        if (name === 'then') return undefined;
        if (name === 'info') return { ...defaultInfo, ...info };
        return async (_cpu: unknown, ...args: unknown[]) => {
          this.calls.push({ name, args });
          if (this.failing?.name === name)
            throw Object.assign(new Error('refused'), { code: this.failing.code });
          return this.answer(name);
        };
      },
    });
    return {
      name: 'mlx4_0',
      isProbed: true,
      nodeGuid: 1n,
      transport: TransportVerb.IBV_TRANSPORT_IB,
      openDevice: async () => context,
      openEventChannel: () => {
        throw new Error('not opened here');
      },
      resourceCounts: () => {
        throw new Error('not for the library');
      },
    };
  }

  private answer(name: string): unknown {
    if (this.answers.has(name)) return this.answers.get(name);
    const handle = this.handles++;
    if (name === 'allocPd') return { handle, pdn: 0x19 };
    if (name === 'createCq') return { handle, cqn: 0x80 + handle };
    if (name === 'createSrq') return { handle, srqn: 0x40 };
    if (name === 'createQp') return { handle, qpn: this.nextQpn++ };
    if (name === 'allocMw') return { handle, rkey: 0x1200 };
    if (name === 'regMr') return { handle, lkey: 0x1100, rkey: 0x1100 };
    return handle;
  }
}

const defaultInfo: ContextInfo = {
  deviceName: 'mlx4_0',
  qpTableSize: 2 ** 18,
  uarPage: 130,
  uarUserAddress: 0,
  uarBusAddress,
  blueFlameRegisterBytes: 512,
  blueFlameBusAddress,
  coreClockBusAddress: -1,
  cqeBytes: 32,
  completionVectors: 2,
  linkLayers: [LinkLayerVerb.IBV_LINK_LAYER_INFINIBAND],
  maxQpWr: 16_351,
  maxSendSge: 62,
  maxRecvSge: 32,
  maxSrqWr: 16_383,
  maxSrqSge: 31,
  maxCqe: 2 ** 22 - 1,
};
