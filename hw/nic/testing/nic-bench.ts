/**
 * Two small machines: memory, root complex, link and NIC, joined by an Ethernet cable; and software that brings the NICs up and
 * operates their rings like a driver. Times apply to all four logical processes. For specs only.
 */

import {
  NicBar,
  nicBar0,
  nicBits,
  nicDescriptorBytes,
  nicMsix,
  nicReceiveDescriptor,
  nicTransmitDescriptor,
} from '../../../abi/nic/index.ts';
import { viewOf } from '../../../base/bytes.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import { withField } from '../../../base/registers.ts';
import type { Picoseconds } from '../../../base/units.ts';
import {
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  LogicalProcess,
  SingleRunner,
} from '../../../sim/index.ts';
import { type EthernetConfig, ethernetChannelBytes, ethernetParameters } from '../../../wire/index.ts';
import { type DmaConfig, dmaParameters, trafficClassCount } from '../../dma/index.ts';
import {
  endpointPortParameters,
  enumerateFunction,
  enumerationParameters,
  linkParameters,
  PcieLinkPort,
  RootComplex,
  rootComplexParameters,
  rootPortParameters,
} from '../../pcie/index.ts';
import { BenchMemory } from '../../pcie/root-complex/root-complex-bench.ts';
import { Nic } from '../nic.ts';
import { macAddressOf } from '../nic-setup.ts';
import { type NicConfig, nicFunctionParameters, nicParameters } from '../parameters.ts';

const FUNCTION_ID = 0x0100;
const MESSAGE_ADDRESS = 0xfee0_0000;
export const US = 1_000_000;

/** Addresses that a bench's software uses. */
export const TRANSMIT_RING = 0x1_0000;
export const RECEIVE_RING = 0x2_0000;
const TRANSMIT_BUFFERS = 0x4_0000;
const RECEIVE_BUFFERS = 0x10_0000;
const MEMORY_BYTES = 0x20_0000;
const BUFFER_STRIDE = 0x4000;

type RegisterName = keyof typeof nicBar0.registers;

export interface NicBenchOptions {
  readonly nic?: Partial<NicConfig>;
  readonly ethernet?: Partial<EthernetConfig>;
  readonly dma?: Partial<DmaConfig>;
  readonly seed?: number;
  readonly shuffle?: () => number;
}

const channel = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);
const pcieChannel = (): SharedArrayBuffer => channel(channelBufferBytes(1 << 20));

/** A host, its link and its NIC. */
export class NicMachine {
  readonly hostLp: LogicalProcess;
  readonly nic: Nic;
  readonly rootComplex: RootComplex;
  readonly memory = new BenchMemory(MEMORY_BYTES);
  readonly view = viewOf(this.memory.bytes);
  /** Interrupts received by the host. */
  readonly interrupts: { readonly timePs: Picoseconds; readonly vector: number }[] = [];
  readonly pins: { readonly timePs: Picoseconds; readonly isAsserted: boolean }[] = [];
  barAddress: readonly number[] = [];
  #bench: NicBench;

  constructor(bench: NicBench, index: number, wire: readonly SharedArrayBuffer[], options: NicBenchOptions) {
    this.#bench = bench;
    this.hostLp = new LogicalProcess(`host${index}`, options.shuffle);
    const nicLp = new LogicalProcess(`nic${index}`, options.shuffle);
    const link = defaultsOf(linkParameters);
    const [rootPort, endpoint] = [defaultsOf(rootPortParameters), defaultsOf(endpointPortParameters)];
    const [up, down] = [pcieChannel(), pcieChannel()];
    this.rootComplex = new RootComplex({
      lp: this.hostLp,
      config: defaultsOf(rootComplexParameters),
      end: rootPort,
      port: new PcieLinkPort({
        lp: this.hostLp,
        link,
        end: rootPort,
        peer: endpoint,
        writer: new ChannelWriter(down),
        reader: new ChannelReader(up),
        trafficClassCount,
      }),
      memory: this.memory,
      interrupts: {
        message: (_address, data, nowPs) => this.interrupts.push({ timePs: nowPs, vector: data }),
        intx: (_pin, isAsserted, nowPs) => this.pins.push({ timePs: nowPs, isAsserted }),
      },
      coreCount: 2,
      trafficClasses: { register: 12, config: 13 },
    });
    this.nic = new Nic({
      lp: nicLp,
      config: { ...defaultsOf(nicParameters), ...options.nic },
      dma: { ...defaultsOf(dmaParameters), ...options.dma },
      pcieFunction: defaultsOf(nicFunctionParameters),
      linkIdentity: link,
      link,
      linkEnd: endpoint,
      linkPeer: rootPort,
      ethernet: bench.ethernet,
      pcieWriter: new ChannelWriter(up),
      pcieReader: new ChannelReader(down),
      wireWriter: new ChannelWriter(wire[0]!),
      wireReader: new ChannelReader(wire[1]!),
      seed: options.seed ?? 1,
      macAddress: macAddressOf(index),
    });
  }

