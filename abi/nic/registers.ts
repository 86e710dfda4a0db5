/**
 * BAR0 of the conventional NIC: little-endian dwords; an access is one aligned dword (8 aligned bytes are two of them). Names
 * and offsets are Intel's if the mechanism is Intel's (8254x software developer's manual, chapter 13; 82574 datasheet, chapter
 * 10); "own" marks additions of this device.
 *
 *     bring-up  CTRL.RST, wait until it reads 0 ─► ring registers ─► RXDCTL/TXDCTL.ENABLE ─► RCTL/TCTL.EN ─► CTRL.SLU
 *     transmit  descriptors at TDT, write TDT ─► … ─► status written back (RS), TXDW
 *     receive   buffers at RDT, write RDT ─► … ─► status written back, RXT0
 *
 * ENABLE sets the head to 0 and leaves the tail: software writes it before enabling (0) or afterwards. An enabled queue rejects
 * changes of its address and length.
 *
 * Illegal programming stops only its own ring: the queue enters its error state (…DCTL.FAULT), the cause PROGERR or DMAERR is
 * set, and clearing then setting …DCTL.ENABLE restarts it.
 */
import { foreignRegister, register, registerBank, registerBits, wholeRegister } from '../../base/index.ts';
import { nicBar0Bytes, nicMsix } from './identity.ts';

const bits = registerBits;

/** One bit for each of 4096 values. */
const ethernetFilterBytes = 512;

/** The fields of registers with fields, by register; the two queues and the two engines share theirs. */
export const nicBits = {
  ctrl: {
    setLinkUp: bits(6, 6, 'rw', 'SLU: enables the MAC; the link comes up when both ends are'),
    reset: bits(26, 26, 'rw', 'RST: resets everything but configuration space; reads 1 while it lasts'),
    vlanMode: bits(
      30,
      30,
      'rw',
      'VME: tags are taken out of received frames, and put into those that a descriptor with VLE says',
    ),
  },
  status: {
    fullDuplex: bits(0, 0, 'ro', 'FD: always', 1),
    linkUp: bits(1, 1, 'ro', 'LU'),
  },
  ivar: {
    receiveVector: bits(2, 0, 'rw'),
    receiveValid: bits(3, 3, 'rw'),
    transmitVector: bits(10, 8, 'rw'),
    transmitValid: bits(11, 11, 'rw'),
    otherVector: bits(18, 16, 'rw'),
    otherValid: bits(19, 19, 'rw'),
  },
  eitr: {
    interval: bits(15, 0, 'rw', 'least distance of two messages in units of 256 ns; 0: none'),
  },
  rctl: {
    enable: bits(1, 1, 'rw', 'EN: frames are received'),
    unicastPromiscuous: bits(3, 3, 'rw', 'UPE'),
    multicastPromiscuous: bits(4, 4, 'rw', 'MPE'),
    longPackets: bits(5, 5, 'rw', 'LPE: frames up to RLPML bytes; without it up to 1522'),
    multicastOffset: bits(
      13,
      12,
      'rw',
      'MO: which 12 bits of a group’s address choose its bit of MTA: 0 the last 12, 1 to 3 those 1, 2 and 4 bits before them',
    ),
    broadcast: bits(15, 15, 'rw', 'BAM: accept broadcasts'),
    vlanFilter: bits(18, 18, 'rw', 'VFE: of tagged frames only those of the VLANs in VFTA'),
  },
  tctl: {
    enable: bits(1, 1, 'rw', 'EN: frames are sent'),
    padShort: bits(3, 3, 'rw', 'PSP: pads short frames to 60 bytes; without it they are PROGERR'),
  },
  pba: {
    receiveKib: bits(15, 0, 'hwInit', 'bytes of the receive half / 1024; it begins behind the transmit half'),
    transmitKib: bits(31, 16, 'hwInit', 'bytes of the transmit half / 1024; it begins at 0'),
  },
  rxcsum: {
    start: bits(7, 0, 'rw', 'PCSS: first byte of the frame that the packet checksum covers'),
  },
  rah: {
    high: bits(15, 0, 'rw'),
    valid: bits(31, 31, 'rw', 'AV: the address is used by the filter'),
  },
  eict: {
    count: bits(15, 0, 'rw', 'causes that end a running interval early; 0: never'),
  },
  pbmode: {
    transmit: bits(0, 0, 'rw', '1: the CPU (or a DMA controller) writes frames into BAR2; 0: the ring'),
    receive: bits(1, 1, 'rw', '1: the CPU (or a DMA controller) reads frames from BAR2; 0: the ring'),
  },
  piotx: {
    length: bits(13, 0, 'rw', 'bytes of the frame without FCS'),
    offset: bits(29, 14, 'rw', 'its place in BAR2 / 4'),
    go: bits(31, 31, 'rw', 'write 1: send. Reads 1 while no further frame would be taken'),
  },
  piorx: {
    length: bits(13, 0, 'rw', 'bytes of the frame without FCS'),
    offset: bits(29, 14, 'rw', 'its place in BAR2 / 4'),
    valid: bits(31, 31, 'rw', 'there is a frame'),
  },
  /** TXDCTL and RXDCTL. */
  queueControl: {
    prefetch: bits(5, 0, 'rw', 'most descriptors fetched by one DMA read; 0 is 1', 8),
    fault: bits(24, 24, 'ro', 'own: the queue has stopped; its cause was PROGERR or DMAERR'),
    enable: bits(25, 25, 'rw', 'a write of 0 stops the queue behind the frame under way and clears FAULT'),
  },
  /** TXDMA and RXDMA status. Own. */
  engineStatus: {
    busy: bits(0, 0, 'ro', 'a transfer is under way'),
    error: bits(6, 4, 'ro', 'status of the last transfer, one of NicDmaError'),
  },
} as const;

