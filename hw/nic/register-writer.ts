/**
 * Writes to the NIC's registers; see registers.ts. A value that cannot be changes nothing and sets PROGERR.
 */
import { NicCause, nicBits, nicCausesAll } from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/registers.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import { RECEIVE_BUFFER_BYTES_MIN } from './receive-engine.ts';
import type { NicRegisterName, RegisterBlocks, RegisterEffects } from './registers.ts';
import { FRAME_HEADER_BYTES, UNPADDED_BYTES_MIN } from './transmit-engine.ts';

const DWORD_BYTES = 4;
const KIB = 1024;
const DESCRIPTOR_MASK = 0xf_ffff;

export class RegisterWriter {
  /** Registers that read as they were written. */
  ctrl = 0;
  rctl = 0;
  tctl = 0;
  rah = 0;
  piotx = 0;
  readonly #blocks: RegisterBlocks;
  readonly #effects: RegisterEffects;

  constructor(blocks: RegisterBlocks, effects: RegisterEffects) {
    this.#blocks = blocks;
    this.#effects = effects;
  }

  reset(): void {
    this.ctrl = 0;
    this.rctl = 0;
    this.tctl = 0;
    this.piotx = 0;
  }

  /** A dword was written, `at` bytes into the register. */
  write(name: NicRegisterName, at: number, value: number, cycle: number): void {
    const { interrupts, transmitRing, receiveRing } = this.#blocks;
    switch (name) {
      case 'tdt':
        transmitRing.writeTail(value & DESCRIPTOR_MASK, cycle);
        return;
      case 'rdt':
        receiveRing.writeTail(value & DESCRIPTOR_MASK, cycle);
        return;
      case 'ctrl':
        this.#writeControl(value, cycle);
        return;
      case 'icr':
        interrupts.clear(value, cycle);
        return;
      case 'ics':
        interrupts.set(value & nicCausesAll, cycle);
        return;
      case 'ims':
        interrupts.enable(value, cycle);
        return;
      case 'imc':
        interrupts.disable(value, cycle);
        return;
      case 'eiac':
        interrupts.autoClear = value;
        return;
      case 'iam':
        interrupts.autoMask = value;
        return;
      case 'ivar':
        interrupts.assignVectors(value);
        return;
      case 'eitr':
        interrupts.eitr[at / DWORD_BYTES] = value;
        interrupts.moderationChanged(cycle);
        return;
      case 'eict':
        interrupts.eict[at / DWORD_BYTES] = value;
        interrupts.moderationChanged(cycle);
        return;
      default:
        if (!this.#writeRing(name, value, cycle)) this.#writeMac(name, value, cycle);
    }
  }

  /** True when the register was one of a queue's. */
  #writeRing(name: NicRegisterName, value: number, cycle: number): boolean {
    const { transmitRing, receiveRing } = this.#blocks;
    const ring = name.startsWith('td') || name === 'txdctl' ? transmitRing : receiveRing;
    switch (name) {
      case 'rdbal':
      case 'tdbal':
        this.#whileOff(ring, cycle, () => {
          ring.baseLow = value;
        });
        return true;
      case 'rdbah':
      case 'tdbah':
        this.#whileOff(ring, cycle, () => {
          ring.baseHigh = value;
        });
        return true;
      case 'rdlen':
      case 'tdlen':
        this.#whileOff(ring, cycle, () => {
          ring.lengthBytes = value;
        });
        return true;
      case 'rxdctl':
      case 'txdctl':
        ring.prefetch = fieldOf(value, nicBits.queueControl.prefetch);
        if (fieldOf(value, nicBits.queueControl.enable) === 1) ring.enable(cycle);
        else ring.disable(cycle);
        return true;
      default:
        return false;
    }
  }

  #writeMac(name: NicRegisterName, value: number, cycle: number): void {
    const { receiveMac, receiveEngine, counters } = this.#blocks;
    switch (name) {
      case 'rctl':
        this.#writeReceiveControl(value);
        return;
      case 'tctl':
        this.#writeTransmitControl(value, cycle);
        return;
      case 'rxbuf':
        if (value < RECEIVE_BUFFER_BYTES_MIN || value > 0xffff) this.#refuse(cycle);
        else receiveEngine.bufferBytes = value;
        return;
      case 'rxmin':
        receiveEngine.lowWater = value;
        return;
      case 'rxcsum':
        receiveEngine.checksumStart = fieldOf(value, nicBits.rxcsum.start);
        return;
      case 'rlpml':
        receiveMac.longBytesMax = value;
        return;
      case 'ral':
        for (let at = 0; at < DWORD_BYTES; at++) receiveMac.address[at] = value >>> (8 * at);
        return;
      case 'rah':
        this.rah = value;
        receiveMac.address[4] = value;
        receiveMac.address[5] = value >>> 8;
        receiveMac.isAddressValid = fieldOf(value, nicBits.rah.valid) === 1;
        return;
      case 'pbmode':
        this.#writeMode(value, cycle);
        return;
      case 'piotx':
        this.#writeProgrammed(value, cycle);
        return;
      case 'piorx':
        receiveEngine.releaseShown(cycle);
        return;
      default:
        counters.registerAccessErrors++;
    }
  }

  #writeControl(value: number, cycle: number): void {
    if (fieldOf(value, nicBits.ctrl.reset) === 1) {
      this.#effects.reset(cycle);
      return;
    }
    this.ctrl = value;
    this.#effects.setLinkEnabled(fieldOf(value, nicBits.ctrl.setLinkUp) === 1);
  }

  #writeReceiveControl(value: number): void {
    this.rctl = value;
    const { receiveMac } = this.#blocks;
    const field = nicBits.rctl;
    receiveMac.isOn = fieldOf(value, field.enable) === 1;
    receiveMac.isUnicastPromiscuous = fieldOf(value, field.unicastPromiscuous) === 1;
    receiveMac.isMulticastPromiscuous = fieldOf(value, field.multicastPromiscuous) === 1;
    receiveMac.takesLong = fieldOf(value, field.longPackets) === 1;
    receiveMac.takesBroadcasts = fieldOf(value, field.broadcast) === 1;
  }

  #writeTransmitControl(value: number, cycle: number): void {
    this.tctl = value;
    const { transmitEngine } = this.#blocks;
    transmitEngine.isOn = fieldOf(value, nicBits.tctl.enable) === 1;
    transmitEngine.padsShort = fieldOf(value, nicBits.tctl.padShort) === 1;
    transmitEngine.wake(cycle);
  }

  /** PBMODE: each half is switched over only when nothing is on its way in it. */
  #writeMode(value: number, cycle: number): void {
    const { transmitMac, receiveEngine, receiveMac, transmitEngine } = this.#blocks;
    const transmit = fieldOf(value, nicBits.pbmode.transmit) === 1;
    const receive = fieldOf(value, nicBits.pbmode.receive) === 1;
    if (transmit !== transmitMac.isProgrammed) {
      if (transmitEngine.isOn || !this.#effects.isTransmitIdle()) this.#refuse(cycle);
      else transmitMac.isProgrammed = transmit;
    }
    if (receive !== receiveEngine.isProgrammed) {
      if (receiveMac.isOn || !this.#effects.isReceiveIdle()) this.#refuse(cycle);
      else receiveEngine.isProgrammed = receive;
    }
  }

  #writeProgrammed(value: number, cycle: number): void {
    const { transmitMac, transmitEngine } = this.#blocks;
    const { length, offset, go } = nicBits.piotx;
    const bytes = fieldOf(value, length);
    const place = fieldOf(value, offset) * DWORD_BYTES;
    this.piotx = value;
    if (fieldOf(value, go) === 0) return;
    const shortestBytes = transmitEngine.padsShort ? FRAME_HEADER_BYTES : UNPADDED_BYTES_MIN;
    const isLegal =
      transmitMac.isProgrammed &&
      transmitEngine.isOn &&
      transmitMac.hasProgrammedRoom &&
      bytes >= shortestBytes &&
      bytes <= this.#effects.frameBytesMax &&
      place + bytes <= this.#effects.transmitKib * KIB;
    if (isLegal) transmitMac.program(place, bytes, cycle);
    else this.#refuse(cycle);
  }

  #whileOff(ring: DescriptorRing, cycle: number, change: () => void): void {
    if (ring.isEnabled) this.#refuse(cycle);
    else change();
  }

  /** What was written cannot be: nothing changes. */
  #refuse(cycle: number): void {
    this.#blocks.counters.programmingErrors++;
    this.#blocks.interrupts.set(NicCause.PROGERR, cycle);
  }
}
