/**
 * Values and effects of the NIC's registers, by name. A register without a hook keeps the value that software wrote, as
 * declared.
 *
 * Writes to ring registers of an enabled queue, to PBMODE while frames are in progress, and of invalid values change nothing:
 * they set PROGERR.
 */

import { NicCause, type nicBar0, nicBits, nicCausesAll } from '../../abi/nic/index.ts';
import { type Cycles, fieldOf, type RegisterHooks, withField } from '../../base/index.ts';
import type { BusMaster } from './bus-master.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import type { RegisterBlocks, ResetByRegister } from './nic-registers.ts';
import type { StatisticName } from './nic-statistics.ts';
import { RECEIVE_BUFFER_BYTES_MIN } from './receive-engine.ts';
import { FRAME_HEADER_BYTES, UNPADDED_BYTES_MIN } from './transmit-engine.ts';

type NicHooks = RegisterHooks<typeof nicBar0.registers>;

const DWORD_BYTES = 4;
const KIB = 1024;
const FOUR_GIB = 0x1_0000_0000;

export function registerHooks(blocks: RegisterBlocks, card: ResetByRegister): NicHooks {
  return {
    ...deviceHooks(blocks, card),
    ...interruptHooks(blocks),
    ...queueHooks(blocks),
    ...statisticsHooks(blocks),
    ...macHooks(blocks),
    ...engineHooks(blocks),
    ...bufferHooks(blocks),
  };
}

/** The written value is invalid: nothing changes. */
function refuse({ counters, interrupts }: RegisterBlocks, cycle: Cycles): void {
  counters.programmingErrors++;
  interrupts.set(NicCause.PROGERR, cycle);
}

const deviceHooks = (
  { port, receiveMac, transmitEngine }: RegisterBlocks,
  card: ResetByRegister,
): NicHooks => ({
  ctrl: {
    read: (stored, _at, cycle) => withField(stored, nicBits.ctrl.reset, card.isResetting(cycle) ? 1 : 0),
    write: (written, _at, cycle) => {
      if (fieldOf(written, nicBits.ctrl.reset) === 1) {
        card.resetByRegister(cycle);
        return;
      }
      port.setEnabled(fieldOf(written, nicBits.ctrl.setLinkUp) === 1);
      receiveMac.takesTagsOut = fieldOf(written, nicBits.ctrl.vlanMode) === 1;
      transmitEngine.insertsTags = receiveMac.takesTagsOut;
    },
  },
  status: { read: (stored) => withField(stored, nicBits.status.linkUp, port.isUp ? 1 : 0) },
});

const interruptHooks = ({ interrupts }: RegisterBlocks): NicHooks => ({
  icr: {
    read: (_stored, _at, cycle) => interrupts.readCauses(cycle),
    write: (written, _at, cycle) => interrupts.clear(written, cycle),
  },
  ics: { write: (written, _at, cycle) => interrupts.set(written & nicCausesAll, cycle) },
  ims: {
    read: () => interrupts.mask,
    write: (written, _at, cycle) => interrupts.enable(written, cycle),
  },
  imc: { write: (written, _at, cycle) => interrupts.disable(written, cycle) },
  eiac: {
    read: () => interrupts.autoClear,
    write: (written) => {
      interrupts.autoClear = written;
    },
  },
  iam: {
    read: () => interrupts.autoMask,
    write: (written) => {
      interrupts.autoMask = written;
    },
  },
  ivar: { write: (written) => interrupts.assignVectors(written) },
  eitr: {
    read: (_stored, at) => interrupts.eitr[at / DWORD_BYTES]!,
    write: (written, at, cycle) => {
      interrupts.eitr[at / DWORD_BYTES] = written;
      interrupts.moderationChanged(cycle);
    },
  },
  eict: {
    read: (_stored, at) => interrupts.eict[at / DWORD_BYTES]!,
    write: (written, at, cycle) => {
      interrupts.eict[at / DWORD_BYTES] = written;
      interrupts.moderationChanged(cycle);
    },
  },
});

function queueHooks(blocks: RegisterBlocks): NicHooks {
  const { transmitRing, receiveRing, receiveEngine } = blocks;
  const rx = ringHooks(receiveRing, blocks);
  const tx = ringHooks(transmitRing, blocks);
  return {
    rdbal: rx.baseLow,
    rdbah: rx.baseHigh,
    rdlen: rx.length,
    rdh: { read: () => receiveRing.head },
    rdt: rx.tail,
    rxdctl: rx.control,
    rxbuf: {
      read: () => receiveEngine.bufferBytes,
      write: (written, _at, cycle) => {
        if (written < RECEIVE_BUFFER_BYTES_MIN || written > 0xffff) refuse(blocks, cycle);
        else receiveEngine.bufferBytes = written;
      },
    },
    rxmin: {
      read: () => receiveEngine.lowWater,
      write: (written) => {
        receiveEngine.lowWater = written;
      },
    },
    tdbal: tx.baseLow,
    tdbah: tx.baseHigh,
    tdlen: tx.length,
    tdh: { read: () => transmitRing.head },
    tdt: tx.tail,
    txdctl: tx.control,
  };
}