  // ---- configuration ----

  async enumerate(): Promise<void> {
    const found = await enumerateFunction(
      {
        readConfig32: (id, offset) =>
          this.#wait((done) => this.rootComplex.configRead(0, id, offset, (_status, value) => done(value))),
        writeConfig32: async (id, offset, value) => {
          await this.#wait((done) => this.rootComplex.configWrite(0, id, offset, value, () => done(0)));
        },
      },
      FUNCTION_ID,
      defaultsOf(enumerationParameters),
      'memoryAndBusMaster',
    );
    this.barAddress = found!.bars.map((bar) => bar?.address ?? 0);
    const msix = found!.capabilities.find(({ id }) => id === 0x11)!;
    this.#msixOffset = msix.offset;
  }
  #msixOffset = 0;

  async configWrite(offset: number, value: number): Promise<void> {
    await this.#wait((done) => this.rootComplex.configWrite(0, FUNCTION_ID, offset, value, () => done(0)));
  }

  /** Vector n sends n; all unmasked; MSI-X on. */
  async enableMsix(): Promise<void> {
    for (let vector = 0; vector < nicMsix.vectorCount; vector++) {
      const entry = nicMsix.tableOffset + vector * 16;
      await this.storeAt(NicBar.REGISTERS, entry, MESSAGE_ADDRESS);
      await this.storeAt(NicBar.REGISTERS, entry + 8, vector);
      await this.storeAt(NicBar.REGISTERS, entry + 12, 0);
    }
    await this.configWrite(this.#msixOffset, 0x8000_0000);
  }

  // ---- registers ----

  /** Reads a register, in simulated time. */
  read(name: RegisterName, at = 0): Promise<number> {
    return this.loadAt(NicBar.REGISTERS, nicBar0.registers[name].offset + at);
  }

  /** Writes a register, and waits until the write arrives. */
  write(name: RegisterName, value: number, at = 0): Promise<void> {
    return this.storeAt(NicBar.REGISTERS, nicBar0.registers[name].offset + at, value);
  }

  /** Passes the store to the root complex without waiting. */
  post(name: RegisterName, value: number): void {
    this.#store(NicBar.REGISTERS, nicBar0.registers[name].offset, value);
  }

  loadAt(bar: number, offset: number, lengthBytes = 4): Promise<number> {
    const address = this.barAddress[bar]! + offset;
    return this.#wait((done) =>
      this.rootComplex.cpuLoad(0, address, lengthBytes, (_status, value) => done(value >>> 0)),
    );
  }

  async storeAt(bar: number, offset: number, value: number): Promise<void> {
    this.#store(bar, offset, value);
    await this.#bench.run(US);
  }

