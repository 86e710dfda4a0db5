/**
 * A NIC for specs: registers, rings and interrupts by abi/nic, without link, DMA engines or timing except the cable's. It reads
 * and writes its host's memory at once. Specs request its faults: lost interrupts, endless interrupts, a hung transmit ring.
 */
import { nicBar0, nicIdentity, nicReceiveDescriptor, nicTransmitDescriptor } from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/registers.ts';
import type { AccessDone, DevicePort } from '../../host/device-port.ts';
import type { InterruptController } from '../../host/interrupt-controller.ts';
import type { PhysicalMemory } from '../../host/physical-memory.ts';
import { PHASE_SOFTWARE } from '../../sim/event-queue.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import { folded, sumOf } from '../stack/checksum.ts';

const fakeBar0 = 0x1_0000_0000;
export const fakeBars = [{ address: fakeBar0, sizeBytes: nicBar0.sizeBytes }];
const loadLatencyPs = 500_000;
const frameLatencyPs = 300_000;
const { registers } = nicBar0;
const transmit = nicTransmitDescriptor.fields;
const receive = nicReceiveDescriptor.fields;

/** Carries a frame to the other side. */
export type SendFrame = (frame: Uint8Array) => void;

export class FakeNic {
  /** Interrupt messages that are not sent. */
  lostInterrupts = 0;
  /** Frames are no longer taken from the ring; a reset repairs it. */
  isHung = false;
  resets = 0;
  framesSent = 0;
  framesDropped = 0;
  /** All zero after removal: the device no longer refers to the host's memory. */
  readonly values = new Map<number, number>();
  sendFrame: SendFrame = () => {};
  readonly #process: LogicalProcess;
  readonly #memory: PhysicalMemory;
  readonly #interrupts: InterruptController;
  readonly #mac: Uint8Array;
  readonly #config = new Map<number, number>();
  readonly #transmitEvent: number;
  readonly #moderationEvent: number;
  #icr = 0;
  #ims = 0;
  #isModerating = false;
  #transmitHead = 0;
  #receiveHead = 0;
  #isTransmitting = false;