/** The registers of a queue's ring; base and length change only while the queue is off. */
function ringHooks(ring: DescriptorRing, blocks: RegisterBlocks) {
  return {
    baseLow: {
      read: () => ring.baseLow,
      write: (written: number, _at: number, cycle: Cycles) => {
        if (ring.isEnabled) refuse(blocks, cycle);
        else ring.baseLow = written;
      },
    },
    baseHigh: {
      read: () => ring.baseHigh,
      write: (written: number, _at: number, cycle: Cycles) => {
        if (ring.isEnabled) refuse(blocks, cycle);
        else ring.baseHigh = written;
      },
    },
    length: {
      read: () => ring.lengthBytes,
      write: (written: number, _at: number, cycle: Cycles) => {
        if (ring.isEnabled) refuse(blocks, cycle);
        else ring.lengthBytes = written;
      },
    },
    tail: {
      read: () => ring.tail,
      write: (written: number, _at: number, cycle: Cycles) => ring.writeTail(written, cycle),
    },
    control: {
      read: () => queueControlOf(ring),
      write: (written: number, _at: number, cycle: Cycles) => {
        ring.prefetch = fieldOf(written, nicBits.queueControl.prefetch);
        if (fieldOf(written, nicBits.queueControl.enable) === 1) ring.enable(cycle);
        else ring.disable(cycle);
      },
    },
  };
}

function queueControlOf(ring: DescriptorRing): number {
  const { prefetch, fault, enable } = nicBits.queueControl;
  const value = withField(withField(0, prefetch, ring.prefetch), fault, ring.isFaulty ? 1 : 0);
  return withField(value, enable, ring.isEnabled ? 1 : 0);
}

/** Counts since the last read: see nic-statistics.ts. */
function statisticsHooks({ statistics }: RegisterBlocks): NicHooks {
  const counted = (name: StatisticName) => ({ read: () => statistics.read(name) });
  return {
    crcerrs: counted('crcerrs'),
    mpc: counted('mpc'),
    rlec: counted('rlec'),
    gprc: counted('gprc'),
    bprc: counted('bprc'),
    gptc: counted('gptc'),
    gorcl: counted('gorcl'),
    gorch: counted('gorch'),
    gotcl: counted('gotcl'),
    gotch: counted('gotch'),
    rnbc: counted('rnbc'),
    rxfilt: counted('rxfilt'),
    tpr: counted('tpr'),
    tpt: counted('tpt'),
  };
}

const macHooks = ({ receiveMac, receiveEngine, transmitEngine }: RegisterBlocks): NicHooks => ({
  rctl: {
    write: (written) => {
      const field = nicBits.rctl;
      receiveMac.isOn = fieldOf(written, field.enable) === 1;
      receiveMac.isUnicastPromiscuous = fieldOf(written, field.unicastPromiscuous) === 1;
      receiveMac.isMulticastPromiscuous = fieldOf(written, field.multicastPromiscuous) === 1;
      receiveMac.takesLong = fieldOf(written, field.longPackets) === 1;
      receiveMac.groupOffset = fieldOf(written, field.multicastOffset);
      receiveMac.takesBroadcasts = fieldOf(written, field.broadcast) === 1;
      receiveMac.filtersVlans = fieldOf(written, field.vlanFilter) === 1;
    },
  },
  tctl: {
    write: (written, _at, cycle) => {
      transmitEngine.isOn = fieldOf(written, nicBits.tctl.enable) === 1;
      transmitEngine.padsShort = fieldOf(written, nicBits.tctl.padShort) === 1;
      transmitEngine.wake(cycle);
    },
  },
  rxcsum: {
    read: () => receiveEngine.checksumStart,
    write: (written) => {
      receiveEngine.checksumStart = fieldOf(written, nicBits.rxcsum.start);
    },
  },
  rlpml: {
    write: (written) => {
      receiveMac.longBytesMax = written;
    },
  },
  mta: {
    read: (_stored, at) => receiveMac.groups[at / DWORD_BYTES]!,
    write: (written, at) => {
      receiveMac.groups[at / DWORD_BYTES] = written;
    },
  },
  vfta: {
    read: (_stored, at) => receiveMac.vlans[at / DWORD_BYTES]!,
    write: (written, at) => {
      receiveMac.vlans[at / DWORD_BYTES] = written;
    },
  },
  ral: {
    write: (written) => {
      for (let at = 0; at < DWORD_BYTES; at++) receiveMac.address[at] = written >>> (8 * at);
    },
  },
  rah: {
    write: (written) => {
      receiveMac.address[4] = written;
      receiveMac.address[5] = written >>> 8;
      receiveMac.isAddressValid = fieldOf(written, nicBits.rah.valid) === 1;
    },
  },
});

