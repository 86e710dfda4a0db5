/**
 * A guest that keeps to the rules: it initialises the device as a driver does, queries everything, moves data, and
 * records the results. Two such lives on devices in the same state give the same text, line by line.
 *
 *     configuration ─► firmware ─► memory ─► INIT_HCA ─► event queue ─► port ─► regions ─► CQ ─► QPs ─► data ─► contexts
 *
 * Nothing that depends on time is recorded. A rough guest behaves like this one up to one of its stages. Sources of the
 * steps: interface sheet 8.1 to 8.4.
 */
import { createHash } from 'node:crypto';
import * as abi from '../../abi/index.ts';
import { type Initial, viewOf } from '../../base/index.ts';
import { type CommandOptions, type GuestLife, REGION_BAR2, word32 } from './guest-life.ts';

/** ICM tables, a MiB of addresses each, of which 64 pages are backed. */
export const icmTables = ['qpc', 'cqc', 'srqc', 'eqc', 'dmpt', 'mtt', 'mcg', 'rdmarc'] as const;
export const icmBase = (table: (typeof icmTables)[number]): number => icmTables.indexOf(table) << 24;
const icmPages = 32;
const logIcmPages = 5;
const icmBytes = icmTables.length << 24;

/** Addresses in the guest's memory, which is 7 MiB. */
const firmwareAddress = 0x20_0000;
const auxiliaryAddress = 0x28_0000;
export const icmAddress = (table: (typeof icmTables)[number]): number =>
  0x30_0000 + icmTables.indexOf(table) * icmPages * 4096;
const recordAddress = 0x3000;
const eqAddress = 0x4_0000;
const cqAddress = 0x4_4000;
export const workQueueAddress = (qp: number): number => 0x5_0000 + qp * 0x2000;
const dataAddress = 0x10_0000;

export const eqn = 4;
export const cqn = 128;
export const srqn = 64;
export const qpn = (qp: number): number => 64 + qp;
export const uarPage = 200;
export const pd = 5;
export const mptIndex = 256;
export const key = mptIndex << 8;
/** A region whose addresses need all 64 bits: its pages lie at both sides of a multiple of 2^52. */
const farIndex = 257;
const farKey = farIndex << 8;
const farStart = (0xfedn << 52n) - 4096n;
const farBytes = 2 * 4096;
const farPlace = 0xa000;
export const logQueue = 5;
/** LID of its only port, after the device's own subnet manager has configured it. */
export const wellBehavedLid = 1;
const sendStrideBytes = 64;
const allOnes64 = 0xffff_ffff_ffff_ffffn;

/** Mailbox of INIT_HCA. */
export const initialProfile = (): Initial<typeof abi.initHca> => ({
  version: 2,
  qpcBase: BigInt(icmBase('qpc')),
  logQps: 16,
  logRdmarcPerQp: 4,
  rdmarcBase: BigInt(icmBase('rdmarc')),
  cqcBase: BigInt(icmBase('cqc')),
  logCqs: 16,
  srqcBase: BigInt(icmBase('srqc')),
  logSrqs: 16,
  eqcBase: BigInt(icmBase('eqc')),
  logEqs: 7,
  dmptBase: BigInt(icmBase('dmpt')),
  logDmpts: 16,
  mttBase: BigInt(icmBase('mtt')),
  mcgBase: BigInt(icmBase('mcg')),
  logMcgEntryBytes: 10,
  logMcgHashEntries: 12,
  logMcgEntries: 13,
  logUars: 10,
});

export type Stage = (typeof stages)[number];
/** In the order in which they are carried out. */
export const stages = [
  'configuration',
  'firmware',
  'memory',
  'initialise',
  'event queue',
  'port',
  'regions',
  'completion queue',
  'queue pairs',
  'data',
  'contexts',
] as const;

export class WellBehavedGuest {
  readonly life: GuestLife;
  /** Answers of the device. */
  readonly lines: string[] = [];
  /** Contradictions of the standard, whatever another guest finds. */
  readonly wrong: string[] = [];
  readonly #looksAround: boolean;
  #lid = 0;
  #consumed = 0;
  readonly #sent = [0, 0];

  /**
   * @param looksAround false: does only what a driver must do, without queries
   */
  constructor(life: GuestLife, { looksAround = true } = {}) {
    this.life = life;
    this.#looksAround = looksAround;
  }

  /** LID of its port, when it has become active. */
  get lid(): number {
    return this.#lid;
  }

