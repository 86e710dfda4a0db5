/**
 * A guest's machine that keeps to no rule: messages of any form, any access, commands with any mailbox, contexts and work
 * requests with bits flipped, doorbells without reason. Everything follows from the seed, and what was done is written down.
 *
 * Each life leaves out a random half of the kinds (swarm testing), begins at a random stage of a driver's bring-up, and
 * mixes nonsense with what is nearly right, which gets further.
 */
import { closeSync, openSync } from 'node:fs';
import { bar0 } from '../../../abi/bar-map.ts';
import { Opcode } from '../../../abi/commands.ts';
import { cqc } from '../../../abi/cqc.ts';
import { eqc } from '../../../abi/eqc.ts';
import { initHca } from '../../../abi/init-hca.ts';
import { MadClass, mad, SmpAttribute } from '../../../abi/mad.ts';
import { portInfo } from '../../../abi/mad-attributes.ts';
import { mapEntry } from '../../../abi/map-icm.ts';
import { mpt } from '../../../abi/mpt.ts';
import { PerformanceAttribute } from '../../../abi/performance-attributes.ts';
import { qpMailbox, ServiceType } from '../../../abi/qpc.ts';
import { srqc } from '../../../abi/srqc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { viewOf } from '../../../base/index.ts';
import { messageOf } from '../../../guest/client/client.ts';
import { REGION_BAR0, REGION_CONFIG } from '../../../guest/device.ts';
import { NativeCallError } from '../../../guest/native/native-call-error.ts';
import { createEventfd } from '../../../guest/native/poll.ts';
import {
  Command,
  dmaMap,
  dmaUnmap,
  header,
  regionAccess,
  setInterrupts,
} from '../../../guest/vfio-user/protocol.ts';
import type { Random } from '../../../sim/index.ts';
import { type GuestLife, inBoxAddress, REGION_BAR2, ramBytes } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';
import {
  cqn,
  eqn,
  key,
  pd,
  qpn,
  type Stage,
  srqn,
  stages,
  uarPage,
  WellBehavedGuest,
} from './well-behaved-guest.ts';

/** What it does; each is counted. */
export const kinds = [
  'message',
  'map',
  'interrupt',
  'configuration',
  'register',
  'command',
  'mailbox',
  'context',
  'memory',
  'wqe',
  'doorbell',
  'blueFlame',
  'time',
  'reset',
] as const;
export type Kind = (typeof kinds)[number];
export type KindCounts = Record<Kind, number>;

export const noCounts = (): KindCounts => Object.fromEntries(kinds.map((kind) => [kind, 0])) as KindCounts;

/** How often each is done beside the others, where it is done at all. */
const usualWeight: KindCounts = {
  message: 3,
  map: 1,
  interrupt: 1,
  configuration: 4,
  register: 6,
  command: 6,
  mailbox: 4,
  context: 6,
  memory: 2,
  wqe: 8,
  doorbell: 8,
  blueFlame: 3,
  time: 4,
  reset: 0.3,
};

const registerOffsets = Object.values(bar0.registers).map(({ offset }) => offset);
const configOffsets = [
  ...[
    0x04, 0x06, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x30, 0x3c, 0x44, 0x48, 0x4a, 0x68, 0x69, 0x6a, 0x88, 0x9c,
    0x9e,
  ],
  ...[0x154, 0x158],
];
const opcodes = Object.values(Opcode);
const wqeOpcodes = Object.values(WqeOpcode);
const workQueueArea = { begin: 0x5_0000, bytes: 0x6000 } as const;
const recordArea = { begin: 0x3000, bytes: 64 } as const;
const icmArea = { begin: 0x30_0000, bytes: 0x10_0000 } as const;

interface Mapping {
  readonly address: number;
  readonly sizeBytes: number;
  readonly fileOffset: number;
  readonly writable: number;
}

