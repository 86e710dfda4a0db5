/**
 * Drives a NIC without rings: a core moves the words of a frame into the packet buffer by uncached stores and out of it
 * by uncached loads, one after another; or the system DMA controller moves them, programmed by the core through I/O
 * ports.
 *
 *     memory ── core, 4 bytes a store ──► BAR2 ── PIOTX ──► cable ──► BAR2 ── PIORX ── core, 4 bytes a load ──► memory
 *     memory ── DMA controller, 4 bytes a bus cycle ─►                                  ◄─ DMA controller ──► memory
 *
 * This is driver code: it runs in the kernel, within the system calls of traditional-card.ts.
 */
import {
  ethernetFcsBytes,
  ethernetHeaderBytes,
  NicBar,
  NicCause,
  nicBar0,
  nicBits,
  SystemDmaMode,
  SystemDmaTransfer,
  systemDmaBits,
  systemDmaChannelPorts,
  systemDmaPorts,
  systemDmaWordBytes,
} from '../../abi/nic/index.ts';
import { fieldOf, InvariantError, withField } from '../../base/index.ts';
import type { CoreThread, Signal } from '../../host/index.ts';
import type { NicSoftware, ProgramContext } from '../../machine/index.ts';

const registers = nicBar0.registers;
type RegisterName = keyof typeof registers;
const channelPorts = systemDmaChannelPorts.registers;
const commonPorts = systemDmaPorts.registers;
const channel = 0;
const allMasked = 0xf;
const fourGib = 2 ** 32;
const pollPs = 1_000_000;
/** IEEE 802.3, 3.2.7: payload of a basic frame. */
const standardMtuBytes = 1500;

/** A frame in the receive half of the packet buffer. */
export interface WaitingFrame {
  /** Offset in BAR2. */
  readonly offset: number;
  readonly lengthBytes: number;
}

export class CardByHand {
  readonly #cpu: CoreThread;
  readonly #nic: NicSoftware;
  readonly #storeCycles: number;
  readonly #loadCycles: number;
  readonly #mtuBytes: number;
  /** Raised by an interrupt: of the card (a frame waits), and of the DMA controller (terminal count). */
  readonly #frameCame: Signal;
  readonly #wordsMoved: Signal;
  readonly #undo: (() => void)[] = [];

  constructor({ cpu, nic, host, configuration }: ProgramContext) {
    if (nic === undefined || nic.network !== undefined)
      throw new InvariantError('driver of the NIC', nic === undefined ? 'no NIC' : 'the kernel', 'nobody');
    this.#cpu = cpu;
    this.#nic = nic;
    this.#storeCycles = host.config.cost.mmioStore;
    this.#loadCycles = host.config.cost.mmioLoad;
    this.#mtuBytes = configuration.ethernet.mtuBytes;
    this.#frameCame = host.newSignal();
    this.#wordsMoved = host.newSignal();
  }

