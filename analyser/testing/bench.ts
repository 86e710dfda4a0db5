/**
 * Test support: a bus without a host and without a device. The test acts as both: the driver's stores and loads, the
 * device's answers, reads and writes. It fills host memory.
 *
 * `bringUp()` is a small driver that breaks no rule: ICM from page 0x400 on, tables packed at the bottom of ICM, one
 * EQ.
 */
import {
  type CommandName,
  commands,
  cqc,
  eqc,
  type hcr,
  hcr as hcrLayout,
  initHca,
  mpt,
  mttEntry,
  QpState,
  type qpc,
  qpMailbox,
  queryDevCap,
  queryFw,
  ServiceType,
  srqc,
} from '../../abi/index.ts';
import { swap32, viewOf } from '../../base/bytes.ts';
import type { Initial } from '../../base/layout.ts';
import { TrafficClass } from '../../hw/dma/index.ts';
import { MEMORY_READ } from '../../hw/pcie/index.ts';
import { Analyser, TraceLog, traceCategories } from '../index.ts';
import type { TraceFormat } from '../trace-text.ts';

export const bar0Address = 0x80_0000_0000;
export const bar2Address = 0x80_1000_0000;
const hcrOffset = 0x80680;
const mailbox = 0x10_0000;
const outMailbox = 0x10_1000;
const page = 4096;
/** Host pages that back ICM: page n of ICM lies at icmHost + n pages. */
const icmHost = 0x40_0000;
const icmPages = 0x200;
/** Places of the tables in ICM. */
const table = {
  qpcBase: 0n,
  srqcBase: 0x4_0000n,
  cqcBase: 0x5_0000n,
  eqcBase: 0x6_0000n,
  altcBase: 0x7_0000n,
  auxcBase: 0x8_0000n,
  rdmarcBase: 0x9_0000n,
  dmptBase: 0xc_0000n,
  mttBase: 0x10_0000n,
  cmptBase: 0x1000_0000n,
  mcgBase: 0x18_0000n,
} as const;
const logObjects = 8;
/** The first numbers that the firmware has not reserved. */
const XRC_DOMAIN_NONE = 2;

export interface CommandSetup {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  readonly box?: Uint8Array;
  readonly inParam?: number;
  readonly status?: number;
  /** Bytes that the device writes into the output mailbox. */
  readonly answer?: Uint8Array;
  /** HCR fields that differ from the default. */
  readonly registers?: Initial<typeof hcr>;
  readonly isLeftUnanswered?: boolean;
}

export class AnalyserBench {
  readonly bytes: Uint8Array;
  readonly log = new TraceLog();
  readonly analyser: Analyser;
  nowPs = 1_000_000;
  toggle = 1;

  constructor(format: TraceFormat = 'text', filters: readonly string[] = [], memoryBytes = 16 * 1024 ** 2) {
    // Shared, as a machine's memory is; unshared memory would start the garbage collector for each bench.
    this.bytes = new Uint8Array(new SharedArrayBuffer(memoryBytes));
    this.analyser = new Analyser({
      node: 'host0',
      memory: {
        read: (address, length) =>
          address >= 0 && address + length <= this.bytes.length
            ? this.bytes.slice(address, address + length)
            : undefined,
      },
      trace: { categories: traceCategories, filters, format, sink: this.log },
      bars: [
        { bar: 0, address: bar0Address, sizeBytes: 0x10_0000 },
        { bar: 2, address: bar2Address, sizeBytes: 0x400_0000 },
      ],
    });
  }

  /** The rules that were broken so far. */
  get broken(): string[] {
    return this.analyser.findings.map(({ rule }) => rule);
  }

  // The driver's side.

  store(address: number, bytes: Uint8Array): void {
    this.nowPs += 10_000;
    this.analyser.store(address, bytes, 0, bytes.length, this.nowPs);
  }

  /** A big-endian dword. */
  store32(address: number, value: number): void {
    const bytes = new Uint8Array(4);
    viewOf(bytes).setUint32(0, value);
    this.store(address, bytes);
  }

  /** A load that reads a big-endian dword. */
  load32(address: number, value: number): void {
    this.nowPs += 100_000;
    const load = { tag: 1, kind: MEMORY_READ, target: 0, address, lengthBytes: 4, value: 0 };
    this.analyser.request(load, this.nowPs);
    this.nowPs += 100_000;
    this.analyser.completion(1, 0, swap32(value), this.nowPs);
  }

  put(address: number, bytes: Uint8Array): void {
    this.bytes.set(bytes, address);
  }