  /** Executes all stages from one to another, and returns the results. */
  run(last: Stage = 'contexts', first: Stage = 'configuration'): readonly string[] {
    for (const stage of stages.slice(stages.indexOf(first))) {
      this.#stages[stage]();
      if (stage === last) break;
    }
    return this.lines;
  }

  /** Notes memory and interrupts at the very end. */
  conclude(): readonly string[] {
    this.life.device.pass(5);
    this.#say('interrupts', this.life.raised().join(' '));
    const digest = (offset: number, lengthBytes: number): string =>
      createHash('sha256').update(this.life.ram.read(offset, lengthBytes)).digest('hex');
    for (let mib = 0; mib < 7; mib++) this.#say(`memory, MiB ${mib}`, digest(mib << 20, 1 << 20));
    return this.lines;
  }

  readonly #stages: Readonly<Record<Stage, () => void>> = {
    configuration: () => this.#lookAtConfiguration(),
    firmware: () => this.#startFirmware(),
    memory: () => this.#donateMemory(),
    initialise: () => this.#initialise(),
    'event queue': () => this.#createEventQueue(),
    port: () => this.#openPort(),
    regions: () => this.#createRegions(),
    'completion queue': () => this.#createCompletionQueue(),
    'queue pairs': () => this.#connectQueuePairs(),
    data: () => this.#moveData(),
    contexts: () => this.#lookAtContexts(),
  };

  #lookAtConfiguration(): void {
    const { life } = this;
    if (!this.#looksAround) {
      life.enable();
      return;
    }
    this.#say('configuration space', hexOf(life.readConfig(0, 4096)));
    life.enable();
    this.#say('configuration space, enabled', hexOf(life.readConfig(0, 256)));
    const { owner, semaphore, catastrophicBuffer, hcr } = abi.bar0.registers;
    for (const offset of [owner.offset, semaphore.offset, semaphore.offset, catastrophicBuffer.offset])
      this.#say(`register ${offset.toString(16)}`, life.read32(offset).toString(16));
    for (let at = 0; at < 28; at += 4) this.#say(`HCR ${at}`, life.read32(hcr.offset + at).toString(16));
    life.write32(semaphore.offset, 0);
  }

  #startFirmware(): void {
    if (this.#looksAround) this.#command('QUERY_FW', { outBytes: 256 });
    this.#map('MAP_FA', [[0, firmwareAddress, 6]]);
    this.#command('RUN_FW');
    if (!this.#looksAround) return;
    this.#command('QUERY_DEV_CAP', { outBytes: 256 });
    this.#command('QUERY_ADAPTER', { outBytes: 256 });
    this.#command('MOD_STAT_CFG', { opcodeModifier: 3, outBytes: 256 });
    this.#command('QUERY_HCA', { outBytes: 512 });
  }

  #donateMemory(): void {
    this.#command('SET_ICM_SIZE', { inParam: icmBytes });
    this.#map('MAP_ICM_AUX', [[0, auxiliaryAddress, 6]]);
    this.#map(
      'MAP_ICM',
      icmTables.map((table) => [icmBase(table), icmAddress(table), logIcmPages]),
    );
  }

  #initialise(): void {
    this.#command('INIT_HCA', { inBox: abi.initHca.encode(initialProfile()) });
    if (!this.#looksAround) return;
    this.#command('QUERY_HCA', { outBytes: 512 });
    for (const index of [0, 1, 4096]) this.#command('READ_MCG', { inputModifier: index, outBytes: 1024 });
    this.#command('DIAG_RPRT', { opcodeModifier: 2, outBytes: 256 });
  }

  #createEventQueue(): void {
    const entries = 2 ** logQueue * 4;
    const bytes = new Uint8Array(entries * 32);
    this.life.put(eqAddress, bytes);
    const context = abi.eqc.encode({
      armState: abi.EqArmState.ARMED,
      logEntries: logQueue + 2,
      mttAddress: this.#translate(0, eqAddress, 1),
      interruptNumber: 1,
    });
    this.#command('SW2HW_EQ', { inBox: context, inputModifier: eqn });
    const events = [abi.EventType.PORT_CHANGE, abi.EventType.PORT_MNG_CHG_EVENT, abi.EventType.COMP];
    this.#command('MAP_EQ', {
      inParam: events.reduce((sum: number, type) => sum + 2 ** type, 0),
      inputModifier: eqn,
    });
  }

  #openPort(): void {
    this.#command('INIT_PORT', { inputModifier: 1 });
    const attribute = (): Uint8Array =>
      this.#mad(abi.MadClass.SUBN_LID_ROUTED, abi.SmpAttribute.PORT_INFO, 1);
    for (let look = 0; look < (this.#looksAround ? 100 : 4); look++) {
      const info = abi.portInfo.decode(attribute().slice(abi.smpDataOffset, abi.smpDataOffset + 64));
      this.#lid = info.lid;
      if (info.portState === abi.PortState.ACTIVE) break;
      this.life.device.pass(1);
    }
    this.#say('LID', String(this.#lid));
    if (!this.#looksAround) return;
    const { NODE_DESC, NODE_INFO, PORT_INFO, SL_TO_VL_TABLE, GUID_INFO, PKEY_TABLE, VL_ARB_TABLE } =
      abi.SmpAttribute;
    for (const id of [NODE_DESC, NODE_INFO, PORT_INFO, SL_TO_VL_TABLE])
      this.#say(`MAD ${id}`, hexOf(this.#mad(abi.MadClass.SUBN_LID_ROUTED, id, 1)));
    for (let block = 0; block < 4; block++) {
      this.#say(`GUIDs ${block}`, hexOf(this.#mad(abi.MadClass.SUBN_LID_ROUTED, GUID_INFO, block)));
      this.#say(`P_Keys ${block}`, hexOf(this.#mad(abi.MadClass.SUBN_LID_ROUTED, PKEY_TABLE, block)));
      const modifier = ((block + 1) << 16) | 1;
      this.#say(
        `VL arbitration ${block}`,
        hexOf(this.#mad(abi.MadClass.SUBN_LID_ROUTED, VL_ARB_TABLE, modifier)),
      );
    }
    for (const id of Object.values(abi.PerformanceAttribute))
      this.#say(`counters ${id}`, hexOf(this.#mad(abi.MadClass.PERF_MGMT, id, 0)));
    this.#command('QUERY_PORT', { inputModifier: 1, outBytes: 256 });
  }

  #createRegions(): void {
    const context = abi.mpt.encode({
      isRegion: 1,
      isPhysical: 1,
      atomicEnabled: 1,
      remoteWriteEnabled: 1,
      remoteReadEnabled: 1,
      localWriteEnabled: 1,
      localReadEnabled: 1,
      keyIndexForm: abi.indexFormOfKey(key),
      pd,
      lengthBytes: allOnes64,
    });
    this.#command('SW2HW_MPT', { inBox: context, inputModifier: mptIndex });
    if (!this.#looksAround) return;
    this.#command('QUERY_MPT', { inputModifier: mptIndex, outBytes: 64 });
    const far = abi.mpt.encode({
      isRegion: 1,
      remoteWriteEnabled: 1,
      localWriteEnabled: 1,
      localReadEnabled: 1,
      keyIndexForm: abi.indexFormOfKey(farKey),
      pd,
      startAddress: farStart,
      lengthBytes: BigInt(farBytes),
      mttAddress: this.#translate(40, dataAddress + farPlace, 2),
      mttEntries: 2,
      logPageSize: 12,
    });
    this.#command('SW2HW_MPT', { inBox: far, inputModifier: farIndex });
  }

  #createCompletionQueue(): void {
    this.life.put(cqAddress, new Uint8Array(abi.cqeBytes << logQueue).fill(0xff));
    this.life.put(recordAddress, new Uint8Array(64));
    const context = abi.cqc.encode({
      logEntries: logQueue,
      uarPage,
      eqn,
      mttAddress: this.#translate(8, cqAddress, 1),
      doorbellRecordAddress: BigInt(recordAddress),
    });
    this.#command('SW2HW_CQ', { inBox: context, inputModifier: cqn });
    const shared = abi.srqc.encode({
      logWqes: logQueue,
      logStride16: 1,
      srqn,
      mttAddress: this.#translate(16, workQueueAddress(4), 1),
      pd,
      doorbellRecordAddress: BigInt(recordAddress + 48),
    });
    this.#command('SW2HW_SRQ', { inBox: shared, inputModifier: srqn });
  }

  #connectQueuePairs(): void {
    for (const qp of [0, 1]) {
      const address = workQueueAddress(qp);
      this.life.put(address, new Uint8Array(0x2000).fill(0xff));
      const initial = {
        ...{ localQpn: qpn(qp), pd, sendCqn: cqn, receiveCqn: cqn },
        ...{ remoteReadEnabled: 1, remoteWriteEnabled: 1, remoteAtomicEnabled: 1 },
        doorbellRecordAddress: BigInt(recordAddress + 16 + 8 * qp),
        mttAddress: this.#translate(24 + 8 * qp, address, 2),
      };
      const connected = {
        ...{ logMaxMessage: 30, remoteQpn: qpn(1 - qp), nextReceivePsn: 0xffff0 + qp },
        ...{ logMaxResponderReads: 2, primaryPath: pathTo(this.#lid) },
      };
      const sending = { nextSendPsn: 0xffff0 + (1 - qp), logMaxRequesterReads: 2 };
      for (const [name, context] of contextsToRts(initial, connected, sending))
        this.#command(name, { inBox: abi.qpMailbox.encode({ context }), inputModifier: qpn(qp) });
    }
  }

  #moveData(): void {
    const { life } = this;
    const text = Uint8Array.from({ length: 8192 }, (_, at) => (at * 7 + (at >>> 8)) & 0xff);
    life.put(dataAddress, text);
    // A receive of QP 1: one data pointer, and its doorbell record.
    const receive = abi.dataPointer.encode({
      byteCount: 4096,
      lkey: key,
      address: BigInt(dataAddress + 0x8000),
    });
    life.put(workQueueAddress(1) + (sendStrideBytes << logQueue), receive);
    life.put(recordAddress + 16 + 8, Uint8Array.of(0, 0, 0, 1));
    this.#send(0, abi.WqeOpcode.SEND, [pointer(dataAddress, 100)]);
    this.#send(0, abi.WqeOpcode.RDMA_WRITE, [remote(dataAddress + 0x4000), pointer(dataAddress, 5000)]);
    this.#send(1, abi.WqeOpcode.RDMA_READ, [remote(dataAddress + 1), pointer(dataAddress + 0x6000, 3001)]);
    const add = abi.atomicSegment.encode({ swapOrAdd: 5n });
    this.#send(1, abi.WqeOpcode.ATOMIC_FA, [
      remote(dataAddress + 0x100),
      add,
      pointer(dataAddress + 0x7000, 8),
    ]);
    this.#send(0, abi.WqeOpcode.RDMA_WRITE, [remote(dataAddress + 0x9000), pointer(dataAddress, 0)]);
    if (this.#looksAround) this.#moveFarData(text);
    // A key that is not there: the connection ends in error.
    this.#send(0, abi.WqeOpcode.RDMA_WRITE, [remote(dataAddress, key + 1), pointer(dataAddress, 64)]);
  }

  /** Moves data through a region of high addresses, from one page of it to the next: to it, and from it. */
  #moveFarData(text: Uint8Array): void {
    const { life } = this;
    const within = 4000;
    const lengthBytes = 200;
    const target = dataAddress + farPlace + farBytes;
    const local = abi.dataPointer.encode({
      byteCount: lengthBytes,
      lkey: farKey,
      address: farStart + BigInt(within),
    });
    const reach = abi.remoteAddressSegment.encode({ address: farStart + BigInt(within), rkey: farKey });
    this.#send(0, abi.WqeOpcode.RDMA_WRITE, [reach, pointer(dataAddress, lengthBytes)]);
    this.#send(0, abi.WqeOpcode.RDMA_WRITE, [remote(target), local]);
    for (const address of [dataAddress + farPlace + within, target])
      if (Buffer.compare(life.ram.read(address, lengthBytes), text.subarray(0, lengthBytes)) !== 0)
        this.wrong.push(
          `0x${address.toString(16)} has other bytes than a WRITE by 0x${farStart.toString(16)}`,
        );
  }

  #lookAtContexts(): void {
    for (const qp of [0, 1]) this.#command('QUERY_QP', { inputModifier: qpn(qp), outBytes: 256 });
    this.#command('QUERY_CQ', { inputModifier: cqn, outBytes: 64 });
    this.#command('QUERY_EQ', { inputModifier: eqn, outBytes: 64 });
    this.#command('QUERY_SRQ', { inputModifier: srqn, outBytes: 48 });
    this.#command('QUERY_MPT', { inputModifier: mptIndex, outBytes: 64 });
  }

  /** Posts one WQE, rings, and waits for its completion. */
  #send(qp: number, opcode: number, segments: readonly Uint8Array[]): void {
    const { life } = this;
    const index = this.#sent[qp]!++;
    const address = workQueueAddress(qp) + (index % 2 ** logQueue) * sendStrideBytes;
    const control = abi.controlSegment.encode({
      opcode: opcode as never,
      completion: abi.completionRequested,
    });
    const ds = (16 + segments.reduce((sum, { length }) => sum + length, 0)) / 16;
    abi.controlSegment.fields.ds.set(viewOf(control), 0, ds);
    life.put(address + 16, Buffer.concat(segments));
    life.put(address, control);
    life.store(REGION_BAR2, abi.sendDoorbellOffset(uarPage), word32(qpn(qp) << 8));
    for (let wanted = opcode === abi.WqeOpcode.SEND ? 2 : 1; wanted > 0; wanted--) this.#poll();
  }

  /** The next completion, of whichever queue. */
  #poll(): void {
    const { life } = this;
    const address = cqAddress + (this.#consumed % 2 ** logQueue) * abi.cqeBytes;
    for (let look = 0; look < 50; look++) {
      const entry = life.ram.read(address, abi.cqeBytes);
      if (abi.cqe.fields.owner.get(viewOf(entry), 0) === 0) {
        this.#consumed++;
        life.put(recordAddress, word32(this.#consumed));
        this.#say('completion', hexOf(entry));
        return;
      }
      life.device.pass(0.5);
    }
    this.#say('completion', 'none');
  }

  /** Writes MTT entries for a buffer's pages; their MTT address. */
  #translate(entry: number, address: number, pages: number): number {
    for (let page = 0; page < pages; page++) {
      const bytes = abi.mttEntry.encode({ pageAddress: BigInt(address + page * 4096), present: 1 });
      this.life.put(icmAddress('mtt') + (entry + page) * 8, bytes);
    }
    return entry * 8;
  }

  #map(
    name: 'MAP_FA' | 'MAP_ICM_AUX' | 'MAP_ICM',
    chunks: readonly (readonly [icm: number, host: number, logPages: number])[],
  ): void {
    const entries = chunks.map(([icm, host, logSize4k]) =>
      abi.mapEntry.encode({ icmAddress: BigInt(icm), physicalAddress: BigInt(host), logSize4k }),
    );
    this.#command(name, { inBox: Buffer.concat(entries), inputModifier: entries.length });
  }

  /** The answer to a Get. */
  #mad(managementClass: number, attributeId: number, attributeModifier: number): Uint8Array {
    const request = abi.mad.encode({
      baseVersion: 1,
      managementClass: managementClass as abi.MadClass,
      classVersion: 1,
      method: abi.MadMethod.GET,
      attributeId: attributeId as abi.SmpAttribute,
      attributeModifier,
    });
    if (managementClass === abi.MadClass.PERF_MGMT) request[abi.performanceDataOffset + 1] = 1;
    const options = { inBox: request, inputModifier: 1, opcodeModifier: 3, outBytes: 256 };
    return this.life.command('MAD_IFC', options).outBox;
  }

  #command(name: Parameters<GuestLife['command']>[0], options: CommandOptions = {}): void {
    const { status, out, outBox } = this.life.command(name, options);
    const answer = status < 0 ? 'did not end' : `status ${status}, ${out.toString(16)} ${hexOf(outBox)}`;
    this.#say(String(name), answer);
  }

  #say(what: string, found: string): void {
    this.lines.push(`${what}: ${found}`);
  }
}

