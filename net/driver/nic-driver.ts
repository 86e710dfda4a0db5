/**
 * The driver of the conventional NIC: a network device for the stack, brought up from its PCI function, monitored while it
 * works, and removed without leaks.
 *
 *     stack ── transmit, kick ──► transmit ring ──► NIC      NIC ── interrupt ──► SoftInterrupt ─► poll ─┬─ transmit: clean
 *     stack ◄── receive ──────────────────────────────────────────── receive ring ◄──────────────────────┴─ receive: pass up
 *
 * Every resource that probe acquires has an inverse step in `#undo`, which remove and a failed probe run in reverse order.
 */

import { ethernetHeaderBytes, ethernetTagBytes, NicBar, nicDescriptorBytes } from '../../abi/nic/index.ts';
import { pageBytes } from '../../base/index.ts';
import { disableBusMaster, disableMsix, enableMsix, findMsix, type MsixTable } from '../../driver/index.ts';
import type { NetStatistics } from '../net-statistics.ts';
import type { NetCostConfig, NetDriverConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import { NetError } from '../socket/index.ts';
import {
  bufferBytesFor,
  type DeviceFilters,
  type NetDevice,
  type NetworkLayer,
  noTag,
  type OutboundFrame,
  PacketBuffers,
} from '../stack/index.ts';
import {
  dataCauses,
  hasFault,
  NicVector,
  nicVectorCount,
  programmeFilters,
  programmeRings,
  readMacAddress,
  resetNic,
  startNic,
  untilLinkUp,
} from './nic-hardware.ts';
import { enableFunction } from './pci.ts';
import { ReceiveRing } from './receive-ring.ts';
import { NicRegisterFile } from './registers.ts';
import { type Polled, SoftInterrupt } from './soft-interrupt.ts';
import { TransmitRing } from './transmit-ring.ts';
import { Watchdog, type Watched } from './watchdog.ts';

const smallestBufferBytes = 2048;
/** Header, tag and FCS around the longest packet. */
const frameOverheadBytes = ethernetHeaderBytes + ethernetTagBytes;

export class NicDriver implements NetDevice, Polled, Watched {
  readonly buffers: PacketBuffers;
  readonly mtu: number;
  readonly hasChecksumOffload: boolean;
  macAddress: Uint8Array = new Uint8Array(6);
  isLinkUp = false;
  readonly #platform: NetPlatform;
  readonly #config: NetDriverConfig;
  readonly #costs: NetCostConfig;
  readonly #counts: NetStatistics;
  readonly #softirq: SoftInterrupt;
  readonly #watchdog: Watchdog;
  readonly #undo: ((cpu: Cpu) => Promise<void> | void)[] = [];
  #layer: NetworkLayer | undefined;
  #filters: DeviceFilters = { groups: [], vlans: [] };
  #registers!: NicRegisterFile;
  #msix!: MsixTable;
  #transmit!: TransmitRing;
  #receive!: ReceiveRing;
  #isUp = false;
  #isResetting = false;
  #sent = 0;
  #wasFull = false;
  /** Tail last written to the device (TDT), and whether a thread is writing it now. */
  #rung = 0;
  #isRinging = false;

  constructor(platform: NetPlatform, config: NetDriverConfig, costs: NetCostConfig, counts: NetStatistics) {
    this.#platform = platform;
    this.#config = config;
    this.#costs = costs;
    this.#counts = counts;
    this.mtu = config.mtu;
    this.hasChecksumOffload = config.checksumOffload;
    let bufferBytes = smallestBufferBytes;
    while (bufferBytes < bufferBytesFor(config.mtu)) bufferBytes *= 2;
    this.buffers = new PacketBuffers(platform.memory, bufferBytes, config.buffersMax);
    this.#softirq = new SoftInterrupt(platform, config, costs, counts, this);
    this.#watchdog = new Watchdog(platform, config, this);
  }

  /** Receiver of the frames. */
  connect(layer: NetworkLayer): void {
    this.#layer = layer;
  }

  /** Brings the device up. @throws NetError ENODEV, ENOMEM, EIO, with everything acquired so far released */
  async probe(cpu: Cpu): Promise<void> {
    try {
      await this.#bringUp(cpu);
    } catch (error) {
      await this.#takeBack(cpu);
      throw error;
    }
  }

  /** Releases everything; the stack has released all its buffers. */
  async remove(cpu: Cpu): Promise<void> {
    while (this.#isResetting) await cpu.sleep(1_000_000);
    await this.#takeBack(cpu);
  }

  // Methods for the stack.

  get room(): number {
    if (!this.#isUp) return 0;
    const { room } = this.#transmit;
    if (room === 0) this.#wasFull = true;
    return room;
  }

  transmit(cpu: Cpu, frame: OutboundFrame, tag: number): void {
    cpu.charge('driver', this.#costs.driverTransmit);
    this.#transmit.post(frame, tag);
    this.#counts.framesSent++;
    this.#counts.bytesSent += frame.lengthBytes + (tag === noTag ? 0 : ethernetTagBytes);
  }

  async flush(cpu: Cpu): Promise<void> {
    await cpu.settle();
    if (this.#isRinging || !this.#isUp || this.#rung === this.#transmit.tail) return;
    this.#isRinging = true;
    this.#platform.kernelEntered(cpu);
    // A posted store that has not left yet could be overtaken by another thread's: the ring would appear full.
    while (this.#isUp && this.#rung !== this.#transmit.tail) {
      this.#rung = this.#transmit.tail;
      this.#counts.doorbells++;
      this.#registers.write(cpu, 'tdt', this.#rung);
      await cpu.settle();
    }
    this.#platform.kernelLeft(cpu);
    this.#isRinging = false;
    this.#watchdog.used();
  }

  used(): void {
    this.#watchdog.used();
  }

  // Methods for SoftInterrupt.

  async poll(cpu: Cpu, weight: number): Promise<number> {
    this.#counts.polls++;
    cpu.charge('softirq', this.#costs.pollFixed);
    await cpu.settle();
    if (!this.#isUp) return 0;
    await this.#cleanTransmit(cpu);
    return this.#pollReceive(cpu, weight);
  }

  unmask(cpu: Cpu): void {
    if (this.#isUp) this.#registers.write(cpu, 'ims', dataCauses);
  }

  // Methods for the watchdog.

  get waitingMark(): number {
    if (!this.#isUp || this.#softirq.isScheduled) return -1;
    if (this.#receive.hasFrame) return this.#counts.framesReceived * 2;
    return this.#transmit.isHeadDone ? this.#sent * 2 + 1 : -1;
  }

  get unsentFrames(): number {
    return this.#isUp ? this.#transmit.outstanding : 0;
  }

  get sentMark(): number {
    return this.#sent;
  }

  interruptLost(): void {
    this.#counts.recoveredInterrupts++;
    this.#platform.log?.('nic: frames wait and no interrupt came');
    this.#softirq.schedule();
  }

  transmitHung(): void {
    this.#scheduleReset('the transmit ring does not move');
  }

  // Bringing up and down.

  async #bringUp(cpu: Cpu): Promise<void> {
    const platform = this.#platform;
    await enableFunction(cpu, platform, [NicBar.REGISTERS]);
    this.#undo.push((thread) => disableBusMaster(thread, platform));
    this.#registers = new NicRegisterFile(platform);
    await resetNic(cpu, platform, this.#registers, this.#config.resetLimitUs);
    this.#undo.push((thread) => this.#quieten(thread));
    this.macAddress = await readMacAddress(cpu, this.#registers);
    this.#filters = this.#layer?.begins(this.macAddress) ?? this.#filters;
    this.#makeRings();
    const msix = await findMsix(cpu, platform);
    if (msix === undefined) throw new NetError('ENODEV', 'the device has no MSI-X');
    this.#msix = msix;
    if (Math.min(msix.vectorCount, platform.interrupts.vectorCount) < nicVectorCount)
      throw new NetError('ENODEV', `interrupt vectors: fewer than ${nicVectorCount}`);
    this.#attach();
    this.#undo.push((thread) => disableMsix(thread, platform, this.#msix));
    if (!(await this.#start(cpu))) throw new NetError('ENOMEM', 'no buffers for the receive ring');
    this.isLinkUp = await untilLinkUp(cpu, platform, this.#registers, this.#config.linkLimitUs);
    this.#watchdog.start();
    this.#undo.push(() => this.#watchdog.stop());
  }

  /** Memory of the rings. */
  #makeRings(): void {
    const { memory } = this.#platform;
    const take = (entries: number): number => {
      const frames = Math.ceil((entries * nicDescriptorBytes) / pageBytes);
      const address = memory.allocateFrames(frames);
      if (address < 0) throw new NetError('ENOMEM', 'no memory for a descriptor ring');
      this.#undo.push(() => memory.freeFrames(address, frames));
      return address;
    };
    this.#undo.push(() => this.buffers.release());
    const { transmitRing, receiveRing } = this.#config;
    const { hasChecksumOffload } = this;
    this.#transmit = new TransmitRing(
      memory,
      take(transmitRing),
      transmitRing,
      this.buffers,
      hasChecksumOffload,
    );
    this.#receive = new ReceiveRing(memory, take(receiveRing), receiveRing, this.buffers);
    this.#undo.push(() => {
      this.#transmit.restart();
      this.#receive.restart();
    });
  }

  #attach(): void {
    const { interrupts } = this.#platform;
    const attach = (vector: number, handler: (cpu: Cpu) => Promise<void>): void => {
      interrupts.attach(vector, handler);
      this.#undo.push(() => interrupts.detach(vector));
    };
    attach(NicVector.DATA, (cpu) => this.#softirq.interrupt(cpu));
    attach(NicVector.OTHER, (cpu) => this.#otherInterrupt(cpu));
  }

  /**
   * Brings the device from reset to operation. @returns false if receive buffers are missing
   */
  async #start(cpu: Cpu): Promise<boolean> {
    const { transmitRing, receiveRing, mtu } = this.#config;
    await enableMsix(cpu, this.#platform, this.#msix, nicVectorCount);
    programmeRings(cpu, this.#registers, {
      transmitAddress: this.#transmit.address,
      transmitEntries: transmitRing,
      receiveAddress: this.#receive.address,
      receiveEntries: receiveRing,
      bufferBytes: this.buffers.bufferBytes,
      frameBytesMax: mtu + frameOverheadBytes,
    });
    programmeFilters(cpu, this.#registers, this.#filters);
    if (!this.#receive.fill() && this.#receive.tail === 0) return false;
    this.#rung = 0;
    this.#isUp = true;
    startNic(cpu, this.#registers, this.#config);
    this.#registers.write(cpu, 'rdt', this.#receive.tail);
    await cpu.settle();
    return true;
  }

  /** Stops the device: no more interrupts, no more access to memory. */
  async #quieten(cpu: Cpu): Promise<void> {
    this.#isUp = false;
    this.#softirq.isStopped = true;
    try {
      await resetNic(cpu, this.#platform, this.#registers, this.#config.resetLimitUs);
    } catch (error) {
      // A removed device accesses no memory either.
      if (!(error instanceof NetError)) throw error;
    }
    while (this.#softirq.isScheduled) await cpu.sleep(1_000_000);
  }

  async #takeBack(cpu: Cpu): Promise<void> {
    // First the device is silenced, then memory is freed: the list in reverse order, after the reset.
    if (this.#isUp) await this.#quieten(cpu);
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) await undo(cpu);
    this.#softirq.isStopped = false;
    await cpu.settle();
  }

  // Operation.

  async #cleanTransmit(cpu: Cpu): Promise<void> {
    let cleaned = 0;
    while (this.#transmit.isHeadDone && cleaned < this.#config.transmitRing) {
      this.#transmit.takeHead();
      cpu.charge('driver', this.#costs.driverComplete);
      cleaned++;
    }
    if (cleaned === 0) return;
    this.#sent += cleaned;
    await cpu.settle();
    if (this.#wasFull && this.#isUp && this.#transmit.room > 0) {
      this.#wasFull = false;
      this.#layer?.roomAgain(cpu);
      await this.flush(cpu);
    }
  }

  async #pollReceive(cpu: Cpu, weight: number): Promise<number> {
    let handled = 0;
    let given = 0;
    while (handled < weight && this.#isUp && this.#receive.hasFrame) {
      handled++;
      cpu.charge('driver', this.#costs.driverReceive);
      cpu.charge('protocol', this.#costs.bufferAllocate);
      await cpu.settle();
      if (!this.#isUp) break;
      this.#takeFrame(cpu);
      if (this.#rung !== this.#transmit.tail) await this.flush(cpu);
      if (++given === this.#config.refillBatch) {
        this.#registers.write(cpu, 'rdt', this.#receive.tail);
        given = 0;
      }
    }
    if (given > 0 && this.#isUp) this.#registers.write(cpu, 'rdt', this.#receive.tail);
    return handled;
  }

  #takeFrame(cpu: Cpu): void {
    const buffer = this.#receive.take();
    this.#counts.framesReceived++;
    if (buffer === undefined) {
      if (this.#receive.isWhole) this.#counts.droppedForMemory++;
      else this.#counts.badFrames++;
      return;
    }
    const { sum, tag } = this.#receive;
    this.#counts.bytesReceived += buffer.length + (tag === noTag ? 0 : ethernetTagBytes);
    if (this.#layer === undefined) this.buffers.give(buffer);
    else this.#layer.receive(cpu, buffer, this.hasChecksumOffload ? sum : -1, tag);
  }

  /** Handles link changes and faults on a thread, which may wait. */
  async #otherInterrupt(cpu: Cpu): Promise<void> {
    this.#counts.interrupts++;
    cpu.charge('interrupt', this.#costs.interruptHandler);
    await cpu.settle();
    if (!this.#isUp || this.#isResetting) return;
    this.#platform.spawn('nic events', async (thread) => {
      if (await hasFault(thread, this.#registers)) this.#scheduleReset('a queue has stopped');
      else this.isLinkUp = await untilLinkUp(thread, this.#platform, this.#registers, 0);
      await thread.settle();
    });
  }

  #scheduleReset(why: string): void {
    if (this.#isResetting || !this.#isUp) return;
    this.#isResetting = true;
    this.#platform.log?.(`nic: ${why}: reset`);
    this.#counts.adapterResets++;
    this.#platform.spawn('nic reset', (cpu) => this.#reset(cpu));
  }

  /** Resets and restarts: frames in flight are lost, and the transport retransmits them. */
  async #reset(cpu: Cpu): Promise<void> {
    await this.#quieten(cpu);
    this.#transmit.restart();
    this.#receive.restart();
    try {
      await resetNic(cpu, this.#platform, this.#registers, this.#config.resetLimitUs);
      this.#softirq.isStopped = false;
      await this.#start(cpu);
      this.isLinkUp = await untilLinkUp(cpu, this.#platform, this.#registers, this.#config.linkLimitUs);
      this.#wasFull = false;
      this.#layer?.roomAgain(cpu);
      await this.flush(cpu);
    } catch (error) {
      if (!(error instanceof NetError)) throw error;
      this.#platform.log?.(`nic: ${error.message}`);
    }
    this.#isResetting = false;
    await cpu.settle();
  }
}