  /** Posts a polled command by name and answers it. */
  command(name: CommandName, setup: CommandSetup = {}): void {
    const { inputModifier = 0, opcodeModifier = 0, box, status = 0, answer } = setup;
    const row = commands[name];
    this.bytes.fill(0, mailbox, mailbox + 2 * page);
    if (box !== undefined) this.put(mailbox, box);
    const takesOutBox = row.output === 'box';
    const registers = hcrLayout.encode({
      inParam: BigInt(setup.inParam ?? (box === undefined ? 0 : mailbox)),
      inputModifier,
      outParam: takesOutBox ? BigInt(outMailbox) : 0n,
      token: 0xffff,
      go: 1,
      toggle: this.toggle,
      opcodeModifier,
      opcode: row.opcode,
      ...setup.registers,
    });
    for (let at = 0; at < registers.length; at += 4)
      this.store(bar0Address + hcrOffset + at, registers.slice(at, at + 4));
    const go = viewOf(registers).getUint32(0x18);
    this.toggle ^= 1;
    if (setup.isLeftUnanswered === true) return;
    if (answer !== undefined) this.put(outMailbox, answer);
    this.load32(bar0Address + hcrOffset + 0x18, ((go & 0x7f_ffff) | (status << 24)) >>> 0);
    if (row.output !== 'immediate' || status !== 0) return;
    this.load32(bar0Address + hcrOffset + 0x0c, 0);
    this.load32(bar0Address + hcrOffset + 0x10, 0x10);
  }

  // The device's side.

  deviceWrites(address: number, bytes: Uint8Array, trafficClass: number): void {
    this.nowPs += 10_000;
    this.put(address, bytes);
    const data = { address, source: bytes, offset: 0, lengthBytes: bytes.length, trafficClass };
    this.analyser.deviceWrite(data, this.nowPs);
  }

  deviceReads(address: number, lengthBytes: number, trafficClass: number): void {
    this.nowPs += 10_000;
    const data = { address, source: this.bytes, offset: address, lengthBytes, trafficClass };
    this.analyser.deviceRead({ ...data, tag: 7, remainingBytes: lengthBytes, status: 0 }, this.nowPs);
  }

  readsRecord(address: number, lengthBytes: number): void {
    this.deviceReads(address, lengthBytes, TrafficClass.doorbellRecord);
  }

  // A driver that breaks no rule.

  /** Runs QUERY_FW to RUN_FW. */
  startFirmware(): void {
    this.command('QUERY_FW', {
      answer: queryFw.encode({ firmwarePages: 16, commandInterfaceRevision: 3, logOutstandingCommands: 4 }),
    });
    this.command('MAP_FA', { inputModifier: 1, box: mapBox(0, 0x20_0000, 4) });
    this.command('RUN_FW');
    this.command('QUERY_DEV_CAP', { answer: this.capabilities() });
  }

  bringUp(): void {
    this.startFirmware();
    this.command('SET_ICM_SIZE', { inParam: icmPages * page });
    this.command('MAP_ICM_AUX', { inputModifier: 1, box: mapBox(0, 0x30_0000, 0) });
    this.command('MAP_ICM', { inputModifier: 1, box: mapBox(0, icmHost, 9) });
    for (let type = 0; type < 4; type++)
      this.command('MAP_ICM', {
        inputModifier: 1,
        box: mapBox(Number(table.cmptBase) + type * 2 ** 30, 0x60_0000 + type * 0x1_0000, 4),
      });
    this.initialise();
    this.mtt(0, 0x70_0000);
    this.command('SW2HW_EQ', {
      inputModifier: 4,
      box: eqc.encode({ logEntries: 5, armState: 9, mttAddress: 0 }),
    });
    this.command('MAP_EQ', { inputModifier: 4, inParam: 0x400 });
  }

  initialise(): void {
    const sizes = {
      logQps: logObjects,
      logSrqs: logObjects,
      logCqs: logObjects,
      logEqs: 5,
      logDmpts: logObjects,
    };
    this.command('INIT_HCA', {
      box: initHca.encode({ version: 2, ...table, ...sizes, logMcgEntryBytes: 10, logMcgEntries: 3 }),
    });
  }

  capabilities(): Uint8Array {
    return queryDevCap.encode({
      logMaxSrqWqes: 14,
      logMaxQpWqes: 14,
      logReservedQps: 4,
      logMaxQps: 24,
      logReservedSrqs: 4,
      logMaxSrqs: 24,
      logMaxCqEntries: 10,
      logReservedCqs: 4,
      logMaxCqs: 24,
      logMaxEqEntries: 10,
      logMaxMpts: 20,
      logReservedEqs: 2,
      logMaxEqs: 9,
      logReservedMpts: 4,
      ports: 1,
      reservedUars: 1,
      reservedXrcDomains: XRC_DOMAIN_NONE,
      logMaxXrcDomains: 4,
      logUarAreaMib: 2,
      blueFlame: 1,
      logBlueFlameRegisterBytes: 9,
      logBlueFlameRegistersPerPage: 3,
      qpcEntryBytes: 256,
      auxcEntryBytes: 64,
      altcEntryBytes: 64,
      rdmarcEntryBytes: 32,
      srqcEntryBytes: 64,
      cqcEntryBytes: 64,
      eqcEntryBytes: 64,
      cmptEntryBytes: 64,
      mttEntryBytes: 8,
      dmptEntryBytes: 64,
    });
  }