export class RoughGuest {
  readonly counts = noCounts();
  /** What it did last, oldest first. */
  readonly actions: string[] = [];
  readonly #life: GuestLife;
  readonly #random: Random;
  readonly #weights: readonly (readonly [Kind, number])[];
  readonly #weightSum: number;
  readonly #mappings: Mapping[] = [{ address: 0, sizeBytes: ramBytes, fileOffset: 0, writable: 1 }];
  #wqeCounter = 0;

  /** @param without kinds that are left out whatever the seed says: for looking what a finding needs */
  constructor(life: GuestLife, random: Random, without: readonly Kind[] = []) {
    this.#life = life;
    this.#random = random;
    life.patience = roughPatience;
    const weights = kinds.map((kind) => [kind, random.chance(0.4) ? 0 : usualWeight[kind]] as const);
    const left = weights.filter(([kind, weight]) => weight > 0 && !without.includes(kind));
    this.#weights = left.length > 0 ? left : [['register', 1]];
    this.#weightSum = this.#weights.reduce((sum, [, weight]) => sum + weight, 0);
  }

  /** Begins as a driver does, and then does so many things, or fewer if the server drops it. */
  live(actionCount: number): void {
    const stage = this.#random.below(stages.length + 1);
    try {
      this.#life.attach();
      if (stage > 0) {
        this.#note(`a driver's stages up to "${stages[stage - 1]}"`);
        new WellBehavedGuest(this.#life).run(stages[stage - 1] as Stage);
      } else if (this.#random.chance(0.7)) this.#life.enable();
      for (let at = 0; at < actionCount; at++) {
        this.#act();
        if (this.#random.chance(0.05)) this.#life.device.turn();
      }
      this.#life.device.settle();
    } catch (error) {
      // The server has dropped it: it said what cannot be a message.
      const isDropped = error instanceof NativeCallError || /closed the connection/.test(String(error));
      if (!isDropped && !(error instanceof LifeOver)) throw error;
      this.#note('dropped by the server');
    }
  }

  #act(): void {
    let left = this.#random.unit() * this.#weightSum;
    const [kind] =
      this.#weights.find(([, weight]) => {
        left -= weight;
        return left < 0;
      }) ?? this.#weights[0]!;
    this.counts[kind]++;
    this.#doers[kind]();
  }