  /** Resets the card, claims both halves of its packet buffer, and waits for the link. */
  async bringUp(): Promise<void> {
    const { ctrl, tctl, rctl, pbmode, status } = nicBits;
    this.write('ctrl', withField(0, ctrl.reset, 1));
    while (fieldOf(await this.read('ctrl'), ctrl.reset) === 1) await this.#cpu.sleep(pollPs);
    this.write('pbmode', withField(withField(0, pbmode.transmit, 1), pbmode.receive, 1));
    this.write('tctl', withField(withField(0, tctl.enable, 1), tctl.padShort, 1));
    this.write('rctl', this.#takingFrames(withField(0, rctl.enable, 1)));
    this.write('ctrl', withField(0, ctrl.setLinkUp, 1));
    while (fieldOf(await this.read('status'), status.linkUp) === 0) await this.#cpu.sleep(pollPs);
  }

  /** The card drops frames above 1522 bytes unless its registers name a longer limit. */
  #takingFrames(rctl: number): number {
    if (this.#mtuBytes <= standardMtuBytes) return rctl;
    this.write('rlpml', this.#mtuBytes + ethernetHeaderBytes + ethernetFcsBytes);
    return withField(rctl, nicBits.rctl.longPackets, 1);
  }

  /** Makes the card interrupt (by its pin) when a frame waits, and the DMA controller at terminal count. */
  async useInterrupts(): Promise<void> {
    const { systemDma, platform } = this.#nic;
    platform.interrupts.legacy.attach(async (cpu) => {
      // Reading the causes deasserts the pin; interrupts stay disabled until the next wait.
      await cpu.mmioRead32(this.#address('icr'));
      this.#frameCame.raise();
    });
    const detach = systemDma.attach(async (cpu) => {
      await systemDma.read(cpu, commonPorts.status.offset);
      this.#wordsMoved.raise();
    });
    this.#undo.push(() => platform.interrupts.legacy.detach(), detach);
    this.write('ims', NicCause.PIORX);
    await systemDma.write(this.#cpu, commonPorts.command.offset, 1);
  }

  async close(): Promise<void> {
    this.write('imc', 0xffff_ffff);
    await this.read('status');
    for (const undo of this.#undo) undo();
  }

  // Registers.

  read(name: RegisterName): Promise<number> {
    return this.#load(this.#address(name));
  }

  write(name: RegisterName, value: number): void {
    this.#store(this.#address(name), value);
  }

  // The packet buffer, word by word.

  /** Stores words of 4 bytes, with the last one padded. */
  storeWords(offset: number, bytes: Uint8Array): void {
    const { programmed } = this.#nic;
    const base = this.#nic.found.bars[NicBar.PACKET_BUFFER]!.address + offset;
    for (let at = 0; at < bytes.length; at += systemDmaWordBytes) {
      this.#store(base + at, wordAt(bytes, at));
      programmed.stores++;
      programmed.storedBytes += systemDmaWordBytes;
    }
  }

  /** Loads as many words as `into` needs. */
  async loadWords(offset: number, into: Uint8Array): Promise<void> {
    const { programmed } = this.#nic;
    const base = this.#nic.found.bars[NicBar.PACKET_BUFFER]!.address + offset;
    for (let at = 0; at < into.length; at += systemDmaWordBytes) {
      const word = await this.#load(base + at);
      for (let byte = 0; byte < systemDmaWordBytes && at + byte < into.length; byte++)
        into[at + byte] = word >>> (8 * byte);
      programmed.loads++;
      programmed.loadedBytes += systemDmaWordBytes;
    }
  }

  /** Sends the frame stored at `offset`. */
  async send(offset: number, lengthBytes: number): Promise<void> {
    const { length, offset: place, go } = nicBits.piotx;
    let value = withField(0, length, lengthBytes);
    value = withField(value, place, offset / systemDmaWordBytes);
    this.write('piotx', withField(value, go, 1));
    await this.#cpu.settle();
  }

  /** Polls the card for the oldest frame. Undefined if none arrived until `deadlinePs`. */
  async pollFrame(deadlinePs: number): Promise<WaitingFrame | undefined> {
    for (;;) {
      const frame = await this.#frameNow();
      if (frame !== undefined || this.#cpu.localPs >= deadlinePs) return frame;
    }
  }

  /** The same, but sleeps until the card interrupts. */
  async awaitFrame(deadlinePs: number): Promise<WaitingFrame | undefined> {
    for (;;) {
      const frame = await this.#frameNow();
      if (frame !== undefined || this.#cpu.localPs >= deadlinePs) return frame;
      await this.#frameCame.wait(this.#cpu, Math.max(1, deadlinePs - this.#cpu.localPs));
    }
  }

  /** Frees the buffer space of the oldest frame. */
  release(): void {
    this.write('piorx', 0);
  }

  // The DMA controller.

  /**
   * Makes the controller move whole words between memory and the packet buffer, and sleeps until it has finished.
   * @param physical address in memory, a multiple of 4
   */
  async moveWords(
    direction: 'toCard' | 'toMemory',
    physical: number,
    offset: number,
    words: number,
  ): Promise<void> {
    const { systemDma, found } = this.#nic;
    const cpu = this.#cpu;
    const device = found.bars[NicBar.PACKET_BUFFER]!.address + offset;
    const transfer = direction === 'toCard' ? SystemDmaTransfer.READ : SystemDmaTransfer.WRITE;
    const { mode } = systemDmaBits;
    const out = (port: number, value: number): Promise<void> => systemDma.write(cpu, port, value);
    await out(channelPorts.addressLow.offset, physical % fourGib);
    await out(channelPorts.addressHigh.offset, Math.floor(physical / fourGib));
    await out(channelPorts.count.offset, words);
    await out(channelPorts.deviceLow.offset, device % fourGib);
    await out(channelPorts.deviceHigh.offset, Math.floor(device / fourGib));
    await out(
      channelPorts.mode.offset,
      withField(withField(0, mode.mode, SystemDmaMode.BLOCK), mode.transfer, transfer),
    );
    await out(commonPorts.mask.offset, allMasked & ~(1 << channel));
    await out(commonPorts.request.offset, 1 << channel);
    await this.#wordsMoved.wait(cpu);
  }

  async #frameNow(): Promise<WaitingFrame | undefined> {
    const value = await this.read('piorx');
    const { valid, length, offset } = nicBits.piorx;
    if (fieldOf(value, valid) === 0) return undefined;
    return { offset: fieldOf(value, offset) * systemDmaWordBytes, lengthBytes: fieldOf(value, length) };
  }

  #address(name: RegisterName): number {
    return this.#nic.found.bars[NicBar.REGISTERS]!.address + registers[name].offset;
  }

  #store(address: number, value: number): void {
    const cpu = this.#cpu;
    const at = cpu.pushDeviceStore(address, systemDmaWordBytes, 'uncached');
    cpu.storeView.setUint32(at, value, true);
    cpu.commit('programmedIo', this.#storeCycles);
  }

  #load(address: number): Promise<number> {
    const { port } = this.#cpu.core.target;
    return this.#cpu.access('programmedIo', this.#loadCycles, (done) =>
      port.cpuLoad(address, systemDmaWordBytes, done),
    );
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  let word = 0;
  for (let byte = 0; byte < systemDmaWordBytes && at + byte < bytes.length; byte++)
    word |= bytes[at + byte]! << (8 * byte);
  return word >>> 0;
}