  #store(bar: number, offset: number, value: number): void {
    const bytes = new Uint8Array(4);
    viewOf(bytes).setUint32(0, value, true);
    this.rootComplex.cpuStore(0, this.barAddress[bar]! + offset, bytes, 0, 4, 0);
  }

  // ---- a driver ----

  /** Sets up rings of `count` descriptors and receive buffers, enables both directions and the link, and all causes on vectors 0, 1, 2. */
  async start(count = 16, receiveGiven = count - 1): Promise<void> {
    await this.write('tdbal', TRANSMIT_RING);
    await this.write('tdlen', count * nicDescriptorBytes);
    await this.write('rdbal', RECEIVE_RING);
    await this.write('rdlen', count * nicDescriptorBytes);
    await this.write('txdctl', withField(8, nicBits.queueControl.enable, 1));
    await this.write('rxdctl', withField(8, nicBits.queueControl.enable, 1));
    for (let index = 0; index < count; index++) this.giveBuffer(index);
    await this.write('rdt', receiveGiven);
    await this.write('ivar', 0x000a_0908);
    await this.write('tctl', 0xa);
    await this.write('rctl', 0x8022);
    await this.write('ctrl', 1 << 6);
  }

  bufferOf(index: number): number {
    return RECEIVE_BUFFERS + index * BUFFER_STRIDE;
  }

  giveBuffer(index: number, address = this.bufferOf(index)): void {
    nicReceiveDescriptor.encodeInto(
      { bufferAddress: BigInt(address) },
      this.memory.bytes,
      RECEIVE_RING + index * nicDescriptorBytes,
    );
  }

  transmitDescriptor(index: number) {
    return nicTransmitDescriptor.decode(this.memory.bytes, TRANSMIT_RING + index * nicDescriptorBytes);
  }

  receiveDescriptor(index: number) {
    return nicReceiveDescriptor.decode(this.memory.bytes, RECEIVE_RING + index * nicDescriptorBytes);
  }

  /** Writes a frame's bytes to memory and its descriptor into the ring at `index`; the caller writes the tail. */
  putFrame(
    index: number,
    frame: Uint8Array,
    changes: Partial<Parameters<typeof nicTransmitDescriptor.encode>[0]> = {},
  ) {
    const address = TRANSMIT_BUFFERS + (index % 32) * BUFFER_STRIDE + (index % 4);
    this.memory.bytes.set(frame, address);
    nicTransmitDescriptor.encodeInto(
      { bufferAddress: BigInt(address), length: frame.length, endOfPacket: 1, reportStatus: 1, ...changes },
      this.memory.bytes,
      TRANSMIT_RING + index * nicDescriptorBytes,
    );
    return address;
  }

  received(index: number): Uint8Array {
    return this.memory.bytes.slice(
      this.bufferOf(index),
      this.bufferOf(index) + this.receiveDescriptor(index).length,
    );
  }

  /** Runs until the call was answered. */
  async #wait(call: (done: (value: number) => void) => void): Promise<number> {
    let answer: number | undefined;
    call((value) => {
      answer = value;
    });
    for (let tries = 0; answer === undefined && tries < 1000; tries++) await this.#bench.run(US / 10);
    return answer!;
  }
}

export class NicBench {
  readonly ethernet: EthernetConfig;
  readonly a: NicMachine;
  readonly b: NicMachine;
  readonly #runner: SingleRunner;
  readonly #all: readonly LogicalProcess[];
  nowPs = 0;

  constructor(options: NicBenchOptions = {}) {
    this.ethernet = { ...defaultsOf(ethernetParameters), ...options.ethernet };
    const bytes = ethernetChannelBytes(this.ethernet);
    const [there, back] = [channel(bytes), channel(bytes)];
    this.a = new NicMachine(this, 0, [there, back], options);
    this.b = new NicMachine(this, 1, [back, there], options);
    this.#all = [this.a.hostLp, this.a.nic.lp, this.b.hostLp, this.b.nic.lp];
    this.#runner = new SingleRunner(this.#all);
  }

  /** Runs everything for `durationPs`; software acts at the instant then reached. */
  async run(durationPs: Picoseconds): Promise<void> {
    this.nowPs += durationPs;
    await this.#runner.runTo(this.nowPs);
    for (const lp of this.#all) lp.nowPs = this.nowPs;
  }

  /** Both machines enumerated, MSI-X on, rings running, the link up. */
  async bringUp(count = 16, receiveGiven = count - 1): Promise<void> {
    for (const machine of [this.a, this.b]) {
      await machine.enumerate();
      await machine.enableMsix();
      await machine.start(count, receiveGiven);
    }
    await this.run(20 * US);
    for (const machine of [this.a, this.b]) await machine.read('icr');
  }
}

/** A frame from one node to another, of `lengthBytes`, its payload counting up from `first`. */
export function frameBetween(from: number, to: number, lengthBytes: number, first = 0): Uint8Array {
  const frame = Uint8Array.from({ length: lengthBytes }, (_, index) => (first + index * 7) & 0xff);
  frame.set(macAddressOf(to), 0);
  frame.set(macAddressOf(from), 6);
  frame.set([0x08, 0x00], 12);
  return frame;
}

/** Two machines, brought up with rings of `count` descriptors, of which `given` are provided to the receiving NIC. */
export async function upBench(
  options: ConstructorParameters<typeof NicBench>[0] = {},
  count = 16,
  given = count - 1,
): Promise<NicBench> {
  const made = new NicBench(options);
  await made.bringUp(count, given);
  return made;
}

/** The same in parts. */
export async function boundBench(count = 16, options: ConstructorParameters<typeof NicBench>[0] = {}) {
  const made = await upBench(options, count);
  return { a: made.a, b: made.b, run: made.run.bind(made) };
}