  constructor(
    process: LogicalProcess,
    memory: PhysicalMemory,
    interrupts: InterruptController,
    mac: Uint8Array,
  ) {
    this.#process = process;
    this.#memory = memory;
    this.#interrupts = interrupts;
    this.#mac = mac;
    this.#config.set(0, nicIdentity.deviceId * 0x1_0000 + nicIdentity.vendorId);
    this.#config.set(0x34, 0x40);
    this.#config.set(0x40, (3 << 16) | 0x11);
    this.#config.set(0x44, registers.msixTable.offset);
    this.#transmitEvent = process.queue.addHandler(() => this.#transmitOne());
    this.#moderationEvent = process.queue.addHandler(() => {
      this.#isModerating = false;
      this.#interrupt();
    });
    this.#reset();
  }

  get isBusMaster(): boolean {
    return ((this.#config.get(4) ?? 0) & 4) !== 0;
  }

  /** A frame arrives from the cable. */
  frameArrived(onCable: Uint8Array): void {
    const isTagged = this.#hasVlanMode && onCable[12] === 0x81 && onCable[13] === 0;
    const tag = isTagged ? (onCable[14]! << 8) | onCable[15]! : 0;
    if (isTagged && !this.#takesVlan(tag & 0xfff)) return;
    const frame = isTagged ? Uint8Array.of(...onCable.subarray(0, 12), ...onCable.subarray(16)) : onCable;
    const head = this.#receiveHead;
    const length = this.#value('rdlen') / 16;
    if ((this.#value('rctl') & 2) === 0 || head === this.#value('rdt')) {
      this.framesDropped++;
      return;
    }
    const { bytes, view } = this.#memory;
    const at = this.#value('rdbal') + head * 16;
    bytes.set(frame, receive.bufferAddress.getNumber(view, at));
    const start = fieldOf(this.#value('rxcsum'), registers.rxcsum.fields.start);
    receive.length.set(view, at, frame.length);
    receive.checksum.set(view, at, folded(sumOf(frame, start, frame.length - start)));
    receive.endOfPacket.set(view, at, 1);
    receive.isTagged.set(view, at, isTagged ? 1 : 0);
    receive.special.set(view, at, tag);
    receive.done.set(view, at, 1);
    this.#receiveHead = (head + 1) % length;
    this.cause(1 << 7);
  }

  /** Sets causes, as a write to ICS does. */
  cause(bits: number): void {
    this.#icr |= bits;
    this.#interrupt();
  }

  /** The port of a core. */
  port(): DevicePort {
    return {
      canStore: () => true,
      cpuStore: (address, _class, source, offset, length) => {
        for (let at = 0; at < length; at += 4) {
          const word = new DataView(source.buffer, source.byteOffset + offset + at, 4).getUint32(0, true);
          this.#write(address + at - fakeBar0, word);
        }
      },
      connect: () => {},
      cpuLoad: (address, _length, done) => this.#answer(() => this.#read(address - fakeBar0), done),
      cpuConfigRead: (_id, offset, done) => this.#answer(() => this.#config.get(offset) ?? 0, done),
      cpuConfigWrite: (_id, offset, value, done) =>
        this.#answer(() => {
          this.#config.set(offset, value);
          return 0;
        }, done),
    };
  }

  get #hasVlanMode(): boolean {
    return fieldOf(this.#value('ctrl'), registers.ctrl.fields.vlanMode) === 1;
  }

  #takesVlan(vlan: number): boolean {
    if (fieldOf(this.#value('rctl'), registers.rctl.fields.vlanFilter) === 0) return true;
    const dword = this.values.get(registers.vfta.offset + 4 * (vlan >> 5)) ?? 0;
    return ((dword >>> (vlan & 31)) & 1) === 1;
  }

  #answer(value: () => number, done: AccessDone): void {
    const { queue, nowPs } = this.#process;
    queue.schedule(
      nowPs + loadLatencyPs,
      queue.addHandler(() => done(0, value()), PHASE_SOFTWARE),
    );
  }

  #value(name: keyof typeof registers): number {
    return this.values.get(registers[name].offset) ?? 0;
  }

  #read(offset: number): number {
    if (offset === registers.status.offset) return 3;
    if (offset === registers.ims.offset) return this.#ims;
    return this.values.get(offset) ?? 0;
  }

  #write(offset: number, value: number): void {
    if (offset === registers.ims.offset) {
      this.#ims |= value;
      this.#interrupt();
    } else if (offset === registers.imc.offset) this.#ims &= ~value;
    else if (offset === registers.ctrl.offset && fieldOf(value, registers.ctrl.fields.reset) === 1)
      this.#reset();
    else {
      this.values.set(offset, value);
      if (offset === registers.tdt.offset) this.#kick();
      if (offset === registers.txdctl.offset) this.#transmitHead = 0;
      if (offset === registers.rxdctl.offset) this.#receiveHead = 0;
    }
  }

  #reset(): void {
    this.resets++;
    this.isHung = false;
    this.values.clear();
    this.#icr = 0;
    this.#ims = 0;
    const mac = new DataView(this.#mac.buffer, this.#mac.byteOffset, 6);
    this.values.set(registers.ral.offset, mac.getUint32(0, true));
    this.values.set(registers.rah.offset, mac.getUint16(4, true) + 2 ** 31);
  }

  #interrupt(): void {
    const due = this.#icr & this.#ims;
    if (due === 0 || this.#isModerating) return;
    const unit = 256_000;
    const intervalPs = this.#value('eitr') * unit;
    if (intervalPs > 0) {
      this.#isModerating = true;
      this.#process.queue.schedule(this.#process.nowPs + intervalPs, this.#moderationEvent);
    }
    this.#icr &= ~this.#value('eiac');
    this.#ims &= ~this.#value('iam');
    if (this.lostInterrupts > 0) {
      this.lostInterrupts--;
      return;
    }
    const entry = registers.msixTable.offset;
    this.#interrupts.message(this.values.get(entry) ?? 0, this.values.get(entry + 8) ?? 0);
  }

  #kick(): void {
    if (this.#isTransmitting || this.isHung) return;
    this.#isTransmitting = true;
    this.#process.queue.schedule(this.#process.nowPs + frameLatencyPs, this.#transmitEvent);
  }

  #transmitOne(): void {
    this.#isTransmitting = false;
    const head = this.#transmitHead;
    if (head === this.#value('tdt') || this.isHung || (this.#value('tctl') & 2) === 0) return;
    const { bytes, view } = this.#memory;
    const at = this.#value('tdbal') + head * 16;
    const address = transmit.bufferAddress.getNumber(view, at);
    let frame = bytes.slice(address, address + transmit.length.get(view, at));
    if (transmit.insertChecksum.get(view, at) === 1) {
      const start = transmit.checksumStart.get(view, at);
      const place = transmit.checksumOffset.get(view, at);
      const sum = ~folded(sumOf(frame, start, frame.length - start)) & 0xffff;
      new DataView(frame.buffer).setUint16(place, sum);
    }
    if (this.#hasVlanMode && transmit.insertTag.get(view, at) === 1) {
      const tag = transmit.special.get(view, at);
      frame = Uint8Array.of(
        ...frame.subarray(0, 12),
        ...[0x81, 0, tag >> 8, tag & 0xff],
        ...frame.subarray(12),
      );
    }
    transmit.done.set(view, at, 1);
    this.#transmitHead = (head + 1) % (this.#value('tdlen') / 16);
    this.framesSent++;
    this.sendFrame(frame);
    this.cause(1);
    this.#kick();
  }
}