export const nicBar0 = registerBank(
  'NIC BAR0',
  { sizeBytes: nicBar0Bytes, source: '8254x manual, chapter 13; 82574 datasheet, chapter 10' },
  {
    ctrl: register(0x00000, 4, 'CTRL, device control', nicBits.ctrl),
    status: register(0x00008, 4, 'STATUS, device status', nicBits.status),
    icr: wholeRegister(
      0x000c0,
      4,
      'rcW1c',
      'ICR, causes that are set; a read clears all, writing ones clears those',
    ),
    ics: wholeRegister(0x000c8, 4, 'wo', 'ICS, sets causes as if they had happened'),
    ims: wholeRegister(
      0x000d0,
      4,
      'w1s',
      'IMS, reads the mask; ones enable causes. One that is set interrupts now',
    ),
    imc: wholeRegister(0x000d8, 4, 'wo', 'IMC, ones disable causes'),
    eiac: wholeRegister(0x000dc, 4, 'rw', 'EIAC, causes that a message of their vector clears in ICR'),
    iam: wholeRegister(
      0x000e0,
      4,
      'rw',
      'IAM, causes that a message of their vector disables in IMS (auto-mask)',
    ),
    ivar: register(
      0x000e4,
      4,
      'IVAR, vector of each group of causes; without VALID it has no message',
      nicBits.ivar,
    ),
    eitr: register(
      0x000e8,
      4 * nicMsix.vectorCount,
      'EITR, a dword per vector: moderation by time',
      nicBits.eitr,
    ),
    rctl: register(0x00100, 4, 'RCTL, receive control', nicBits.rctl),
    tctl: register(0x00400, 4, 'TCTL, transmit control', nicBits.tctl),
    pba: register(0x01000, 4, 'PBA, how the packet buffer of BAR2 is divided', nicBits.pba),
    rdbal: wholeRegister(0x02800, 4, 'rw', 'RDBAL, receive ring, low half of its address; a multiple of 16'),
    rdbah: wholeRegister(0x02804, 4, 'rw', 'RDBAH'),
    rdlen: wholeRegister(0x02808, 4, 'rw', 'RDLEN, its bytes: a multiple of 128, from 128 to 1 MiB'),
    rdh: register(0x02810, 4, 'RDH, index of the next descriptor to be used by the device', {
      index: bits(19, 0, 'ro'),
    }),
    rdt: register(0x02818, 4, 'RDT, index behind the last descriptor that software gave', {
      index: bits(19, 0, 'rw'),
    }),
    rxdctl: register(0x02828, 4, 'RXDCTL, receive queue control', nicBits.queueControl),
    rxbuf: wholeRegister(
      0x02830,
      4,
      'rw',
      'own: RXBUF, bytes of every receive buffer, from 64 to 65535',
      2048,
    ),
    rxmin: wholeRegister(
      0x02834,
      4,
      'rw',
      'own: RXMIN, RXDMT0 is set when so few descriptors are left; 0: never',
    ),
    tdbal: wholeRegister(0x03800, 4, 'rw', 'TDBAL, transmit ring, low half of its address; a multiple of 16'),
    tdbah: wholeRegister(0x03804, 4, 'rw', 'TDBAH'),
    tdlen: wholeRegister(0x03808, 4, 'rw', 'TDLEN, its bytes: a multiple of 128, from 128 to 1 MiB'),
    tdh: register(0x03810, 4, 'TDH, index of the next descriptor to be executed', {
      index: bits(19, 0, 'ro'),
    }),
    tdt: register(0x03818, 4, 'TDT, index behind the last descriptor that software gave', {
      index: bits(19, 0, 'rw'),
    }),
    txdctl: register(0x03828, 4, 'TXDCTL, transmit queue control', nicBits.queueControl),
    crcerrs: wholeRegister(0x04000, 4, 'rc', 'CRCERRS, frames with a bad frame check sequence'),
    mpc: wholeRegister(0x04010, 4, 'rc', 'MPC, missed packets: no room in the packet buffer (overrun)'),
    rlec: wholeRegister(0x04040, 4, 'rc', 'RLEC, frames too short or too long'),
    gprc: wholeRegister(0x04074, 4, 'rc', 'GPRC, good packets received: given to host or programmed I/O'),
    bprc: wholeRegister(0x04078, 4, 'rc', 'BPRC, broadcasts among GPRC'),
    gptc: wholeRegister(0x04080, 4, 'rc', 'GPTC, good packets transmitted'),
    gorcl: wholeRegister(
      0x04088,
      4,
      'ro',
      'GORCL, good octets received, low half, FCS included; read before GORCH',
    ),
    gorch: wholeRegister(0x0408c, 4, 'rc', 'GORCH, high half; its read clears both'),
    gotcl: wholeRegister(
      0x04090,
      4,
      'ro',
      'GOTCL, good octets transmitted, low half, FCS included; read before GOTCH',
    ),
    gotch: wholeRegister(0x04094, 4, 'rc', 'GOTCH, high half; its read clears both'),
    rnbc: wholeRegister(0x040a0, 4, 'rc', 'RNBC, frames that found no receive descriptor and had to wait'),
    rxfilt: wholeRegister(
      0x040a4,
      4,
      'rc',
      'own: RXFILT, frames whose destination is not ours, or whose VLAN is not',
    ),
    tpr: wholeRegister(0x040d0, 4, 'rc', 'TPR, all packets that arrived from the cable'),
    tpt: wholeRegister(0x040d4, 4, 'rc', 'TPT, all packets handed to the cable'),
    rxcsum: register(0x05000, 4, 'RXCSUM, receive checksum', nicBits.rxcsum),
    rlpml: wholeRegister(0x05004, 4, 'rw', 'RLPML, longest frame with RCTL.LPE, FCS included', 9018),
    mta: wholeRegister(
      0x05200,
      ethernetFilterBytes,
      'rw',
      'MTA, a bit for each of 4096 hashes of group addresses: those that are received',
    ),
    ral: wholeRegister(
      0x05400,
      4,
      'rw',
      'RAL, bytes 0 to 3 of our MAC address, byte 0 lowest; from the board after reset',
    ),
    rah: register(0x05404, 4, 'RAH, bytes 4 and 5 of our MAC address', nicBits.rah),
    vfta: wholeRegister(
      0x05600,
      ethernetFilterBytes,
      'rw',
      'VFTA, a bit for each of 4096 VLANs: those that are received with RCTL.VFE',
    ),
    eict: register(
      0x0a000,
      4 * nicMsix.vectorCount,
      'own: EICT, a dword per vector: moderation by count',
      nicBits.eict,
    ),
    txdmaAddressLow: wholeRegister(
      0x0b000,
      4,
      'ro',
      'own: transmit engine, bus address; counts up as words move',
    ),
    txdmaAddressHigh: wholeRegister(0x0b004, 4, 'ro', 'own: its high half'),
    txdmaCount: wholeRegister(0x0b008, 4, 'ro', 'own: words of 4 bytes still to move; counts down to 0'),
    txdmaBuffer: wholeRegister(0x0b00c, 4, 'ro', 'own: place in BAR2 where the next word goes'),
    txdmaStatus: register(0x0b010, 4, 'own: transmit engine', nicBits.engineStatus),
    rxdmaAddressLow: wholeRegister(
      0x0b100,
      4,
      'ro',
      'own: receive engine, bus address; counts up as words move',
    ),
    rxdmaAddressHigh: wholeRegister(0x0b104, 4, 'ro', 'own: its high half'),
    rxdmaCount: wholeRegister(0x0b108, 4, 'ro', 'own: words of 4 bytes still to move; counts down to 0'),
    rxdmaBuffer: wholeRegister(0x0b10c, 4, 'ro', 'own: place in BAR2 from which the next word comes'),
    rxdmaStatus: register(0x0b110, 4, 'own: receive engine', nicBits.engineStatus),
    pbmode: register(
      0x0c000,
      4,
      'own: PBMODE, who moves frames; chosen while TCTL.EN and RCTL.EN are 0',
      nicBits.pbmode,
    ),
    piotx: register(0x0c004, 4, 'own: PIOTX, sends a frame that lies in the transmit half', nicBits.piotx),
    piotxCount: wholeRegister(
      0x0c008,
      4,
      'ro',
      'own: PIOTXN, frames of PIOTX that have left the packet buffer, modulo 2^32',
    ),
    piorx: register(
      0x0c00c,
      4,
      'own: PIORX, the oldest received frame; any write gives its room back',
      nicBits.piorx,
    ),
    msixTable: foreignRegister(nicMsix.tableOffset, nicMsix.vectorCount * 16, 'see hw/pcie'),
    msixPending: foreignRegister(nicMsix.pendingOffset, 8, 'pending bits'),
  },
);

/** EITR counts in units of this length. Source: 82574 datasheet, 10.2.4.5. */
export const eitrUnitNs = 256;

/** Status of a bus-master engine's last transfer. */
export const NicDmaError = {
  NONE: 0,
  /** The address is not memory. */
  UNSUPPORTED_REQUEST: 1,
  COMPLETER_ABORT: 2,
  POISONED: 3,
  TIMEOUT: 4,
  /** Bus mastering is off. */
  NOT_MASTER: 5,
} as const;
export type NicDmaError = (typeof NicDmaError)[keyof typeof NicDmaError];