  /** Bus address of an ICM address. */
  icm(icmAddress: number): number {
    return icmHost + icmAddress;
  }

  /** Bus address of an entry of a table. */
  entry(base: keyof typeof table, index: number, entryBytes: number): number {
    return this.icm(Number(table[base]) + index * entryBytes);
  }

  /** Writes a translation entry into its ICM page, as drivers do. */
  mtt(index: number, pageAddress: number): void {
    this.put(
      this.entry('mttBase', index, 8),
      mttEntry.encode({ pageAddress: BigInt(pageAddress), present: 1 }),
    );
  }

  createCq(cqn = 0x20, context: Initial<typeof cqc> = {}): void {
    this.mtt(1, 0x71_0000);
    const preset = { logEntries: 6, uarPage: 8, eqn: 4, mttAddress: 8, doorbellRecordAddress: 0x72_0000n };
    this.command('SW2HW_CQ', { inputModifier: cqn, box: cqc.encode({ ...preset, ...context }) });
  }

  createSrq(srqn = 0x20, fields: Initial<typeof srqc> = {}): void {
    this.mtt(2, 0x73_0000);
    const queue = { srqn, logWqes: 4, logStride16: 1, mttAddress: 16, doorbellRecordAddress: 0x72_0010n };
    const context = { xrcDomain: XRC_DOMAIN_NONE, ...queue, ...fields };
    this.command('SW2HW_SRQ', { inputModifier: srqn, box: srqc.encode(context) });
  }

  createMpt(index = 0x20): void {
    const entry = { status: 0xf, isRegion: 1, isPhysical: 1, localReadEnabled: 1, keyIndexForm: index };
    this.command('SW2HW_MPT', { inputModifier: index, box: mpt.encode(entry) });
  }

  /** A QP with 16 send WQEs of 64 bytes and 4 receive WQEs of 16, in INIT. */
  initQp(qpn = 0x40, serviceType: number = ServiceType.RC, fields: Initial<typeof qpc> = {}): void {
    this.mtt(3, 0x74_0000);
    const context = {
      state: QpState.INIT,
      serviceType,
      pd: 1,
      sqLogCount: 4,
      sqLogStride16: 2,
      rqLogCount: 2,
      rqLogStride16: 0,
      uarPage: 8,
      localQpn: qpn,
      sendCqn: 0x20,
      receiveCqn: 0x20,
      mttAddress: 24,
      doorbellRecordAddress: 0x72_0020n,
      ...fields,
    };
    this.command('RST2INIT_QP', { inputModifier: qpn, box: qpMailbox.encode({ context }) });
    for (let block = 0; block < 16; block++) this.put(this.wqeAddress(block), Uint8Array.of(0x80, 0, 0, 0));
  }

  readyQp(qpn = 0x40, serviceType: number = ServiceType.RC): void {
    this.initQp(qpn, serviceType);
    for (const [name, state] of [
      ['INIT2RTR_QP', QpState.RTR],
      ['RTR2RTS_QP', QpState.RTS],
    ] as const)
      this.command(name, { inputModifier: qpn, box: qpMailbox.encode({ context: { state, serviceType } }) });
  }

  /** Bus address of a send WQE of the QP. */
  wqeAddress(block: number): number {
    return 0x74_0000 + block * 64;
  }

  sendDoorbell(qpn = 0x40, uarPage = 8): void {
    this.store32(bar2Address + uarPage * page + 0x14, (qpn << 8) >>> 0);
  }

  armCq(word0: number, word1 = 0, uarPage = 8): void {
    const bytes = new Uint8Array(8);
    viewOf(bytes).setUint32(0, word0);
    viewOf(bytes).setUint32(4, word1);
    this.store(bar2Address + uarPage * page + 0x20, bytes);
  }
}

/** A MAP box with one chunk of 2^log pages. */
export function mapBox(icmAddress: number, hostAddress: number, logPages: number): Uint8Array {
  const box = new Uint8Array(16);
  const view = viewOf(box);
  view.setBigUint64(0, BigInt(icmAddress));
  view.setBigUint64(8, BigInt(hostAddress) | BigInt(logPages));
  return box;
}