  readonly #doers: Readonly<Record<Kind, () => void>> = {
    message: () => this.#sendMessage(),
    map: () => this.#changeMap(),
    interrupt: () => this.#changeInterrupts(),
    configuration: () => this.#accessConfiguration(),
    register: () => this.#accessRegister(),
    command: () => this.#postCommand(),
    mailbox: () => this.#postMailbox(),
    context: () => this.#postContext(),
    memory: () => this.#scribble(),
    wqe: () => this.#writeWqe(),
    doorbell: () => this.#ring(),
    blueFlame: () => this.#postBlueFlame(),
    time: () => this.#pass(),
    reset: () => this.#reset(),
  };

  // ---- messages ----

  /** A message whose header or payload is odd; most keep the framing, or the life would be short. */
  #sendMessage(): void {
    const random = this.#random;
    const command = random.chance(0.8) ? random.between(1, 17) : random.below(65_536);
    const payload = this.#payloadFor(command);
    const message = messageOf(
      {
        id: random.below(65_536),
        command: command as never,
        noReply: random.below(2),
        isError: random.chance(0.05) ? 1 : 0,
      },
      payload,
    );
    const isBroken = random.chance(0.004);
    if (isBroken) header.fields.sizeBytes.set(viewOf(message), 0, random.uint32());
    const descriptors = random.chance(0.2) ? this.#descriptors(random.between(1, 4)) : [];
    this.#note(`message of command ${command}, ${payload.length} bytes${isBroken ? ', broken' : ''}`);
    try {
      const { client } = this.#life;
      client.send(message, descriptors);
      this.#life.device.settle();
      client.forget();
    } finally {
      for (const descriptor of descriptors) closeSync(descriptor);
    }
    if (isBroken) throw new LifeOver();
    // What it was answered is not looked at: any of these may have changed the map, so none of the memory is watched on.
    if (command === Command.DMA_MAP || command === Command.DMA_UNMAP) this.#forgetMap();
  }

  #payloadFor(command: number): Uint8Array {
    const random = this.#random;
    const odd = (): bigint => BigInt(this.#oddNumber());
    switch (random.chance(0.3) ? -1 : command) {
      case Command.DMA_MAP:
        return dmaMap.encode({
          argumentBytes: random.chance(0.9) ? dmaMap.sizeBytes : random.below(200),
          address: odd(),
          sizeBytes: odd(),
          fileOffset: odd(),
          readable: random.below(2),
          writable: random.below(2),
        });
      case Command.DMA_UNMAP:
        return dmaUnmap.encode({ argumentBytes: dmaUnmap.sizeBytes, address: odd(), sizeBytes: odd() });
      case Command.REGION_READ:
        return regionAccess.encode({ offset: odd(), region: random.below(10), count: random.below(5000) });
      case Command.REGION_WRITE: {
        const bytes = this.#bytes(random.below(300));
        const count = random.chance(0.9) ? bytes.length : random.below(2 ** 31);
        return Buffer.concat([
          regionAccess.encode({ offset: odd(), region: random.below(10), count }),
          bytes,
        ]);
      }
      case Command.DEVICE_SET_IRQS:
        return setInterrupts.encode({
          argumentBytes: setInterrupts.sizeBytes,
          dataType: random.below(8),
          action: random.below(8),
          index: random.below(7),
          start: random.chance(0.8) ? random.below(200) : random.uint32(),
          count: random.chance(0.8) ? random.below(8) : random.uint32(),
        } as never);
      default:
        return this.#bytes(random.below(random.chance(0.9) ? 80 : 20_000));
    }
  }

  /** Of everything a descriptor may be. */
  #descriptors(count: number): number[] {
    return Array.from({ length: count }, () => {
      switch (this.#random.below(3)) {
        case 0:
          return createEventfd();
        case 1:
          return openSync('/dev/null', 'r');
        default:
          return openSync('/proc/self/stat', 'r');
      }
    });
  }

  // ---- memory map and interrupts ----

  #changeMap(): void {
    const random = this.#random;
    const life = this.#life;
    if (random.chance(0.5) && this.#mappings.length > 0) {
      const at = random.below(this.#mappings.length);
      const { address, sizeBytes, fileOffset, writable } = this.#mappings[at]!;
      const { errno } = life.client.unmap({ address: BigInt(address), sizeBytes: BigInt(sizeBytes) });
      this.#note(`unmap ${sizeBytes} at ${address}: ${errno}`);
      if (errno !== 0) return;
      this.#mappings.splice(at, 1);
      if (writable === 1) life.ram.unmapped(fileOffset, sizeBytes);
      return;
    }
    const pages = random.between(1, ramBytes / pageBytes);
    const sizeBytes = pages * pageBytes;
    const fileOffset = random.below(ramBytes / pageBytes - pages + 1) * pageBytes;
    const address = random.chance(0.6) ? fileOffset : random.below(4096) * pageBytes;
    const writable = random.chance(0.8) ? 1 : 0;
    const errno = life.map(address, sizeBytes, fileOffset, writable);
    this.#note(`map ${sizeBytes} at ${address}: ${errno}`);
    if (errno === 0) this.#mappings.push({ address, sizeBytes, fileOffset, writable });
  }

  /** From here on nothing is known of what is mapped: all of it is taken back, which the server must grant. */
  #forgetMap(): void {
    const life = this.#life;
    life.client.unmap({ all: 1 });
    for (const { fileOffset, sizeBytes, writable } of this.#mappings.splice(0))
      if (writable === 1) life.ram.unmapped(fileOffset, sizeBytes);
    if (life.map(0, ramBytes, 0) === 0)
      this.#mappings.push({ address: 0, sizeBytes: ramBytes, fileOffset: 0, writable: 1 });
  }

  #changeInterrupts(): void {
    const random = this.#random;
    const { client, eventfds } = this.#life;
    const index = random.below(3);
    const start = random.chance(0.7) ? random.below(4) : random.below(128);
    this.#note(`interrupts ${index}, ${start}`);
    if (random.chance(0.5)) client.setEventfds(index, start, 1, [eventfds[start % eventfds.length]!]);
    else client.actOnInterrupts(1 << random.below(3), index, start, random.below(4));
  }

  // ---- registers ----

  #accessConfiguration(): void {
    const random = this.#random;
    const life = this.#life;
    const offset = random.chance(0.7) ? this.#pick(configOffsets) : random.below(4096 - 8);
    const lengthBytes = this.#pick([1, 2, 4]);
    if (random.chance(0.4)) {
      life.readConfig(offset, lengthBytes);
      return;
    }
    const bytes = this.#bytes(lengthBytes);
    this.#note(`configuration ${hex(offset)} = ${hexOf(bytes)}`);
    life.client.post(REGION_CONFIG, offset, bytes);
    if (random.chance(0.3)) life.enable();
  }

  #accessRegister(): void {
    const random = this.#random;
    const life = this.#life;
    const offset = random.chance(0.8)
      ? this.#pick(registerOffsets) + 4 * random.below(7)
      : random.below(0x10_0000 - 64);
    if (random.chance(0.4)) {
      life.client.read(REGION_BAR0, offset, this.#pick([1, 2, 4, 8, 64]));
      return;
    }
    const bytes = this.#bytes(random.chance(0.8) ? 4 : random.between(1, 64));
    this.#note(`register ${hex(offset)} = ${hexOf(bytes)}`);
    life.client.post(REGION_BAR0, offset, bytes);
  }

  // ---- commands ----

  /** Any opcode with any parameters. */
  #postCommand(): void {
    const random = this.#random;
    const opcode = random.chance(0.95) ? this.#pick(opcodes) : random.below(4096);
    if (random.chance(0.5)) this.#life.put(inBoxAddress, this.#bytes(random.chance(0.5) ? 64 : 1024));
    this.#send(opcode, this.#objectNumber());
  }

  /** A command whose mailbox is nearly right. */
  #postMailbox(): void {
    const random = this.#random;
    const form = random.below(4);
    if (form === 0) {
      const box = initHca.encode({
        version: 2,
        logQps: 16,
        logCqs: 16,
        logSrqs: 16,
        logEqs: 7,
        logDmpts: 16,
        logMcgEntryBytes: 10,
      });
      this.#putFlipped(box);
      this.#send(Opcode.INIT_HCA, 0);
    } else if (form === 1) {
      const entry = mapEntry.encode({
        icmAddress: BigInt(random.below(8 << 12) * pageBytes),
        physicalAddress: BigInt(random.below(ramBytes / pageBytes) * pageBytes),
        logSize4k: random.below(7),
      });
      this.#putFlipped(entry, 0.3);
      this.#send(
        this.#pick([Opcode.MAP_FA, Opcode.MAP_ICM, Opcode.MAP_ICM_AUX]),
        random.chance(0.9) ? 1 : random.uint32(),
      );
    } else if (form === 2) {
      const isPerformance = random.chance(0.4);
      const attributes: readonly number[] = Object.values(
        isPerformance ? PerformanceAttribute : SmpAttribute,
      );
      const box = mad.encode({
        baseVersion: 1,
        managementClass: isPerformance ? MadClass.PERF_MGMT : MadClass.SUBN_LID_ROUTED,
        classVersion: 1,
        method: random.between(1, 2),
        attributeId: (random.chance(0.8) ? this.#pick(attributes) : random.below(0x20)) as never,
        attributeModifier: random.chance(0.7) ? random.below(8) : random.uint32(),
      });
      box.set(this.#bytes(192), 64);
      // A port that is there, or nothing is set: PortSelect of counters, PortInfo that can be.
      if (random.chance(0.7)) box[65] = 1;
      if (random.chance(0.3)) box.set(this.#portInfo(), 64);
      this.#putFlipped(box, 0.2);
      this.#send(Opcode.MAD_IFC, 1);
    } else {
      this.#putFlipped(this.#bytes(256), 1);
      this.#send(
        this.#pick([Opcode.SET_PORT, Opcode.SET_NODE, Opcode.WRITE_MCG, Opcode.MGID_HASH]),
        random.below(3),
      );
    }
  }

  #portInfo(): Uint8Array {
    const random = this.#random;
    return portInfo.encode({
      mkey: random.chance(0.3) ? BigInt(random.uint32()) : 0n,
      gidPrefix: BigInt(random.uint32()),
      lid: random.below(8),
      masterSmLid: random.below(8),
      portState: random.below(5) as never,
      neighborMtu: random.below(6) as never,
      lmc: random.below(8),
      operationalVls: random.below(8),
      linkDownDefault: random.below(4),
      clientReregister: random.below(2),
      subnetTimeout: random.below(32),
    });
  }

  /** A command that creates or changes an object, with some bits of its context flipped. */
  #postContext(): void {
    const random = this.#random;
    const number = this.#objectNumber();
    const mttAddress = random.below(64) * 8;
    const doorbellRecordAddress = BigInt(recordArea.begin + random.below(8) * 8);
    switch (random.below(6)) {
      case 0:
        this.#putFlipped(
          eqc.encode({
            armState: 9,
            logEntries: random.between(3, 8),
            mttAddress,
            interruptNumber: random.below(5),
          }),
        );
        this.#send(this.#pick([Opcode.SW2HW_EQ, Opcode.HW2SW_EQ, Opcode.MAP_EQ]), random.below(16));
        break;
      case 1:
        this.#putFlipped(
          cqc.encode({
            logEntries: random.between(1, 8),
            uarPage,
            eqn: random.below(8),
            mttAddress,
            doorbellRecordAddress,
          }),
        );
        this.#send(this.#pick([Opcode.SW2HW_CQ, Opcode.HW2SW_CQ, Opcode.MODIFY_CQ]), number);
        break;
      case 2:
        this.#putFlipped(
          srqc.encode({
            logWqes: random.between(1, 8),
            logStride16: random.below(4),
            srqn: number & 0xff,
            mttAddress,
            pd,
            doorbellRecordAddress,
          }),
        );
        this.#send(this.#pick([Opcode.SW2HW_SRQ, Opcode.HW2SW_SRQ, Opcode.ARM_SRQ]), number);
        break;
      case 3:
        this.#putFlipped(
          mpt.encode({
            isRegion: 1,
            isPhysical: random.below(2),
            isOnDemand: random.chance(0.2) ? 1 : 0,
            localReadEnabled: 1,
            localWriteEnabled: 1,
            remoteReadEnabled: 1,
            remoteWriteEnabled: 1,
            atomicEnabled: 1,
            keyIndexForm: number,
            pd,
            startAddress: 0n,
            lengthBytes: BigInt(random.below(2 ** 31)),
            mttAddress,
            logPageSize: 12,
          }),
        );
        this.#send(this.#pick([Opcode.SW2HW_MPT, Opcode.HW2SW_MPT]), number);
        break;
      default:
        this.#putFlipped(
          qpMailbox.encode({
            context: {
              serviceType: this.#pick([ServiceType.RC, ServiceType.UC, ServiceType.UD, ServiceType.MLX]),
              pathMigration: 3,
              pd,
              sqLogCount: random.between(1, 6),
              sqLogStride16: 2,
              rqLogCount: random.between(1, 6),
              rqLogStride16: random.below(3),
              uarPage,
              sendCqn: cqn,
              receiveCqn: cqn,
              pathMtu: random.between(1, 5) as never,
              logMaxMessage: 30,
              remoteQpn: qpn(random.below(4)),
              remoteReadEnabled: 1,
              remoteWriteEnabled: 1,
              remoteAtomicEnabled: 1,
              logMaxResponderReads: random.below(5),
              logMaxRequesterReads: random.below(5),
              retryCount: random.below(8),
              rnrRetryCount: random.below(8),
              minRnrNak: random.below(32),
              primaryPath: { remoteLid: 1, scheduleQueue: 0x83, ackTimeout: random.between(1, 12) },
              doorbellRecordAddress,
              mttAddress,
            },
          }),
        );
        this.#send(this.#pick(qpOpcodes), number);
    }
  }

  #send(opcode: number, inputModifier: number): void {
    const random = this.#random;
    const life = this.#life;
    const opcodeModifier = random.chance(0.7) ? random.below(4) : random.below(16);
    const inParam = random.chance(0.9) ? inBoxAddress : this.#oddNumber();
    const outBytes = random.chance(0.8) ? 0 : undefined;
    this.#note(
      `command ${hex(opcode)}, input ${hex(inputModifier)}, modifier ${opcodeModifier}, parameter ${hex(inParam)}`,
    );
    const options = {
      inputModifier,
      opcodeModifier,
      inParam,
      ...(outBytes === undefined ? {} : { outBytes }),
    };
    if (random.chance(0.7)) life.command(opcode, options);
    else life.post(opcode, options);
  }

  // ---- memory and work ----

  /** Anything, anywhere in what the device reads. */
  #scribble(): void {
    const random = this.#random;
    const area = this.#pick([workQueueArea, recordArea, icmArea, { begin: 0, bytes: ramBytes }]);
    const length = random.between(1, Math.min(64, area.bytes));
    this.#life.put(area.begin + random.below(area.bytes - length + 1), this.#bytes(length));
  }

  /** A work request that is nearly right, or a receive, and the doorbell record or the doorbell for it. */
  #writeWqe(): void {
    const random = this.#random;
    const life = this.#life;
    const qp = random.below(4);
    const address = workQueueArea.begin + qp * 0x2000 + (this.#wqeCounter++ % 64) * 64;
    const wqe = this.#bytes(64);
    const view = viewOf(wqe);
    if (random.chance(0.9)) {
      view.setUint32(0, (this.#pick(wqeOpcodes) | (random.below(2) << 31)) >>> 0);
      view.setUint32(4, random.between(1, 4));
      view.setUint32(8, random.below(16));
      view.setUint32(12, random.uint32());
      for (const at of [16, 32, 48]) {
        view.setUint32(at, random.chance(0.8) ? random.below(5000) : random.uint32());
        view.setUint32(at + 4, random.chance(0.8) ? key : random.uint32());
        view.setUint32(at + 8, 0);
        view.setUint32(at + 12, random.below(ramBytes));
      }
      if (random.chance(0.3)) this.#flip(wqe, random.between(1, 4));
    }
    life.put(address, wqe);
    const posted = new Uint8Array(4);
    viewOf(posted).setUint32(0, random.below(80));
    if (random.chance(0.3)) life.put(recordArea.begin + 16 + 8 * random.below(5), posted);
    if (random.chance(0.7)) this.#ringFor(qp);
  }

  #ring(): void {
    const random = this.#random;
    if (random.chance(0.6)) {
      this.#ringFor(random.below(4));
      return;
    }
    const page = random.chance(0.7) ? this.#pick([0, 1, uarPage]) : random.below(2048);
    const within = random.chance(0.9)
      ? this.#pick([0x14, 0x20, 0x24, 0x800, 0x808, 0x810, 0x840])
      : random.below(4092);
    const value = new Uint8Array(random.chance(0.9) ? 4 : 8);
    viewOf(value).setUint32(
      0,
      random.chance(0.6) ? (random.below(4) << 28) | (random.below(3) << 24) | cqn : random.uint32(),
    );
    this.#note(`doorbell ${hex(page * 4096 + within)} = ${hexOf(value)}`);
    this.#life.client.post(REGION_BAR2, page * 4096 + within, value);
  }

  #ringFor(qp: number): void {
    const value = new Uint8Array(4);
    viewOf(value).setUint32(0, qpn(qp) << 8);
    this.#note(`send doorbell of QP ${qpn(qp)}`);
    this.#life.client.post(REGION_BAR2, uarPage * 4096 + 0x14, value);
  }

  #postBlueFlame(): void {
    const random = this.#random;
    const page = random.chance(0.8) ? uarPage : random.below(1024);
    const wqe = this.#bytes(64);
    const view = viewOf(wqe);
    view.setUint32(0, (random.below(64) << 8) | this.#pick(wqeOpcodes));
    view.setUint32(4, (qpn(random.below(4)) << 8) | random.between(1, 4));
    const offset =
      0x40_0000 + page * 4096 + (random.chance(0.9) ? 256 * random.below(4) : random.below(4000));
    this.#note(`BlueFlame ${hex(offset)}`);
    for (let at = 0; at < 64; at += 8) {
      if (random.chance(0.98)) this.#life.client.post(REGION_BAR2, offset + at, wqe.subarray(at, at + 8));
    }
  }

  // ---- time ----

  #pass(): void {
    const ms = this.#pick([0.001, 0.01, 0.1, 1, 20]);
    this.#note(`${ms} ms`);
    this.#life.device.pass(ms);
  }

  #reset(): void {
    const life = this.#life;
    const isFunction = this.#random.chance(0.5);
    this.#note(isFunction ? 'reset of the function' : 'reset by BAR0');
    if (isFunction) life.client.request(Command.DEVICE_RESET, new Uint8Array(0));
    else life.write32(bar0.registers.reset.offset, 1);
    if (this.#random.chance(0.7)) life.enable();
    if (this.#random.chance(0.7)) new WellBehavedGuest(life).run(this.#pick(stages));
  }

  // ---- numbers ----

  #objectNumber(): number {
    const random = this.#random;
    const known = [eqn, cqn, srqn, qpn(0), qpn(1), qpn(2), qpn(3), key >>> 8, 1, 0];
    if (random.chance(0.8)) return this.#pick(known);
    return random.chance(0.8) ? random.below(1024) : random.uint32();
  }

  /** An address or length: nothing, a page, something large, something odd. */
  #oddNumber(): number {
    const random = this.#random;
    switch (random.below(5)) {
      case 0:
        return 0;
      case 1:
        return random.below(ramBytes / pageBytes) * pageBytes;
      case 2:
        return random.below(ramBytes);
      case 3:
        return random.uint32();
      default:
        return random.uint32() * 2 ** random.below(21);
    }
  }

  #putFlipped(box: Uint8Array, chance = 0.5): void {
    if (this.#random.chance(chance)) this.#flip(box, this.#random.between(1, 6));
    this.#life.put(inBoxAddress, box);
  }

  #flip(bytes: Uint8Array, count: number): void {
    for (let at = 0; at < count; at++) {
      const byte = this.#random.below(bytes.length);
      bytes[byte] = bytes[byte]! ^ (1 << this.#random.below(8));
    }
  }

  #bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.#random.below(256));
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.below(from.length)]!;
  }

  #note(text: string): void {
    this.actions.push(text);
    if (this.actions.length > actionsKept) this.actions.shift();
  }
}

/** It has said what cannot be a message: whatever it says next is taken for a part of that. */
class LifeOver extends Error {}

const actionsKept = 40;
/** A device that was reset by a part of a command does not end it. */
const roughPatience = 3;

const qpOpcodes = [
  Opcode.RST2INIT_QP,
  Opcode.RST2INIT_QP,
  Opcode.INIT2RTR_QP,
  Opcode.INIT2RTR_QP,
  Opcode.RTR2RTS_QP,
  Opcode.RTR2RTS_QP,
  Opcode.RTS2RTS_QP,
  Opcode.INIT2INIT_QP,
  Opcode.RTS2SQD_QP,
  Opcode.SQD2RTS_QP,
  Opcode.SQD2SQD_QP,
  Opcode.SQERR2RTS_QP,
  Opcode['2ERR_QP'],
  Opcode['2RST_QP'],
] as const;

const hex = (value: number): string => `0x${value.toString(16)}`;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