function engineHooks({ transmitBusMaster: tx, receiveBusMaster: rx }: RegisterBlocks): NicHooks {
  return {
    txdmaAddressLow: { read: () => tx.address % FOUR_GIB },
    txdmaAddressHigh: { read: () => Math.floor(tx.address / FOUR_GIB) },
    txdmaCount: { read: () => tx.wordsLeft },
    txdmaBuffer: { read: () => tx.place },
    txdmaStatus: { read: () => engineStatusOf(tx) },
    rxdmaAddressLow: { read: () => rx.address % FOUR_GIB },
    rxdmaAddressHigh: { read: () => Math.floor(rx.address / FOUR_GIB) },
    rxdmaCount: { read: () => rx.wordsLeft },
    rxdmaBuffer: { read: () => rx.place },
    rxdmaStatus: { read: () => engineStatusOf(rx) },
  };
}

const engineStatusOf = (engine: BusMaster): number =>
  withField(
    withField(0, nicBits.engineStatus.busy, engine.isBusy ? 1 : 0),
    nicBits.engineStatus.error,
    engine.error,
  );

/** Frames by programmed I/O. */
function bufferHooks(blocks: RegisterBlocks): NicHooks {
  const { transmitMac, receiveEngine } = blocks;
  return {
    pbmode: {
      read: () => (transmitMac.isProgrammed ? 1 : 0) | (receiveEngine.isProgrammed ? 2 : 0),
      write: (written, _at, cycle) => writeMode(blocks, written, cycle),
    },
    piotx: {
      read: (stored) => withField(stored, nicBits.piotx.go, transmitMac.hasProgrammedRoom ? 0 : 1),
      write: (written, _at, cycle) => {
        if (fieldOf(written, nicBits.piotx.go) === 1) sendProgrammed(blocks, written, cycle);
      },
    },
    piotxCount: { read: () => transmitMac.programmedCount },
    piorx: {
      read: () => (receiveEngine.showsFrame ? frameShown(blocks) : 0),
      write: (_written, _at, cycle) => receiveEngine.releaseShown(cycle),
    },
  };
}

/** PBMODE: each half switches over only while no frame is in progress in it. */
function writeMode(blocks: RegisterBlocks, written: number, cycle: Cycles): void {
  const { transmitMac, transmitBuffer, transmitEngine, receiveMac, receiveBuffer, receiveEngine } = blocks;
  const transmit = fieldOf(written, nicBits.pbmode.transmit) === 1;
  const receive = fieldOf(written, nicBits.pbmode.receive) === 1;
  if (transmit !== transmitMac.isProgrammed) {
    if (transmitEngine.isOn || !transmitMac.isIdle || !transmitBuffer.isEmpty) refuse(blocks, cycle);
    else transmitMac.isProgrammed = transmit;
  }
  if (receive !== receiveEngine.isProgrammed) {
    if (receiveMac.isOn || !receiveBuffer.isEmpty) refuse(blocks, cycle);
    else receiveEngine.isProgrammed = receive;
  }
}

function sendProgrammed(blocks: RegisterBlocks, written: number, cycle: Cycles): void {
  const { transmitMac, transmitEngine, config, port } = blocks;
  const bytes = fieldOf(written, nicBits.piotx.length);
  const place = fieldOf(written, nicBits.piotx.offset) * DWORD_BYTES;
  const shortestBytes = transmitEngine.padsShort ? FRAME_HEADER_BYTES : UNPADDED_BYTES_MIN;
  const isLegal =
    transmitMac.isProgrammed &&
    transmitEngine.isOn &&
    transmitMac.hasProgrammedRoom &&
    bytes >= shortestBytes &&
    bytes <= port.frameBytesMax &&
    place + bytes <= config.transmitBufferKib * KIB;
  if (isLegal) transmitMac.program(place, bytes, cycle);
  else refuse(blocks, cycle);
}

function frameShown({ receiveBuffer }: RegisterBlocks): number {
  const { length, offset, valid } = nicBits.piorx;
  const value = withField(0, length, receiveBuffer.bytesOf(0));
  return withField(withField(value, offset, receiveBuffer.placeOf(0) / DWORD_BYTES), valid, 1);
}