type QpFields = NonNullable<Initial<typeof abi.qpMailbox>['context']>;
type ToRts = readonly [command: 'RST2INIT_QP' | 'INIT2RTR_QP' | 'RTR2RTS_QP', context: QpFields];

/** Contexts of a reliable connection's QP on its way to RTS; each has the fields of those before it. */
export function contextsToRts(initial: QpFields, connected: QpFields, sending: QpFields): readonly ToRts[] {
  const init = {
    ...{ serviceType: abi.ServiceType.RC, pathMigration: abi.PathMigration.MIGRATED, uarPage, minRnrNak: 12 },
    ...{ sqLogCount: logQueue, sqLogStride16: 2, rqLogCount: logQueue, rqLogStride16: 0 },
    ...initial,
  };
  const rtr = { ...init, pathMtu: abi.PathMtu.MTU_1024, ...connected };
  const rts = { ...rtr, retryCount: 7, rnrRetryCount: 7, ...sending };
  return [
    ['RST2INIT_QP', { ...init, state: abi.QpState.INIT }],
    ['INIT2RTR_QP', { ...rtr, state: abi.QpState.RTR }],
    ['RTR2RTS_QP', { ...rts, state: abi.QpState.RTS }],
  ];
}

export const pathTo = (remoteLid: number) => ({ remoteLid, scheduleQueue: 0x83, ackTimeout: 14 });

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const pointer = (address: number, byteCount: number): Uint8Array =>
  byteCount === 0
    ? abi.dataPointer.encode({ byteCount: 0, lkey: abi.invalidLkey, address: 0n })
    : abi.dataPointer.encode({ byteCount, lkey: key, address: BigInt(address) });

const remote = (address: number, rkey = key): Uint8Array =>
  abi.remoteAddressSegment.encode({ address: BigInt(address), rkey });
